"""The queue of what EventBridge and SNS could not deliver. An alarm tells about the first message in it.

Without a dead-letter queue a rule or a subscription fails in silence: nobody reads the metrics of each rule. Rules that call
functions have none, because the alarms on sweeps that stopped tell about them.
"""

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.acknowledgements import acknowledge
from asya_infra.constructs.encryption import customer_key
from asya_infra.mesh import Mesh


class UndeliveredQueue(Construct):
    """The queue. Every mesh has it: one that came and went with the rules would go with its messages."""

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, names.UNDELIVERED)
        key, addresses = customer_key(self, mesh), mesh.addresses
        queue = sqs.Queue(
            self,
            "Queue",
            queue_name=names.queue_name(mesh.namespace, names.UNDELIVERED),
            encryption=sqs.QueueEncryption.SQS_MANAGED if key is None else sqs.QueueEncryption.KMS,
            encryption_master_key=key,
            data_key_reuse=None if key is None else Duration.minutes(timings.DATA_KEY_REUSE_MINUTES),
            retention_period=Duration.days(timings.DLQ_RETENTION_DAYS),
        )
        own = f"asya-{mesh.namespace}-*"
        rules = [addresses.arn("events", f"rule/{own}"), addresses.arn("events", f"rule/*/{own}")]
        for service, sources in (("events", rules), ("sns", [addresses.arn("sns", own)])):
            queue.add_to_resource_policy(
                iam.PolicyStatement(
                    actions=["sqs:SendMessage"],
                    principals=[iam.ServicePrincipal(f"{service}.amazonaws.com")],
                    resources=[queue.queue_arn],
                    conditions={"ArnLike": {"aws:SourceArn": sources}},
                )
            )
        acknowledge(queue, "AwsSolutions-SQS3", "It is a dead-letter queue, that of rules and of subscriptions.")


def undelivered_events(mesh: Mesh) -> events.CfnRule.DeadLetterConfigProperty:
    """Return where the target of a rule leaves an event that could not be delivered."""
    return events.CfnRule.DeadLetterConfigProperty(arn=mesh.addresses.queue_arn(names.UNDELIVERED))


def undelivered_notifications(mesh: Mesh) -> dict[str, str]:
    """Return where a subscription leaves a notification that could not be delivered: its redrive policy."""
    return {"deadLetterTargetArn": mesh.addresses.queue_arn(names.UNDELIVERED)}
