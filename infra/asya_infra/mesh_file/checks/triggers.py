"""Checks the triggers: one source that S3 or EventBridge accepts, a tool or a route, and a payload with values (`protocol §16`)."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from asya.capabilities.triggers.occurrences import fill_in, slot_values
from asya.capabilities.triggers.sources.new_objects import Buckets, NewObject, object_occurrence, object_values
from asya.capabilities.triggers.sources.service_messages import BusEvent, event_values
from asya.capabilities.triggers.webhooks import VALUES_OF_WEBHOOKS
from asya.protocol import names
from asya.protocol.triggers import EventSource, ObjectSource, Trigger
from asya.runtime.secret_values import PARAMETER_PREFIX
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.checks.loops import LoopCheck, repeatable_source
from asya_infra.mesh_file.mesh_model import SOURCES, MeshFile, TriggerSection
from asya_infra.mesh_file.source import Location, did_you_mean

_OF_SCHEDULES = ("timezone", "catch_up")


def check_triggers(context: Context) -> Iterator[Finding]:
    """Check each trigger."""
    for name, section in context.mesh.triggers.items():
        place: Location = ("triggers", name)
        try:
            names.check_label(name, "trigger")
        except ValueError as error:
            yield place, str(error)
        yield from _source(section, place)
        yield from _start(context.mesh, section, place)
        yield from _input(section, place)
        yield from _lanes(section, place)
        yield from _webhook(section, place)
    yield from _shared_secrets(context.mesh)


def _shared_secrets(mesh: MeshFile) -> Iterator[Finding]:
    """Find webhooks with one secret: no scheme signs the trigger, so a caught call of one would start the other."""
    first: dict[str, str] = {}
    for name, section in mesh.triggers.items():
        if section.webhook is None:
            continue
        other = first.setdefault(_same_secret(section.webhook.secret), name)
        if other != name:
            problem = f"is the secret of the trigger {other!r} too, so a caught call of one would start the other"
            yield (
                ("triggers", name, "webhook", "secret"),
                f"{problem}; give each webhook a secret with a key of its own",
            )


def _same_secret(reference: str) -> str:
    """Return what two names of one secret share: the parameters `a` and `/a` have one ARN."""
    if not reference.startswith(PARAMETER_PREFIX):
        return reference
    return PARAMETER_PREFIX + reference.removeprefix(PARAMETER_PREFIX).removeprefix("/")


def _source(section: TriggerSection, place: Location) -> Iterator[Finding]:
    if not section.sources:
        yield place, f"has no source; add one of {', '.join(SOURCES)}"
    if len(section.sources) > 1:
        yield place, f"has {' and '.join(section.sources)}; a trigger has one source, so write a trigger for each"
    if section.cron is None:
        for key in _OF_SCHEDULES:
            if key in section.written:
                yield (*place, key), "is a key of triggers with cron only"


def _start(mesh: MeshFile, section: TriggerSection, place: Location) -> Iterator[Finding]:
    if section.tool is None and not section.route:
        yield place, "has neither a tool nor a route; add tool with the name of a tool, or route with a list of actors"
    if section.tool is not None and section.route:
        yield place, "has both a tool and a route; remove one of them"
    if section.tool is not None:
        if section.tool not in mesh.tools:
            yield (*place, "tool"), f"there is no tool {section.tool!r}{did_you_mean(section.tool, mesh.tools)}"
        if section.timeout is not None:
            yield (*place, "timeout"), "is a key of triggers with a route; a tool has its own timeout"


def _lanes(section: TriggerSection, place: Location) -> Iterator[Finding]:
    """Check overlap, debounce and batch (`protocol §16.lane`)."""
    windows = [key for key in ("debounce", "batch") if getattr(section, key) is not None]
    if "by" in section.written and section.overlap == "allow" and not windows:
        yield (*place, "by"), "is the key of overlap, debounce and batch; the trigger has none of them"
    if len(windows) > 1:
        yield (*place, "batch"), "conflicts with debounce; remove one of them"
    for key in windows:
        if section.cron is not None:
            yield (
                (*place, key),
                "is a key of triggers with s3, event or webhook; the slots of a schedule have their times",
            )
        if section.overlap == "skip":
            problem = f"conflicts with {key}: what it has gathered would be lost; use queue"
            yield (*place, "overlap"), problem
    if section.batch is not None and section.overlap == "cancel-previous":
        problem = "conflicts with batch: the canceled task has occurrences that the next one has not; use queue"
        yield (*place, "overlap"), problem


def _input(section: TriggerSection, place: Location) -> Iterator[Finding]:
    if section.payload is not None and "input" in section.written:
        yield (*place, "input"), "conflicts with payload; remove one of them"


def _webhook(section: TriggerSection, place: Location) -> Iterator[Finding]:
    webhook = section.webhook
    if webhook is not None and "header" in section.written["webhook"] and webhook.signature != "hmac-sha256":
        yield (*place, "webhook", "header"), f"is a key of hmac-sha256 only; {webhook.signature} has headers of its own"


_BUCKET = re.compile(r"data|results|(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_LONGEST_KEY = 1_024  # bytes of an object key
_BUS = re.compile(r"[A-Za-z0-9._/-]{1,256}")
_PATTERN_KEYS = ("source", "detail-type", "detail", "resources", "account", "region")


def check_sources(context: Context) -> Iterator[Finding]:
    """Check the triggers with `s3` or `event`."""
    for name, section in context.mesh.triggers.items():
        place: Location = ("triggers", name)
        takes_input = section.event is not None or section.webhook is not None or section.payload is not None
        if "input" in section.written and not takes_input:
            yield (*place, "input"), "is a key of triggers with event or webhook"
        if section.objects is not None:
            yield from _objects(section.objects, (*place, "s3"))
        if section.event is not None:
            yield from _event(section.event, (*place, "event"))
    for name, problem in LoopCheck(context.mesh, context.namespace).problems():
        yield ("triggers", name, repeatable_source(context.mesh.triggers[name])), problem


def _objects(section: ObjectSource, place: Location) -> Iterator[Finding]:
    if not _BUCKET.fullmatch(section.bucket):
        yield (*place, "bucket"), f"should be data, results or the name of a bucket; got {section.bucket!r}"
    for key in ("prefix", "suffix"):
        text: str = getattr(section, key)
        if len(text.encode()) > _LONGEST_KEY:
            yield (*place, key), f"has {len(text.encode()):,} bytes; keys have {_LONGEST_KEY:,} at most"
        if "*" in text:
            yield (*place, key), f"has no wildcards: what the keys begin or end with, as it is; got {text!r}"
    if section.prefix.startswith("/"):
        yield (*place, "prefix"), f"should not begin with /: keys do not; got {section.prefix!r}"


def _event(section: EventSource, place: Location) -> Iterator[Finding]:
    pattern = section.pattern
    if not pattern:
        yield place, f"matches nothing; add one of {', '.join(_PATTERN_KEYS)}"
    if not _BUS.fullmatch(section.bus):
        yield (*place, "bus"), f"should be the name of an event bus; got {section.bus!r}"
    for key, value in pattern.items():
        yield from _pattern_values(value, (*place, key), is_top=key != "detail")


def _pattern_values(value: object, place: Location, *, is_top: bool) -> Iterator[Finding]:
    """Check that each leaf of a pattern is a list, as EventBridge wants."""
    if isinstance(value, dict) and not is_top:
        if not value:
            yield place, "matches nothing; name a field, or remove it"
        for key, child in value.items():
            if key == "$or" and isinstance(child, list):
                continue
            yield from _pattern_values(child, (*place, key), is_top=False)
    elif not isinstance(value, list):
        yield place, f"should be a list of values, such as [{value}]"
    elif not value:
        yield place, "matches nothing; name a value, or remove it"


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
