"""Ending a task before its time (`protocol §13`, DELETE)."""

from datetime import datetime

from asya.protocol.events import EventData, TaskEvent
from asya.protocol.hops import HopFold
from asya.protocol.task import TaskRecord, merge
from asya.protocol.times import format_time
from asya.tasks.view import is_overdue


def canceled(record: TaskRecord, hops: HopFold, *, now: datetime) -> TaskRecord:
    """The record of a task that is canceled where its latest hop is; one that has ended, or is is_overdue, stays as it is."""
    if record.is_terminal or is_overdue(record, now):
        return record
    latest = hops.latest
    data = EventData(
        actor=latest.actor if latest else record.actor or "",
        route=hops.route(record.route),
        attempt=latest.attempt if latest else record.attempt,
        reason="Canceled",
    )
    return merge(record, _event(record, data, now))


def cancellation(record: TaskRecord, *, now: datetime) -> TaskEvent:
    """The report that a task was canceled with the one it came of."""
    return _event(record, EventData(reason="Canceled"), now)


def _event(record: TaskRecord, data: EventData, now: datetime) -> TaskEvent:
    return TaskEvent(id=record.id, status="canceled", at=format_time(now), generation=record.generation, data=data)
