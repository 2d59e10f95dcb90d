"""Reads what operators write: times, and the request to begin a backfill (`protocol §16.backfill`)."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from asya.capabilities.triggers.operators.answers import BackfillRequest
from asya.capabilities.triggers.operators.backfill import MOST_AT_ONCE, MOST_SLOTS, Backfill
from asya.capabilities.triggers.slots import slots_between
from asya.protocol.api_errors import ApiError
from asya.protocol.times import format_time, parse_time
from asya.protocol.triggers import Schedule, Trigger

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


def startable(name: str, trigger: Trigger) -> Schedule:
    """The schedule of a trigger that an operator may start tasks of.

    Raises:
        ApiError: 409 if it has no schedule, or is off.
    """
    if trigger.schedule is None:
        problem = f"the trigger {name!r} has no schedule, so no slot says what its payload is"
        raise ApiError(409, "not_startable", problem, "trigger")
    if not trigger.enabled:
        problem = f"the trigger {name!r} is off; `enabled`, or `run_triggers` of the stage, turns it on"
        raise ApiError(409, "not_startable", problem, "trigger")
    return trigger.schedule


def new_backfill(request: BackfillRequest, trigger: Trigger, backfill_id: str, by: str, now: datetime) -> Backfill:
    """Return the backfill that a request asks for.

    Raises:
        ApiError: 400 with the field; 409 if the trigger has no schedule, or is off.
    """
    schedule = startable(request.trigger, trigger)
    first, end = _moment("from", request.from_, schedule), _moment("to", request.to, schedule)
    if first > end:
        raise ApiError(400, "invalid_field", f"from is {request.from_}, which is after to, {request.to}", "from")
    until = min(end, now)
    _check_number("at_once", request.at_once, MOST_AT_ONCE)
    if request.stop_after is not None:
        _check_number("stop_after", request.stop_after, MOST_SLOTS)
    total = count_slots(schedule, first, until)
    if not total:
        problem = (
            f"{schedule.cron!r} in {schedule.timezone} has no slot from {request.from_} to {request.to} that is past"
        )
        raise ApiError(400, "invalid_field", problem, "from")
    if total > MOST_SLOTS:
        problem = f"a backfill has {MOST_SLOTS:,} slots at most; divide the time from {request.from_} to {request.to}"
        raise ApiError(400, "invalid_field", problem, "to")
    return Backfill(
        id=backfill_id,
        trigger=request.trigger,
        cron=schedule.cron,
        timezone=schedule.timezone,
        first=format_time(first),
        until=format_time(until),
        total=total,
        at_once=request.at_once,
        stop_after=request.stop_after,
        stop_at=request.stop_after,
        again=request.again,
        hold_paused=request.hold_paused,
        by=by,
        created_at=format_time(now),
        updated_at=format_time(now),
    )


def count_slots(schedule: Schedule, first: datetime, until: datetime) -> int:
    """Count the slots from `first` to `until`; one more than a backfill may have stands for any larger number."""
    if first > until:
        return 0
    return sum(1 for _ in islice(slots_between(schedule, first - datetime.resolution, until), MOST_SLOTS + 1))


def _moment(field: str, text: str, schedule: Schedule) -> datetime:
    read = read_start if field == "from" else read_end
    try:
        return read(text, schedule.timezone)
    except ValueError as error:
        raise ApiError(400, "invalid_field", f"{field} {error}", field) from None


def _check_number(field: str, number: int, most: int) -> None:
    if not 1 <= number <= most:
        raise ApiError(400, "invalid_field", f"{field} is {number}; it must be from 1 to {most:,}", field)
