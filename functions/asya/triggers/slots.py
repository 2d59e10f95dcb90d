"""Computes the slots of a schedule: Unix cron in a time zone, as Debian's cron reads it (`protocol §16.slots`)."""

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from asya.protocol.triggers import Schedule

_FIELDS = 5
_LONGEST_LOOK = timedelta(days=400)
# Reads the expression only; no slot is computed.
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def check_cron(text: str) -> str:
    """Return a cron expression of five fields that has slots.

    Raises:
        ValueError: it has no such form, or no slot within 50 years.
    """
    if len(text.split()) != _FIELDS:
        raise ValueError(f'should be a cron expression of five fields such as "0 2 * * *"; got {text!r}')
    try:
        next(CronSim(text, _ANY_TIME))
    except CronSimError as error:
        raise ValueError(f'should be a cron expression such as "0 2 * * *"; got {text!r}: {error}') from None
    except StopIteration:
        raise ValueError(f"{text!r} has no slot in 50 years") from None
    return text


def check_zone(name: str) -> str:
    """Return the name of a time zone.

    Raises:
        ValueError: there is no such zone.
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"should be a time zone such as Europe/Oslo; got {name!r}") from None
    return name


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
