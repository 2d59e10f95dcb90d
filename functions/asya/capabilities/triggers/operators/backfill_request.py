"""Reads the request to begin a backfill (`protocol §16.backfill`)."""

from datetime import datetime
from itertools import islice

from asya.capabilities.triggers.operators.answers import BackfillRequest
from asya.capabilities.triggers.operators.backfill import MOST_AT_ONCE, MOST_SLOTS, Backfill
from asya.capabilities.triggers.operators.local_times import read_end, read_start
from asya.capabilities.triggers.slots import slots_between
from asya.protocol.api_errors import ApiError
from asya.protocol.times import format_time
from asya.protocol.triggers import Schedule, Trigger


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
