"""Computes the slots of a schedule in Debian's cron form, and which are due (`protocol §16.slots`, `§16.due`)."""

import hashlib
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError
from msgspec.structs import replace

from asya.protocol.triggers import Schedule, Trigger

# The fields of an expression, with the number of their values.
_FIELDS = {"minute": 60, "hour": 24, "day of the month": 31, "month": 12, "day of the week": 7}
_STEP = re.compile(r"(?:(?P<first>\d+)-(?P<last>\d+)|[^/]*)/(?P<step>\d+)")
_LONGEST_LOOK = timedelta(days=400)
# Reads the expression only; no slot is computed.
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def check_cron(text: str) -> str:
    """Return a cron expression of five fields that has slots.

    Raises:
        ValueError: it has no such form, a step that is longer than its field, or no slot within 50 years.
    """
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f'should be a cron expression of five fields such as "0 2 * * *"; got {text!r}')
    try:
        next(CronSim(text, _ANY_TIME))
    except CronSimError as error:
        raise ValueError(f'should be a cron expression such as "0 2 * * *"; got {text!r}: {error}') from None
    except StopIteration:
        raise ValueError(f"{text!r} has no slot in 50 years") from None
    for field, (name, size) in zip(fields, _FIELDS.items(), strict=True):
        for item in field.split(","):
            _check_step(item, name, size)
    return text


def _check_step(item: str, name: str, size: int) -> None:
    """Refuse a step over the end of its field: cron begins anew there, so `*/90` minutes would be each hour."""
    found = _STEP.fullmatch(item)
    if found is None:
        return
    values = int(found["last"]) - int(found["first"]) + 1 if found["first"] else size
    if int(found["step"]) > values:
        raise ValueError(
            f"{item!r} steps over the {values} values of the {name}, so it has the first of them alone. Cron "
            f"counts no steps beyond its field. Use a step up to {values}, or list the values"
        )


def slots_after(schedule: Schedule, moment: datetime) -> Iterator[datetime]:
    """The slots later than a time, in UTC, oldest first.

    A fixed local time that the clock skips in spring becomes the end of the gap. One that comes twice in autumn is one slot, the
    first. Expressions with `*` in the minute or the hour go by elapsed time.
    """
    local = moment.astimezone(ZoneInfo(schedule.timezone))
    for slot in CronSim(schedule.cron, local):
        if (found := slot.astimezone(UTC)) > moment:
            yield found


def slots_between(schedule: Schedule, after: datetime, until: datetime) -> Iterator[datetime]:
    """The slots later than `after`, up to and including `until`."""
    for slot in slots_after(schedule, after):
        if slot > until:
            return
        yield slot


def last_slot(schedule: Schedule, moment: datetime) -> datetime | None:
    """The latest slot at or before a time; None without one in the 400 days before it."""
    span = timedelta(minutes=2)
    while not (found := deque(slots_between(schedule, moment - span, moment), maxlen=1)) and span < _LONGEST_LOOK:
        span = min(8 * span, _LONGEST_LOOK)
    return found[0] if found else None


def is_slot(schedule: Schedule, moment: datetime) -> bool:
    """Whether a time is a slot of the schedule."""
    try:
        return next(slots_after(schedule, moment - timedelta(seconds=1)), None) == moment
    except OverflowError:
        return False  # the calendar ends before the next slot


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one schedule.

    Attributes:
        decided: the last slot that was decided, or the time at which the schedule began.
        schedule: the digest of cron and zone that `decided` belongs to.
        paused: whether an operator has paused the trigger.
        off: whether the deployment has turned the trigger off.
    """

    decided: datetime
    schedule: str
    paused: bool = False
    off: bool = False


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
