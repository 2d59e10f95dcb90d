"""Triggers: the function that starts their tasks, and what sends to its queue (`protocol §16`).

Senders are notifications and rules. The policy of the queue names them (`protocol §16.senders`).
"""

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from asya.capabilities.triggers.statements import TRIGGERS
from asya.protocol import names
from asya.senders.statements import named_in
from asya_infra.build.functions import build_gateway
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.mesh_function import MeshFunction, declared
from asya_infra.constructs.undelivered import undelivered_events
from asya_infra.mesh import Mesh
from asya_infra.trigger_sources import CREATED, DEFAULT_BUS, bucket_filters, rule_patterns, trigger_rules


def needs_queue_first(mesh: Mesh) -> bool:
    """Whether the bucket notifies the queue of triggers: S3 sends a test when the notifications are written."""
    return bool(bucket_filters(mesh.table, mesh.addresses))


def bucket_notifications(mesh: Mesh) -> s3.CfnBucket.NotificationConfigurationProperty | None:
    """Return what the mesh's own bucket notifies of; None for nothing. Commits of resident runs go by EventBridge."""
    queue = mesh.addresses.queue_arn(names.TRIGGERS)
    notifications = [
        s3.CfnBucket.QueueConfigurationProperty(
            event=CREATED,
            queue=queue,
            filter=s3.CfnBucket.NotificationFilterProperty(
                s3_key=s3.CfnBucket.S3KeyFilterProperty(
                    rules=[
                        s3.CfnBucket.FilterRuleProperty(name=name, value=value)
                        for name, value in (("prefix", keys.prefix), ("suffix", keys.suffix))
                        if value
                    ]
                )
            ),
        )
        for keys in bucket_filters(mesh.table, mesh.addresses)
    ]
    if not notifications and not mesh.jobs_linger:
        return None
    return s3.CfnBucket.NotificationConfigurationProperty(
        event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(event_bridge_enabled=True)
        if mesh.jobs_linger
        else None,
        queue_configurations=notifications or None,
    )


def event_rules(scope: Construct, mesh: Mesh, function: Construct) -> None:
    """Add the rules of triggers.

    Args:
        function: the function of the queue. It knows a trigger before its rule sends, so a new rule waits for it.
    """
    for rule in trigger_rules(mesh.table, mesh.addresses):
        resource = events.CfnRule(
            scope,
            f"Trigger-{rule.trigger}",
            name=rule.name,
            description=f"Events of the trigger {rule.trigger} of the mesh {mesh.namespace}",
            event_bus_name=None if rule.bus == DEFAULT_BUS else rule.bus,
            event_pattern=rule.pattern,
            targets=[
                events.CfnRule.TargetProperty(
                    id="triggers",
                    arn=mesh.addresses.queue_arn(names.TRIGGERS),
                    dead_letter_config=undelivered_events(mesh),
                    input_transformer=events.CfnRule.InputTransformerProperty(input_template=rule.template),
                )
            ],
        )
        resource.node.add_dependency(function)


def restrict_senders(queue: sqs.Queue, mesh: Mesh) -> None:
    """Let S3 and EventBridge send for this mesh, and of all others only the functions that tell `x-triggers` something."""
    addresses = mesh.addresses
    bucket = {
        "ArnEquals": {"aws:SourceArn": addresses.bucket_arn(addresses.bucket)},
        "StringEquals": {"aws:SourceAccount": addresses.account},
    }
    rules = {"ArnLike": {"aws:SourceArn": rule_patterns(addresses)}}
    for needed, service, conditions in (
        (needs_queue_first(mesh), "s3.amazonaws.com", bucket),
        (bool(trigger_rules(mesh.table, addresses)), "events.amazonaws.com", rules),
    ):
        if needed:
            queue.add_to_resource_policy(
                iam.PolicyStatement(
                    actions=["sqs:SendMessage"],
                    principals=[iam.ServicePrincipal(service)],
                    resources=[queue.queue_arn],
                    conditions=conditions,
                )
            )
    # SQS writes ids of AWS as the senders of such messages, so the function cannot tell them from those of a stranger.
    functions = [
        addresses.role_arn(function) for function in sorted({*map(names.runner_of, named_in(TRIGGERS, names.TRIGGERS))})
    ]
    queue.add_to_resource_policy(
        iam.PolicyStatement(
            effect=iam.Effect.DENY,
            actions=["sqs:SendMessage"],
            principals=[iam.AnyPrincipal()],
            resources=[queue.queue_arn],
            conditions={
                "Bool": {"aws:PrincipalIsAWSService": "false"},
                "ArnNotEquals": {"aws:PrincipalArn": functions},
            },
        )
    )


def triggers(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the function and connect it to its queue. It has the validator of tools' arguments, as the API has."""
    options = mesh.options
    code = build_gateway(options.build_folder, options.packages_target, mesh.table_bytes)
    settings = declared(
        mesh,
        names.TRIGGERS,
        code=lambda_.Code.from_asset(str(code)),
        environment={"ASYA_GATEWAY_URL": gateway.url},
    )
    function = MeshFunction(scope, mesh, layer, settings)
    function.add_declared_event_sources()
    event_rules(scope, mesh, function)
