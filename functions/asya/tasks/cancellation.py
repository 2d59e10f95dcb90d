"""Cancels a task (`protocol §13`, DELETE)."""

from datetime import datetime

from msgspec.structs import replace

from asya.protocol import states
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.hops import HopFold
from asya.protocol.task import Cancellation, TaskRecord
from asya.protocol.task_merge import merge
from asya.protocol.times import format_time
from asya.tasks.view import is_overdue


def cancel_record(record: TaskRecord, hops: HopFold, *, now: datetime, by: str) -> TaskRecord:
    """Cancel a task at its latest hop; a record that has ended or is overdue stays unchanged.

    Args:
        record: the record of the task.
        hops: the hops of its generation.
        now: the time.
        by: the principal of the caller.
    """
    if record.is_terminal or is_overdue(record, now):
        return record
    latest = hops.latest
    data = EventData(
        actor=latest.actor if latest else record.actor or "",
        route=hops.route(record.route),
        attempt=latest.attempt if latest else record.attempt,
        reason="Canceled",
    )
    return replace(merge(record, _event(record, data, now)), canceled=Cancellation(by=by, at=format_time(now)))


def cancellation_report(record: TaskRecord, *, now: datetime) -> TaskEvent:
    """Report that a task was canceled together with its ancestor."""
    return _event(record, EventData(reason="Canceled"), now)


def _event(record: TaskRecord, data: EventData, now: datetime) -> TaskEvent:
    return TaskEvent(id=record.id, status=states.CANCELED, at=format_time(now), generation=record.generation, data=data)
