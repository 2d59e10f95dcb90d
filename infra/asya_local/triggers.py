"""The sources of triggers on a cloud of this machine, without CloudFormation.

Buckets and buses that exist outside of the mesh on AWS are made here, where their owners have made them.
`asya dev` also connects the sources with the queue.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asya.protocol import names
from asya_infra.mesh_file import to_table
from asya_infra.trigger_sources import CREATED, DEFAULT_BUS, bucket_filters, trigger_rules, watched_buckets
from asya_local.account import aws_client, local_addresses

if TYPE_CHECKING:
    from asya.capabilities.triggers.sources.new_objects import KeyFilter
    from asya.protocol.mesh_table import MeshTable
    from asya_infra.addresses import Addresses
    from asya_infra.mesh_file import LoadedMesh
    from asya_local.account import AccessKey


@dataclass(frozen=True)
class ExistingSources:
    """The buckets and buses outside of a mesh that its triggers react to; the default bus is one of them."""

    buckets: tuple[str, ...]
    buses: tuple[str, ...]

    @classmethod
    def of(cls, table: MeshTable, addresses: Addresses) -> ExistingSources:
        """Return the sources of a mesh."""
        buses = {rule.bus for rule in trigger_rules(table, addresses)}
        return cls(tuple(watched_buckets(table, addresses)), tuple(sorted(buses)))

    @classmethod
    def of_file(cls, loaded: LoadedMesh) -> ExistingSources:
        """Return the sources of a mesh file on a local cloud."""
        return cls.of(to_table(loaded), local_addresses(loaded))


def create_existing(sources: ExistingSources, s3: Any, events: Any) -> None:
    """Create each bucket, with EventBridge turned on, and each bus, unless it is there.

    Args:
        sources: The buckets and buses.
        s3: The client of S3.
        events: The client of EventBridge.
    """
    for bucket in sources.buckets:
        s3.create_bucket(Bucket=bucket)
        s3.put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
    for bus in sorted(set(sources.buses) - {DEFAULT_BUS}):
        with suppress(events.exceptions.ResourceAlreadyExistsException):
            events.create_event_bus(Name=bus)


def create_existing_at(sources: ExistingSources, endpoint: str, deployer: AccessKey) -> None:
    """Create the sources on a local cloud, before the mesh is deployed there."""
    create_existing(sources, aws_client("s3", endpoint, deployer), aws_client("events", endpoint, deployer))


_PREFIX = "trigger-"


@dataclass(frozen=True)
class Clients:
    """The boto3 clients of a cloud."""

    s3: Any
    events: Any
    sqs: Any


def connect(table: MeshTable, addresses: Addresses, clients: Clients, *, sends_commits: bool) -> None:
    """Write the notifications of the mesh's bucket and the rules of its triggers; rules of former triggers are removed.

    Args:
        table: The actor table.
        addresses: The addresses of the mesh.
        clients: The clients of the cloud.
        sends_commits: Whether the bucket sends events to EventBridge for the commits of resident runs.
    """
    s3, events, queue = clients.s3, clients.events, addresses.queue_arn(names.TRIGGERS)
    if table.triggers:
        url = clients.sqs.get_queue_url(QueueName=names.queue_name(table.namespace, names.TRIGGERS))["QueueUrl"]
        clients.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(_senders(queue))})
    filters = bucket_filters(table, addresses)
    configuration: dict[str, Any] = {"EventBridgeConfiguration": {}} if sends_commits else {}
    if filters:
        configuration["QueueConfigurations"] = [_notification(each, queue) for each in filters]
    s3.put_bucket_notification_configuration(Bucket=addresses.bucket, NotificationConfiguration=configuration)
    rules = trigger_rules(table, addresses)
    for rule in rules:
        place = {} if rule.bus == DEFAULT_BUS else {"EventBusName": rule.bus}
        events.put_rule(Name=rule.name, EventPattern=json.dumps(rule.pattern), **place)
        target = {"Id": "triggers", "Arn": queue, "InputTransformer": {"InputTemplate": rule.template}}
        events.put_targets(Rule=rule.name, Targets=[target], **place)
    kept = {(rule.bus, rule.name) for rule in rules}
    for bus in [each["Name"] for each in events.list_event_buses()["EventBuses"]]:
        former = events.list_rules(NamePrefix=names.resource_name(table.namespace, _PREFIX), EventBusName=bus)["Rules"]
        for name in (each["Name"] for each in former if (bus, each["Name"]) not in kept):
            events.remove_targets(Rule=name, EventBusName=bus, Ids=["triggers"])
            events.delete_rule(Name=name, EventBusName=bus)


def _senders(queue: str) -> dict[str, Any]:
    """Return the policy of the queue. Nobody but the author sends there."""
    services = {"Service": ["s3.amazonaws.com", "events.amazonaws.com"]}
    allowed = {"Effect": "Allow", "Principal": services, "Action": "sqs:SendMessage", "Resource": queue}
    return {"Version": "2012-10-17", "Statement": [allowed]}


def _notification(keys: KeyFilter, queue: str) -> dict[str, Any]:
    rules = [
        {"Name": name, "Value": value} for name, value in (("prefix", keys.prefix), ("suffix", keys.suffix)) if value
    ]
    return {"QueueArn": queue, "Events": [CREATED], "Filter": {"Key": {"FilterRules": rules}}}
