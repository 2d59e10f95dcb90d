"""Checks the sources of triggers: what S3 and EventBridge accept, and loops (`protocol §16`)."""

import re
from collections.abc import Iterator

from asya.protocol.triggers import EventSource, ObjectSource
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.source import Location
from asya_infra.mesh_file.trigger_checks.loops import LoopCheck, repeatable_source

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
        yield from _values(value, (*place, key), is_top=key != "detail")


def _values(value: object, place: Location, *, is_top: bool) -> Iterator[Finding]:
    """Check that each leaf of a pattern is a list, as EventBridge wants."""
    if isinstance(value, dict) and not is_top:
        if not value:
            yield place, "matches nothing; name a field, or remove it"
        for key, child in value.items():
            if key == "$or" and isinstance(child, list):
                continue
            yield from _values(child, (*place, key), is_top=False)
    elif not isinstance(value, list):
        yield place, f"should be a list of values, such as [{value}]"
    elif not value:
        yield place, "matches nothing; name a value, or remove it"
