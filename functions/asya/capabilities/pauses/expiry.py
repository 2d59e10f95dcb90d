"""Ends pauses that would outlive their record (`protocol §11`)."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from asya.protocol.errors import ErrorInfo
from asya.protocol.pause import PauseFailure, PauseRelease
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_duration, format_time, parse_time


def expire_pause(record: TaskRecord, limit: timedelta, *, now: datetime) -> TaskRecord:
    """The record of a task whose pause has lasted too long: failed, with a release of its envelope to x-sink.

    Another record stays unchanged: one that is not paused, or not for so long.
    """
    if record.status != "paused" or record.pause is None or record.pause_epoch is None:
        return record
    if now - parse_time(record.pause.since) < limit:
        return record
    message = f"The pause at {record.actor} was not answered within {format_duration(limit.total_seconds())}"
    error, at = ErrorInfo(type="Timeout", message=message), format_time(now)
    failure = PauseFailure(reason="Timeout", error=error)
    return replace(
        record,
        status="failed",
        updated_at=max(record.updated_at, at),
        reason="Timeout",
        error=error,
        pause=None,
        handover=PauseRelease(to="x-sink", epoch=record.pause_epoch, at=at, failure=failure),
    )
