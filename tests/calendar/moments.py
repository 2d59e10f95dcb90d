"""The days and zones on which the tests run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Callable

ZONES = ("Europe/Oslo", "Asia/Kolkata", "America/Los_Angeles", "Pacific/Kiritimati")
"""One with daylight saving, one with half an hour, one far behind UTC, and one where it is another day for most of the time."""
_CHANGES_OF = "Europe/Oslo"
"""Whose changes count in a zone without any: schedules have zones of their own."""
LEAD = timedelta(seconds=90)
"""How long before a change the tests start, so that they run across it."""


@dataclass(frozen=True)
class Moment:
    """A time at which the tests start.

    Attributes:
        name: What is typed for it.
        at: Returns the time, from that of the machine and the zone of the tests.
    """

    name: str
    at: Callable[[datetime, ZoneInfo], datetime]


def _later(days: int) -> Callable[[datetime, ZoneInfo], datetime]:
    return lambda now, _: now + timedelta(days=days)


def leap_day(now: datetime, zone: ZoneInfo) -> datetime:
    """Return noon of the next 29 February."""
    day = now.astimezone(zone).date()
    while (day.month, day.day) != (2, 29) or datetime(day.year, 2, 29, 12, tzinfo=zone) <= now:
        day += timedelta(days=1)
    return datetime(day.year, 2, 29, 12, tzinfo=zone).astimezone(UTC)


def new_year(now: datetime, zone: ZoneInfo) -> datetime:
    """Return a moment before the next New Year."""
    return datetime(now.astimezone(zone).year + 1, 1, 1, tzinfo=zone).astimezone(UTC) - LEAD


def change(now: datetime, zone: ZoneInfo, *, forward: bool) -> datetime:
    """Return a moment before the next change of daylight saving.

    Args:
        forward: Whether the clocks then show a later time.
    """
    for each in (zone, ZoneInfo(_CHANGES_OF)):
        hour = now.replace(minute=0, second=0, microsecond=0)
        for _ in range(366 * 24):
            before, after = (moment.astimezone(each).utcoffset() for moment in (hour, hour + timedelta(hours=1)))
            assert before is not None
            assert after is not None
            hour += timedelta(hours=1)
            if before != after and (after > before) == forward and hour - LEAD > now:
                return hour - LEAD
    raise AssertionError(f"{_CHANGES_OF} has no daylight saving any more")


MOMENTS = {
    each.name: each
    for each in (
        Moment("+1d", _later(1)),
        Moment("+45d", _later(45)),
        Moment("+400d", _later(400)),
        Moment("leap-day", leap_day),
        Moment("spring", lambda now, zone: change(now, zone, forward=True)),
        Moment("autumn", lambda now, zone: change(now, zone, forward=False)),
        Moment("new-year", new_year),
    )
}
