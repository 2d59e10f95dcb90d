"""Schedules in a test: the slot that a test starts, and the next slot at which time stops."""

from datetime import datetime
from itertools import islice

from asya.capabilities.triggers.messages import slot_message
from asya.capabilities.triggers.occurrences import slot_key
from asya.capabilities.triggers.slots import is_slot, slots_after
from asya.protocol import ids
from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import format_time
from asya.testing.errors import TestKitError


def slot_start(table: MeshTable, name: str, at: datetime | None, now: datetime) -> tuple[str, str]:
    """The body of the message that starts the task of a slot, and the id of the task.

    Args:
        name: the name of the trigger.
        at: the slot; None for the next one.
        now: the time of the test.

    Raises:
        TestKitError: the mesh has no such trigger, or the time is no slot of it.
    """
    trigger = table.triggers.get(name)
    if trigger is None:
        raise TestKitError(f"the mesh has no trigger {name!r}; it has {', '.join(sorted(table.triggers)) or 'none'}")
    if trigger.schedule is None:
        raise TestKitError(f"the trigger {name!r} has no schedule")
    slot = at or next(slots_after(trigger.schedule, now))
    if not is_slot(trigger.schedule, slot):
        following = ", ".join(map(format_time, islice(slots_after(trigger.schedule, slot), 2)))
        raise TestKitError(f"{format_time(slot)} is no slot of the trigger {name!r}; the next ones are {following}")
    return slot_message(name, slot).decode(), ids.occurrence_id(name, slot_key(slot))


def seconds_to_slot(table: MeshTable, now: datetime) -> float | None:
    """Seconds to the next slot of the mesh; None without a schedule."""
    schedules = [each.schedule for each in table.triggers.values() if each.schedule is not None and each.enabled]
    slots = [next(slots_after(schedule, now)) for schedule in schedules]
    return (min(slots) - now).total_seconds() if slots else None
