"""What a trigger reacts to, and the task that it starts with a filled payload (`protocol §16`, `§16.payload`)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Raw

from asya.protocol import ids
from asya.protocol.json_pointer import parts
from asya.protocol.mesh_table import MeshTable
from asya.protocol.strict_json import encode_exact
from asya.protocol.task import StartedBy
from asya.protocol.times import format_time
from asya.protocol.triggers import OWNER_PREFIX, SLOT_KEY, Schedule, Trigger
from asya.tasks.starts.submission import Submission
from asya.tasks.starts.tools import ToolInvocation, tool_submission


def part_at(value: object, pointer: str) -> object:
    """The part of a value that a pointer names.

    Raises:
        ValueError: the value has no such part.
    """
    for part in parts(pointer):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and str(int(part)) == part and int(part) < len(value):
            value = value[int(part)]
        else:
            raise ValueError(f"there is no {pointer} in it: {part!r} is missing")
    return value


_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_ALONE = re.compile(r"\{([^{}]*)\}")


def fill_in(template: object, values: Mapping[str, object]) -> object:
    """Return the template with its placeholders replaced, in texts at any depth; keys stay.

    A text that is one placeholder becomes the value itself, which need not be text.

    Raises:
        ValueError: a placeholder has no value, or a brace stands alone.
    """
    match template:
        case str() if alone := _ALONE.fullmatch(template):
            return _named(alone[1], values)
        case str():
            return _PLACEHOLDER.sub(lambda match: _value(match, values), template)
        case dict():
            return {key: fill_in(value, values) for key, value in template.items()}
        case list() | tuple():
            return [fill_in(value, values) for value in template]
        case _:
            return template


def _value(match: re.Match[str], values: Mapping[str, object]) -> str:
    text = match[0]
    if text in ("{{", "}}"):
        return text[0]
    name = match[1]
    if name is None:
        raise ValueError(f"{text!r} stands alone; write {text * 2!r} for the character")
    value = _named(name, values)
    if not isinstance(value, str):
        raise ValueError(f"{{{name}}} stands for a value that is no text, so it cannot be a part of one")
    return value


def _named(name: str, values: Mapping[str, object]) -> object:
    if name not in values:
        known = ", ".join(f"{{{each}}}" for each in sorted(values))
        raise ValueError(f"there is no value {{{name}}}; the values are {known}")
    return values[name]


Validate = Callable[[dict[str, object], Any], Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One thing that a trigger reacts to.

    Attributes:
        trigger: the name of the trigger.
        key: names the occurrence among those of its trigger; a repetition has the same key.
        payload: the payload of the task.
        started_by: who started the task.
        cause: the id of the task that has caused it, if the source tells; it need not be one of the mesh.
    """

    trigger: str
    key: str
    payload: Raw
    started_by: StartedBy
    cause: str | None = None

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return ids.occurrence_id(self.trigger, self.key)

    @property
    def slot_task_id(self) -> str | None:
        """The id of the task with which the slot of this occurrence started first; None for one without a slot."""
        slot = self.started_by.slot
        return ids.occurrence_id(self.trigger, f"{SLOT_KEY}{slot}") if slot is not None else None

    @property
    def owner(self) -> str:
        """The owner of the task."""
        return owner_of(self.trigger)


def owner_of(trigger: str) -> str:
    """The owner of the tasks of a trigger."""
    return f"{OWNER_PREFIX}{trigger}"


def slot_key(slot: datetime) -> str:
    """The key of the occurrence of a slot."""
    return f"{SLOT_KEY}{format_time(slot)}"


def slot_values(schedule: Schedule, slot: datetime) -> dict[str, str]:
    """The values of a slot: date and time in the zone of the schedule, and the time in UTC.

    In an hour that comes twice, the times of its second pass have their offset, so that no two slots have the same values.
    """
    local = slot.astimezone(ZoneInfo(schedule.timezone))
    offset = local.isoformat(timespec="minutes")[len("2026-11-25T02:00") :] if local.fold else ""
    return {
        "date": local.strftime("%Y-%m-%d"),
        "time": f"{local.strftime('%H:%M')}{offset}",
        "scheduled_at": format_time(slot),
    }


def slot_occurrence(name: str, trigger: Trigger, schedule: Schedule, slot: datetime) -> Occurrence:
    """The occurrence of a slot."""
    values = slot_values(schedule, slot)
    payload = fill_in(trigger.payload, values) if trigger.payload is not None else dict(values)
    started_by = StartedBy(kind="trigger", name=name, slot=format_time(slot))
    return Occurrence(name, slot_key(slot), encode_payload(payload), started_by)


def encode_payload(payload: object) -> Raw:
    """A payload as every actor can read it: JSON in ASCII."""
    return encode_exact(payload)


def submission_of(trigger: Trigger, payload: Raw, mesh: MeshTable, validate: Validate) -> Submission:
    """The request to start the task of an occurrence.

    Raises:
        ApiError: the payload does not fit the tool's schema; 404 if the mesh has no such tool.
    """
    if trigger.tool is not None:
        return tool_submission(ToolInvocation(trigger.tool, payload), mesh, validate)
    first, *rest = trigger.route
    timeout = timedelta(seconds=trigger.timeout) if trigger.timeout is not None else None
    return Submission(actor=first, payload=payload, headers={}, timeout=timeout, next=tuple(rest))
