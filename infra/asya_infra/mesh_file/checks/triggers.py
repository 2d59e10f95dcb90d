"""Checks the triggers: one source, a tool or a route, and keys that fit each other (`protocol §16`)."""

from collections.abc import Iterator

from asya.protocol import names
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.problems import did_you_mean
from asya_infra.mesh_file.source import Location
from asya_infra.mesh_file.triggers.model import SOURCES, TriggerSection

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
