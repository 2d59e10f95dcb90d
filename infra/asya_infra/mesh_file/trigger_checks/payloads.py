"""Checks the payloads of triggers: placeholders that have values, and the arguments of tools (`protocol §16.payload`)."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from asya.capabilities.triggers.occurrences import slot_values
from asya.capabilities.triggers.sources.bus_events import BusEvent, event_values
from asya.capabilities.triggers.sources.new_objects import Buckets, NewObject, object_occurrence, object_values
from asya.capabilities.triggers.templates import fill_in
from asya.capabilities.triggers.webhooks.deliveries import VALUES_OF_WEBHOOKS
from asya.protocol.triggers import ObjectSource, Trigger
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.problems import did_you_mean
from asya_infra.mesh_file.source import Location
from asya_infra.mesh_file.triggers.model import TriggerSection

# Occurrences whose values stand for those of any other.
_AT = datetime(2000, 1, 1, tzinfo=UTC)
_SOURCE = ObjectSource(bucket="data")
_OBJECT = NewObject("bucket", "key", 1, "etag", "version", "sequencer", _AT)
_EVENT = BusEvent("id", "source", "type", "2000-01-01T00:00:00Z", "account")


def check_payloads(context: Context) -> Iterator[Finding]:
    """Check the payload of each trigger."""
    for name, section in context.mesh.triggers.items():
        place: Location = ("triggers", name, "payload")
        values = _values(section)
        if section.payload is not None and values is not None:
            for key, child in section.payload.items():
                yield from _unquoted(child, values, (*place, key))
            try:
                fill_in(section.payload, values)
            except ValueError as error:
                yield place, str(error)
        yield from _arguments(context.mesh, section, place)


def _values(section: TriggerSection) -> Mapping[str, object] | None:
    """Return the values for a template; None for a trigger without a source."""
    if section.schedule is not None:
        return slot_values(section.schedule, _AT)
    if section.objects is not None:
        return object_values(_SOURCE, "s3://bucket/", "key", _OBJECT)
    if section.event is not None:
        return event_values(_EVENT)
    return VALUES_OF_WEBHOOKS if section.webhook is not None else None


def _unquoted(template: object, values: Mapping[str, object], place: Location) -> Iterator[Finding]:
    """Find placeholders without quotes, which YAML reads as mappings: `day: {date}`."""
    if isinstance(template, list):
        for index, child in enumerate(template):
            yield from _unquoted(child, values, (*place, index))
    if not isinstance(template, dict):
        return
    for key, child in template.items():
        if len(template) == 1 and child is None and key in values:
            yield place, f'is a mapping in YAML; put the placeholder in quotes: "{{{key}}}"'
        yield from _unquoted(child, values, (*place, key))


def _arguments(mesh: MeshFile, section: TriggerSection, place: Location) -> Iterator[Finding]:
    """Check that the payload has the arguments of its tool: no occurrence adds one, so each start would be a dead letter.

    Only the names count. A value may come from the occurrence, and each start checks it.
    """
    tool = mesh.tools.get(section.tool) if section.tool is not None else None
    given = _names_given(section)
    if tool is None or given is None:
        return
    required, known = tool.json_schema.get("required"), tool.json_schema.get("properties")
    advice = "" if section.payload is not None else "; add a payload with it"
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in given:
            yield place, f"has no {name!r}, which the input_schema of the tool {section.tool!r} requires{advice}"
    if isinstance(known, dict) and tool.json_schema.get("additionalProperties") is False:
        for name in sorted(given - known.keys()):
            yield (*place, name), f"is no argument of the tool {section.tool!r}{did_you_mean(name, known)}"


def _names_given(section: TriggerSection) -> set[str] | None:
    """Return the names in the payload of each task; None if they depend on the occurrence."""
    if section.batch is not None:
        return {"items"}
    if section.payload is not None:
        return set(section.payload)
    if section.schedule is not None:
        return set(slot_values(section.schedule, _AT))
    return _names_of_objects() if section.objects is not None else None


def _names_of_objects() -> set[str]:
    """Return the names that an object gives without a template, those of a bucket with versions."""
    buckets = Buckets(f"s3://{_OBJECT.bucket}/", "s3://results/")
    occurrence = object_occurrence("any", Trigger(objects=_SOURCE), _OBJECT, buckets)
    assert occurrence is not None, "the trigger asks for every key of the bucket"
    return set(msgspec.json.decode(occurrence.payload, type=dict[str, object]))
