"""Who is told when a task pauses: EventBridge leads the mesh's own events to a topic, and that to whom the mesh file names."""

from collections import defaultdict
from collections.abc import Mapping

from aws_cdk import RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from asya.pause.aws.notices import DETAIL_TYPE, source_of
from asya.protocol import names
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.mesh_model import MeshFile

_EVENTS = "events.amazonaws.com"


class PauseNotifications(Construct):
    """A topic, if anybody is to be told (`pause.notify`). The events are on the default bus either way, for rules of one's own.

    EventBridge cannot use AWS's own key of SNS, so the topic has one.
    """

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, "PauseNotifications")
        told = actors_by_address(mesh.file)
        if not told:
            return
        name = names.resource_name(mesh.namespace, "pauses")
        rule_arn = mesh.addresses.arn("events", f"rule/{name}")
        key = kms.Key(
            self,
            "Key",
            description=f"Notifications of paused tasks of the mesh {mesh.namespace}",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.DESTROY,
        )
        topic = sns.Topic(self, "Topic", topic_name=name, master_key=key, enforce_ssl=True)
        from_the_rule = {"ArnEquals": {"aws:SourceArn": rule_arn}}
        key.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                principals=[iam.ServicePrincipal(_EVENTS)],
                resources=["*"],
                conditions=from_the_rule,
            )
        )
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sns:Publish"],
                principals=[iam.ServicePrincipal(_EVENTS)],
                resources=[topic.topic_arn],
                conditions=from_the_rule,
            )
        )
        events.CfnRule(
            self,
            "Rule",
            name=name,
            description=f"Tasks of the mesh {mesh.namespace} that wait for a person",
            event_pattern={"source": [source_of(mesh.namespace)], "detail-type": [DETAIL_TYPE]},
            targets=[events.CfnRule.TargetProperty(id="topic", arn=topic.topic_arn, input_path="$.detail")],
        )
        for number, (address, actors) in enumerate(sorted(told.items())):
            sns.CfnSubscription(
                self,
                f"Subscription{number}",
                topic_arn=topic.topic_arn,
                protocol=_protocol(address),
                endpoint=address,
                filter_policy={"actor": sorted(actors)},
                filter_policy_scope="MessageBody",
            )


def actors_by_address(mesh: MeshFile) -> Mapping[str, set[str]]:
    """Whom the mesh file names, and the pause actors that each of them is to be told of."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, actor in mesh.actors.items():
        for address in actor.pause.notify if actor.pause else ():
            found[address].add(name)
    return found


def _protocol(address: str) -> str:
    if address.startswith("https://"):
        return "https"
    return "sqs" if address.startswith("arn:") else "email"
