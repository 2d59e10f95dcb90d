"""What AWS sends to the queue of triggers: notifications of the mesh's own bucket, and rules on EventBridge buses.

The stacks and `asya dev` create these (`protocol §16`). Triggers that are off have none, so they cost nothing.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asya.capabilities.triggers.sources.new_objects import Buckets, KeyFilter, notification_filters
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.triggers import ObjectSource, Trigger
from asya_infra.addresses import Addresses

CREATED = "s3:ObjectCreated:*"
DEFAULT_BUS = "default"
_RULE_LIMIT, _DIGEST = 64, 9
_EVENT = "<aws.events.event.json>"


@dataclass(frozen=True)
class TriggerRule:
    """A rule that sends the events of one trigger.

    Attributes:
        trigger: the name of the trigger.
        name: the name of the rule.
        bus: the name of the bus.
        pattern: the event pattern.
    """

    trigger: str
    name: str
    bus: str
    pattern: dict[str, Any]

    @property
    def template(self) -> str:
        """The template of the message, for the input transformer of the rule."""
        return f'{{"trigger":{json.dumps(self.trigger)},"event":{_EVENT}}}'


def bucket_filters(table: MeshTable, addresses: Addresses) -> tuple[KeyFilter, ...]:
    """Return the filters for the notifications of the mesh's own bucket; none without triggers on it."""
    buckets = _buckets(addresses)
    sources = [source for _, source in _object_triggers(table) if is_own(source.bucket, addresses)]
    return notification_filters(buckets.wanted_keys(source) for source in sources)


def trigger_rules(table: MeshTable, addresses: Addresses) -> list[TriggerRule]:
    """Return the rules of the triggers with events, and with buckets that are not the mesh's own."""
    return [
        TriggerRule(name, names.resource_name(table.namespace, f"trigger-{name}"), bus, pattern)
        for name, trigger in sorted(table.triggers.items())
        if trigger.enabled and (rule := _rule(trigger, addresses)) is not None
        for bus, pattern in (rule,)
    ]


def rule_patterns(addresses: Addresses) -> list[str]:
    """Return ARN patterns of all rules of triggers, for a policy: the ARNs of a hundred would not fit in it."""
    prefix = f"asya-{addresses.namespace}-trigger-"[: _RULE_LIMIT - _DIGEST]
    return [addresses.arn("events", f"rule/{prefix}*"), addresses.arn("events", f"rule/*/{prefix}*")]


def watched_buckets(table: MeshTable, addresses: Addresses) -> list[str]:
    """Return the buckets that have to send events to EventBridge, without that of the mesh."""
    places = _buckets(addresses)
    return sorted(
        {
            places.place(source.bucket).bucket
            for _, source in _object_triggers(table)
            if not is_own(source.bucket, addresses)
        }
    )


def is_own(bucket: str, addresses: Addresses) -> bool:
    """Whether a bucket of the mesh file is the mesh's own."""
    own = {"data": addresses.data_bucket is None, "results": addresses.results_bucket is None}
    return own.get(bucket, False)


def _object_triggers(table: MeshTable) -> Iterator[tuple[str, ObjectSource]]:
    for name, trigger in table.triggers.items():
        if trigger.enabled and trigger.objects is not None:
            yield name, trigger.objects


def _buckets(addresses: Addresses) -> Buckets:
    return Buckets(addresses.data.uri, addresses.results.uri)


def _rule(trigger: Trigger, addresses: Addresses) -> tuple[str, dict[str, Any]] | None:
    if trigger.event is not None:
        return trigger.event.bus, trigger.event.pattern
    source = trigger.objects
    if source is None or is_own(source.bucket, addresses):
        return None
    key = _key_pattern(_buckets(addresses).wanted_keys(source))
    detail: dict[str, Any] = {"bucket": {"name": [_buckets(addresses).place(source.bucket).bucket]}}
    if key is not None:
        detail["object"] = {"key": [key]}
    return DEFAULT_BUS, {"source": ["aws.s3"], "detail-type": ["Object Created"], "detail": detail}


def _key_pattern(keys: KeyFilter) -> dict[str, str] | None:
    if keys.prefix and keys.suffix:
        prefix, suffix = (text.replace("\\", "\\\\") for text in (keys.prefix, keys.suffix))
        return {"wildcard": f"{prefix}*{suffix}"}
    if keys.prefix:
        return {"prefix": keys.prefix}
    return {"suffix": keys.suffix} if keys.suffix else None
