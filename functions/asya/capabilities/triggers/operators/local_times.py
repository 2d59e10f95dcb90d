"""Reads the times that operators write: a time, or a day or a local time in the zone of a schedule (`protocol §16`)."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from asya.protocol.times import parse_time

# Before it there is no slot that anybody asks for. A year 1 is the empty time of some languages.
_EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
_EXAMPLES = "2026-11-25, 2026-11-25T02:00 or 2026-11-25T01:00:00Z"


def read_moment(text: str, zone: str) -> datetime:
    """Read a time, or a local time in a zone.

    A local time that comes twice is the first one; one that the clock skips is the end of the gap.

    Raises:
        ValueError: the text is neither, or its year is before 1900.
    """
    try:
        return _checked(parse_time(text))
    except ValueError:
        pass
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"should be a time such as {_EXAMPLES}; got {text!r}") from None
    return _utc(local, zone)


def read_start(text: str, zone: str) -> datetime:
    """Read the earliest time of a range: a time, or a day in a zone, which begins at its midnight.

    Raises:
        ValueError: the text is neither, or its year is before 1900.
    """
    day = _day(text)
    return _utc(datetime.combine(day, time()), zone) if day is not None else read_moment(text, zone)


def read_end(text: str, zone: str) -> datetime:
    """Read the latest time of a range: a time, or a day in a zone, which is included.

    Raises:
        ValueError: the text is neither, or its year is before 1900.
    """
    day = _day(text)
    if day is None:
        return read_moment(text, zone)
    try:
        following = datetime.combine(day, time()) + timedelta(days=1)
    except OverflowError:
        raise ValueError(f"should be a time such as {_EXAMPLES}; got {text!r}") from None
    return _utc(following, zone) - timedelta(microseconds=1)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _utc(local: datetime, zone: str) -> datetime:
    try:
        if local.tzinfo is not None:
            return _checked(local.astimezone(UTC))
        found = local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        wall = found.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    except OverflowError:
        raise ValueError(f"should be a time such as {_EXAMPLES}; got {local.isoformat()!r}") from None
    # The clock skips this local time: by the old offset it lies after the gap, as far as it lay after its begin.
    return _checked(found if wall == local else _end_of_gap(local, zone))


def _checked(moment: datetime) -> datetime:
    if moment < _EARLIEST:
        raise ValueError(f"should be a time since {_EARLIEST.year} such as {_EXAMPLES}; got {moment.isoformat()!r}")
    return moment


def _end_of_gap(local: datetime, zone: str) -> datetime:
    """The first moment after the gap in which a local time lies."""
    before = local.replace(tzinfo=ZoneInfo(zone), fold=0).utcoffset() or timedelta(0)
    after = local.replace(tzinfo=ZoneInfo(zone), fold=1).utcoffset() or timedelta(0)
    # A minute is the smallest step of a schedule, and gaps begin at full minutes.
    moment = (local - max(before, after)).replace(tzinfo=UTC, second=0, microsecond=0)
    while moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) < local:
        moment += timedelta(minutes=1)
    return moment
