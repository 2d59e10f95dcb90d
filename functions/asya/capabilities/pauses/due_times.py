"""Finds when an envelope at a wait actor is due (`protocol §11`)."""

from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Raw

from asya.protocol.raw_values import value_at
from asya.protocol.times import format_duration, parse_time
from asya.protocol.wait import Wait

# No honest wait is outside of these years, and epoch milliseconds are.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_TEXT_LIMIT = 100  # characters of a wrong value in an error


class DueTimeError(ValueError):
    """The payload has no usable time where the wait looks for it."""


def due_time(wait: Wait, payload: Raw, *, now: datetime) -> datetime:
    """When an envelope that arrives now goes on.

    Raises:
        DueTimeError: the payload has no time at the pointer of the wait.
    """
    if wait.until is None:
        return now + timedelta(seconds=wait.seconds or 0.0)
    value = value_at(payload, wait.until)
    if value is None:
        raise DueTimeError(f"the payload has no value at {wait.until!r}; {_expected(wait.until)}")
    return _time_of(wait.until, value)


def too_long(until: datetime, *, now: datetime, longest: timedelta) -> str | None:
    """The problem of a wait that would outlive its task's record or its held envelope; None if it does not."""
    if until - now <= longest:
        return None
    wanted, limit = (format_duration(span.total_seconds()) for span in (until - now, longest))
    return (
        f"the wait of {wanted} is too long: this mesh holds an envelope for {limit} at most "
        "(retention.tasks and retention.payloads)"
    )


def _time_of(pointer: str, value: Raw) -> datetime:
    text = bytes(value).decode("utf-8", "replace").strip()
    shown = text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}…"
    try:
        read = msgspec.json.decode(value)
        moment = parse_time(read) if isinstance(read, str) else _from_epoch(read)
    except (msgspec.MsgspecError, ValueError, OverflowError, OSError):
        moment = None
    if moment is None:
        raise DueTimeError(f"the payload has {shown} at {pointer!r}; {_expected(pointer)}")
    if not EARLIEST <= moment < LATEST:
        years = f"from {EARLIEST.year} to {LATEST.year - 1}"
        raise DueTimeError(
            f"the payload has {shown} at {pointer!r}; its year must be {years}, and epochs are in seconds"
        )
    return moment


def _from_epoch(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A timestamp that the platform cannot convert is far outside of the years.
    if not 0 <= value < LATEST.timestamp():
        return LATEST
    return datetime.fromtimestamp(value, UTC)


def _expected(pointer: str) -> str:
    return f'put a time such as "2026-12-24T18:00:00Z" or epoch seconds at {pointer!r}'
