"""The queue of an actor with its dead-letter queue and alarm (`protocol §4`)."""

from typing import cast

from aws_cdk import Duration, Stack, Tags
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.constructs.customer_key import customer_key
from asya_infra.constructs.observability.alarms import dead_letters_alarm
from asya_infra.mesh import Mesh
from asya_infra.queue_settings import QueueSettings


class ActorQueue(Construct):
    """A queue, its dead-letter queue and the alarm that wakes the DLQ function."""

    def __init__(self, scope: Construct, mesh: Mesh, actor: str, settings: QueueSettings) -> None:
        """Add the queues.

        Args:
            scope: the stack of the actor's shard.
            mesh: the mesh.
            actor: the name of an actor or a system function.
            settings: the settings of the queue. Without envelopes it has no alarm of its own here, and one of the mesh's alarms
                watches its dead letters.
        """
        super().__init__(scope, actor)
        Tags.of(self).add("asya:actor", actor)  # for the allocation of costs
        namespace, key = mesh.namespace, customer_key(self, mesh)
        encryption = sqs.QueueEncryption.SQS_MANAGED if key is None else sqs.QueueEncryption.KMS
        data_key_reuse = None if key is None else Duration.minutes(timings.DATA_KEY_REUSE_MINUTES)
        dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=names.dlq_name(namespace, actor),
            encryption=encryption,
            encryption_master_key=key,
            data_key_reuse=data_key_reuse,
            enforce_ssl=True,
            retention_period=Duration.days(timings.DLQ_RETENTION_DAYS),
        )
        _accept_only_from(dead_letters, names.queue_name(namespace, actor))
        self.queue = sqs.Queue(
            self,
            "Queue",
            queue_name=names.queue_name(namespace, actor),
            encryption=encryption,
            encryption_master_key=key,
            data_key_reuse=data_key_reuse,
            enforce_ssl=True,
            retention_period=Duration.days(settings.retention_days),
            visibility_timeout=Duration.seconds(settings.visibility_timeout),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=settings.max_receives),
        )
        if settings.has_envelopes:
            dead_letters_alarm(self, namespace, actor)


def _accept_only_from(dead_letters: sqs.Queue, queue_name: str) -> None:
    """Allow one queue to use the dead-letter queue. The ARN is computed, because the two queues refer to each other."""
    source = Stack.of(dead_letters).format_arn(service="sqs", resource=queue_name)
    cast("sqs.CfnQueue", dead_letters.node.default_child).redrive_allow_policy = {
        "redrivePermission": "byQueue",
        "sourceQueueArns": [source],
    }
