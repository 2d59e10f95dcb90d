"""The messages of the queue `x-triggers` (`protocol §16.messages`)."""

from datetime import datetime

import msgspec

from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import format_time, parse_time
from asya.protocol.triggers import Schedule, Trigger
from asya.triggers.occurrences import Occurrence, slot_occurrence
from asya.triggers.slots import is_slot


class UnusableMessageError(Exception):
    """A message that starts nothing, and never will."""


class SlotMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A slot of a schedule that is due."""

    trigger: str
    slot: str


_decoder = msgspec.json.Decoder(SlotMessage)


def slot_message(trigger: str, slot: datetime) -> bytes:
    """The message that starts the task of a slot."""
    return msgspec.json.encode(SlotMessage(trigger=trigger, slot=format_time(slot)))


def read_occurrences(body: bytes, mesh: MeshTable) -> list[Occurrence]:
    """What the message of a source tells.

    Raises:
        UnusableMessageError: the message has no known form, or it is of no trigger of the mesh.
    """
    try:
        message = _decoder.decode(body)
        slot = parse_time(message.slot)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise UnusableMessageError(f"the message is of no source of triggers: {error}") from None
    trigger, schedule = scheduled(message.trigger, mesh)
    if not is_slot(schedule, slot):
        raise UnusableMessageError(f"{message.slot} is no slot of {schedule.cron!r} in {schedule.timezone}")
    return [slot_occurrence(message.trigger, trigger, schedule, slot)]


def scheduled(name: str, mesh: MeshTable) -> tuple[Trigger, Schedule]:
    """The trigger of a name, and its schedule.

    Raises:
        UnusableMessageError: the mesh has no such trigger, or it has no schedule.
    """
    trigger = mesh.triggers.get(name)
    if trigger is None:
        raise UnusableMessageError(f"the mesh has no trigger {name!r}")
    if trigger.schedule is None:
        raise UnusableMessageError(f"the trigger {name!r} has no schedule")
    return trigger, trigger.schedule
