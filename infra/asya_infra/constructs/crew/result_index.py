"""The schedule that compacts the index of results each night, by an envelope to x-index (`protocol §11`)."""

import json

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct

from asya.protocol import names
from asya_infra.addresses import Addresses
from asya_infra.constructs.actors.queues import ActorQueue
from asya_infra.mesh import Mesh

# Results of the day arrive until half past midnight. The next two nights include later ones.
_NIGHTLY = "cron(30 0 * * ? *)"


def result_index_schedule(scope: Construct, mesh: Mesh) -> None:
    """Add the rule. The envelope id contains that of the event, so a repeated event runs once, and nobody takes the id first."""
    envelope = {
        "id": "x-index-<event>",
        "route": {"prev": [], "curr": names.INDEX, "next": []},
        "payload": {"time": "<time>"},
    }
    events.CfnRule(
        scope,
        "ResultIndex",
        name=_rule_name(mesh.namespace),
        description=f"Has the index of results of the mesh {mesh.namespace} compacted",
        schedule_expression=_NIGHTLY,
        targets=[
            events.CfnRule.TargetProperty(
                id="compact",
                arn=mesh.addresses.queue_arn(names.INDEX),
                input_transformer=events.CfnRule.InputTransformerProperty(
                    input_paths_map={"event": "$.id", "time": "$.time"}, input_template=json.dumps(envelope)
                ),
            )
        ],
    )


def allow_schedule(queue: ActorQueue, addresses: Addresses) -> None:
    """Allow the rule to send to the queue."""
    rule = addresses.arn("events", f"rule/{_rule_name(addresses.namespace)}")
    queue.queue.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["sqs:SendMessage"],
            principals=[iam.ServicePrincipal("events.amazonaws.com")],
            resources=[queue.queue.queue_arn],
            conditions={"ArnEquals": {"aws:SourceArn": rule}},
        )
    )


def _rule_name(namespace: str) -> str:
    return names.resource_name(namespace, "result-index")
