"""Notifications of paused tasks: a rule sends the mesh's events to a topic with the addresses of the mesh file."""

from collections import defaultdict
from collections.abc import Mapping

from aws_cdk import aws_events as events
from aws_cdk import aws_sns as sns
from constructs import Construct

from asya.capabilities.pauses.aws.notices import DETAIL_TYPE, source_of
from asya.protocol import names
from asya_infra.constructs.customer_key import customer_key
from asya_infra.constructs.encrypted_topic import encrypted_topic
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.mesh_model import MeshFile


class PauseNotifications(Construct):
    """A topic with a subscription for each address in `pause.notify`; empty without any.

    The events are on the default bus in any case, for rules of the user.
    """

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, "PauseNotifications")
        subscriptions = actors_by_address(mesh.file)
        if not subscriptions:
            return
        name = names.resource_name(mesh.namespace, "pauses")
        rule_arn = mesh.addresses.arn("events", f"rule/{name}")
        only_the_rule = {"ArnEquals": {"aws:SourceArn": rule_arn}}
        topic = encrypted_topic(
            self,
            name,
            f"Notifications of paused tasks of the mesh {mesh.namespace}",
            "events.amazonaws.com",
            conditions=only_the_rule,
            key_conditions=only_the_rule,
            # The notifications have the question, and data of envelopes may be in it.
            customer_key=customer_key(self, mesh),
        )
        events.CfnRule(
            self,
            "Rule",
            name=name,
            description=f"Tasks of the mesh {mesh.namespace} that wait for a person",
            event_pattern={"source": [source_of(mesh.namespace)], "detail-type": [DETAIL_TYPE]},
            targets=[events.CfnRule.TargetProperty(id="topic", arn=topic.topic_arn, input_path="$.detail")],
        )
        for number, (address, actors) in enumerate(sorted(subscriptions.items())):
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
    """Return the addresses of the mesh file, each with the pause actors that notify it."""
    subscriptions: dict[str, set[str]] = defaultdict(set)
    for name, actor in mesh.actors.items():
        for address in actor.pause.notify if actor.pause else ():
            subscriptions[address].add(name)
    return subscriptions


def _protocol(address: str) -> str:
    if address.startswith("https://"):
        return "https"
    return "sqs" if address.startswith("arn:") else "email"
