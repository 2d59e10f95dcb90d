"""The messages that operators cause on the queue `x-triggers` (`protocol §16.fire`, `§16.backfill`)."""

from datetime import datetime

import msgspec

from asya.capabilities.triggers.messages import scheduled
from asya.capabilities.triggers.occurrences import Occurrence, encode_payload, fill_in, slot_values
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import StartedBy
from asya.protocol.times import format_time, parse_time
from asya.protocol.triggers import SLOT_KEY, Schedule, Trigger

_FIRE_KEY = "fire "


class FireMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task that an operator starts without a slot.

    Attributes:
        fired: the name of the call; a repeated one has the same.
        at: the time whose values the payload has.
    """

    trigger: str
    fired: str
    at: str


class BackfillMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A backfill may have a next step."""

    backfill: str


_fire_decoder = msgspec.json.Decoder(FireMessage)
_backfill_decoder = msgspec.json.Decoder(BackfillMessage)


def fire_message(trigger: str, fired: str, at: datetime) -> bytes:
    """The message that starts a task of a schedule without a slot."""
    return msgspec.json.encode(FireMessage(trigger=trigger, fired=fired, at=format_time(at)))


def backfill_message(backfill_id: str) -> bytes:
    """The message that lets a backfill take its next step."""
    return msgspec.json.encode(BackfillMessage(backfill=backfill_id))


def read_fire(body: bytes, mesh: MeshTable) -> Occurrence | None:
    """Read the message of a call of `fire`; None if it is none.

    Raises:
        OtherDeploymentError: the mesh has no such trigger, or it has no schedule.
    """
    try:
        message = _fire_decoder.decode(body)
        at = parse_time(message.at)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, ValueError):
        return None
    trigger, schedule = scheduled(message.trigger, mesh)
    return fired_occurrence(message.trigger, trigger, schedule, message.fired, at)


def fired_occurrence(name: str, trigger: Trigger, schedule: Schedule, fired: str, at: datetime) -> Occurrence:
    """The occurrence of a call of `fire` without a slot."""
    values = slot_values(schedule, at)
    payload = fill_in(trigger.payload, values) if trigger.payload is not None else dict(values)
    return Occurrence(name, f"{_FIRE_KEY}{fired}", encode_payload(payload), StartedBy(kind="trigger", name=name))


def read_backfill(body: bytes) -> str | None:
    """Read the message about a backfill, and return its id; None if it is none."""
    try:
        return _backfill_decoder.decode(body).backfill
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def heeds_pause(occurrence: Occurrence) -> bool:
    """Whether a paused trigger starts no task of an occurrence (`protocol §16.pause`).

    The sweep heeds the pause for slots, so a slot that comes all the same was due before, or an operator asks for it.
    """
    return not occurrence.key.startswith((SLOT_KEY, _FIRE_KEY))


def pause_problem(trigger: str) -> str:
    """What the dead letter of an occurrence of a paused trigger says."""
    return f"the trigger {trigger!r} is paused; `asya trigger resume {trigger}` and a redrive of this letter start its task"
