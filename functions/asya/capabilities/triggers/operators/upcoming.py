"""Finds the slots between now and a later time, in order, for a local cloud (`protocol §16.local`)."""

import heapq
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby

from asya.capabilities.triggers.schedule_state import ScheduleState
from asya.capabilities.triggers.slots import slots_between
from asya.protocol.triggers import Trigger


def upcoming(
    triggers: Mapping[str, Trigger], states: Mapping[str, ScheduleState], now: datetime, until: datetime
) -> Iterator[tuple[datetime, list[str]]]:
    """The times up to `until` at which slots are due that were not decided yet, each with the names of its triggers.

    Triggers that are off or paused have none.
    """
    slots = heapq.merge(*(_slots(name, trigger, states.get(name), now, until) for name, trigger in triggers.items()))
    for moment, group in groupby(slots, key=lambda slot: slot[0]):
        yield moment, [name for _, name in group]


def _slots(
    name: str, trigger: Trigger, state: ScheduleState | None, now: datetime, until: datetime
) -> Iterator[tuple[datetime, str]]:
    if trigger.schedule is None or not trigger.enabled or (state is not None and state.paused):
        return
    after = max(now, state.decided) if state is not None else now
    for slot in slots_between(trigger.schedule, after, until):
        yield slot, name
