"""Connects the sources of triggers with their queue without CloudFormation, for `asya dev`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asya.protocol import names
from asya_infra.trigger_sources import CREATED, DEFAULT_BUS, bucket_filters, trigger_rules

if TYPE_CHECKING:
    from asya.capabilities.triggers.sources.key_filters import KeyFilter
    from asya.protocol.mesh_table import MeshTable
    from asya_infra.addresses import Addresses

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
