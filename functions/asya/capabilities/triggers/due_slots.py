"""Decides which slots of a schedule are due, and which were missed (`protocol §16.due`)."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from msgspec.structs import replace

from asya.capabilities.triggers.schedule_state import ScheduleState
from asya.capabilities.triggers.slots import slots_between
from asya.protocol.triggers import Schedule, Trigger

MOST_SLOTS = 200
"""Slots of one trigger that one sweep sends; the next sweep goes on."""
_MOST_MISSED = 1000


@dataclass(frozen=True, slots=True)
class Decision:
    """What a sweep does about one schedule.

    Attributes:
        due: the slots to start, oldest first.
        missed: the number of slots that were too late, 1,000 at most.
        state: the state after that; the present one if nothing changes.
        missed_between: the first and the last missed slot that were counted; None if no slot was missed.
    """

    due: tuple[datetime, ...]
    missed: int
    state: ScheduleState
    missed_between: tuple[datetime, datetime] | None = None


def decide(trigger: Trigger, schedule: Schedule, state: ScheduleState | None, now: datetime) -> Decision:
    """Decide about the slots up to now.

    A new schedule and one that was off or changed begin now. Slots while it is paused are neither due nor missed.
    """
    digest = schedule_digest(schedule)
    if state is None or (trigger.enabled and (state.off or state.schedule != digest)):
        paused = state.paused if state is not None else False
        return Decision((), 0, ScheduleState(decided=now, schedule=digest, paused=paused, off=not trigger.enabled))
    if not trigger.enabled:
        return Decision((), 0, state if state.off else replace(state, off=True))
    if state.paused:
        return Decision((), 0, state)
    # `catch_up` may be longer than all time before now. Nothing before the last decided slot counts anyway.
    oldest = now - min(timedelta(seconds=schedule.catch_up), now - state.decided)
    missed, start = list[datetime](), state.decided
    # A slot at the oldest time is still due.
    before = oldest - timedelta(microseconds=1)
    if start < before:
        missed = list(islice(slots_between(schedule, start, before), _MOST_MISSED))
        start = before
    due = tuple(islice(slots_between(schedule, start, now), MOST_SLOTS))
    between = (missed[0], missed[-1]) if missed else None
    if due:
        return Decision(due, len(missed), replace(state, decided=due[-1]), between)
    return Decision((), len(missed), replace(state, decided=before) if missed else state, between)


def schedule_digest(schedule: Schedule) -> str:
    """Name the slots of a schedule: those of another cron or zone have another digest."""
    return hashlib.sha256(f"{schedule.cron}\n{schedule.timezone}".encode()).hexdigest()[:16]
