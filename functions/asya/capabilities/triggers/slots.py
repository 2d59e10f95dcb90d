"""Computes the slots of a schedule: Unix cron in a time zone, as Debian's cron reads it (`protocol §16.slots`)."""

import re
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from asya.protocol.triggers import Schedule

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
