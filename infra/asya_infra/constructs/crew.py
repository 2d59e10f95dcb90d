"""The crew of a mesh: its actors and its clock (`protocol §9`, `§11`, `§11.clock`).

Beside them stand the notifications of paused tasks and the nightly schedule of the index of results.
"""

import json
from collections import defaultdict
from collections.abc import Mapping

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from asya import registry
from asya.capabilities.clock.steps import STEPS, Step, written
from asya.capabilities.pauses.aws.notices import DETAIL_TYPE, link_bus, source_of
from asya.manifest import Clock
from asya.predicates import answers_by_link
from asya.protocol import names
from asya_infra.addresses import Addresses
from asya_infra.constructs.actors import ActorQueue
from asya_infra.constructs.encryption import customer_key, encrypted_topic, subscription_id
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.mesh_function import (
    EventSourceSettings,
    MeshFunction,
    add_sweep,
    declared,
)
from asya_infra.constructs.undelivered import undelivered_events, undelivered_notifications
from asya_infra.limits.aws_limits import EVENT_PATTERN
from asya_infra.limits.rendering import policy_length
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.mesh_model import MeshFile


def crew(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the functions of these actors, unless the mesh file disables one, and connect them to their queues."""
    code = mesh.table_code()
    sections = {name: mesh.file.crew.of(name) for name in registry.of(mesh.table).crew if name in mesh.table.actors}
    enabled = [name for name, section in sections.items() if section.enabled]
    for runner in dict.fromkeys(map(names.runner_of, enabled)):
        actors = {name: sections[name] for name in enabled if names.runner_of(name) == runner}
        settings = declared(
            mesh,
            runner,
            *actors,
            code=code,
            memory=max(section.memory for section in actors.values()),
            environment={"ASYA_GATEWAY_URL": gateway.url},
        )
        function = MeshFunction(scope, mesh, layer, settings)
        provisioned = sum(section.provisioned for section in actors.values())
        for name, section in actors.items():
            function.add_event_source(
                EventSourceSettings(
                    batch_size=section.batch_size, concurrency=section.concurrency, provisioned=provisioned
                ),
                name,
            )


def clock(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the function that runs the steps of the mesh, if it has any."""
    steps = [
        Step(each.name, each.entry_point, each.called_by.minutes, each.timeout)
        for each in registry.steps_of(mesh.table)
        if isinstance(each.called_by, Clock)
    ]
    if steps:
        environment = {"ASYA_GATEWAY_URL": gateway.url, STEPS: written(steps)}
        settings = declared(mesh, names.CLOCK, code=mesh.table_code(), environment=environment)
        add_sweep(Construct(scope, "Clock"), mesh, layer, settings)


class PauseNotifications(Construct):
    """The bus for links, if pauses have any, and a topic with a subscription for each address in `pause.notify`.

    The events are on the default bus in any case, without links, for rules of the user.
    """

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, "PauseNotifications")
        bus = link_bus(mesh.namespace)
        if mesh.table.has_callbacks:
            description = f"Links that answer pauses of the mesh {mesh.namespace}"
            own_bus = events.CfnEventBus(self, "Links", name=bus, description=description)
        subscriptions = actors_by_address(mesh.file)
        if not subscriptions:
            return
        name = names.resource_name(mesh.namespace, "pauses")
        notified = set[str]().union(*subscriptions.values())
        linked = {each for each in notified if answers_by_link(mesh.table, each)}
        rules = [
            *([mesh.addresses.arn("events", f"rule/{name}")] if notified - linked else []),
            *([mesh.addresses.arn("events", f"rule/{bus}/{name}")] if linked else []),
        ]
        only_the_rule = {"ArnEquals": {"aws:SourceArn": rules if len(rules) > 1 else rules[0]}}
        topic = encrypted_topic(
            self,
            name,
            f"Notifications of paused tasks of the mesh {mesh.namespace}",
            "events.amazonaws.com",
            conditions=only_the_rule,
            # The notifications have the question, and data of envelopes may be in it.
            customer_key=customer_key(self, mesh),
        )
        pattern: dict[str, object] = {"source": [source_of(mesh.namespace)], "detail-type": [DETAIL_TYPE]}
        targets = [
            events.CfnRule.TargetProperty(
                id="topic",
                arn=topic.topic_arn,
                input_path="$.detail",
                dead_letter_config=undelivered_events(mesh),
            )
        ]
        about = f"Tasks of the mesh {mesh.namespace} that wait for a person"
        if notified - linked:
            # What has a link comes by the other bus, too.
            others = pattern | ({"detail": {"actor": [{"anything-but": sorted(linked)}]}} if linked else {})
            # If the pattern had no room for all of these actors, their receivers also get the event without a link.
            fitting = others if policy_length(others) <= EVENT_PATTERN.usable else pattern
            events.CfnRule(self, "Rule", name=name, description=about, event_pattern=fitting, targets=targets)
        if linked:
            with_links = events.CfnRule(
                self,
                "LinkRule",
                name=name,
                description=f"{about}, with links",
                event_bus_name=bus,
                event_pattern=pattern,
                targets=targets,
            )
            with_links.add_dependency(own_bus)
        for address, actors in sorted(subscriptions.items()):
            sns.CfnSubscription(
                self,
                subscription_id(address),
                topic_arn=topic.topic_arn,
                protocol=_protocol(address),
                endpoint=address,
                filter_policy={"actor": sorted(actors)},
                filter_policy_scope="MessageBody",
                redrive_policy=undelivered_notifications(mesh),
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
                dead_letter_config=undelivered_events(mesh),
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
