"""Builds times, routes and reports for tests."""

from datetime import UTC, datetime, timedelta

from asya.protocol.envelope import Route
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import EventData, RetryNote, TaskEvent
from asya.protocol.run_progress import RunNote
from asya.protocol.states import EventStatus
from asya.protocol.times import format_time

START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
ACTORS = ("inspect-dataset", "clean-flights", "publish-report")


def at(seconds: float) -> datetime:
    """Return the time this many seconds after `START`."""
    return START + timedelta(seconds=seconds)


def route_at(position: int, actors: tuple[str, ...] = ACTORS) -> Route:
    """Return the route of an envelope at a position, from 0."""
    return Route(actors[:position], actors[position] if position < len(actors) else "", actors[position + 1 :])


def event(task_id: str, status: EventStatus, position: int = 0, seconds: float = 0.0, **more: object) -> TaskEvent:
    """A report; keyword arguments of the data and of the event itself may be mixed."""
    route = route_at(position)
    of_event = {name: more.pop(name) for name in ("generation", "attempt", "parent_id", "root_id") if name in more}
    data = {"actor": route.curr or ACTORS[-1], "route": route, "attempt": of_event.get("attempt", 1)} | more
    return TaskEvent(
        id=task_id,
        status=status,
        at=format_time(at(seconds)),
        position=position,
        data=EventData(**data),  # type: ignore[arg-type]
        **of_event,  # type: ignore[arg-type]
    )


def retry_note(number: int, *, max_attempts: int = 5) -> RetryNote:
    """What a failed attempt reports; the next one is due this many minutes after `START`."""
    error = ErrorInfo(type="ConnectionError", message=f"refused {number}", traceback="Traceback")
    return RetryNote(error=error, max_attempts=max_attempts, next_at=format_time(at(number * 60)))


def run_note(seconds: float) -> RunNote:
    """The progress of a job run at a time after `START`."""
    return RunNote(
        run_id="r", job_run_id="j", state="RUNNING", at=format_time(at(seconds)), envelopes=1, done=int(seconds)
    )


def hop(task_id: str, position: int, **more: object) -> list[TaskEvent]:
    """Build the three reports of a successful hop."""
    start = float(position * 10)
    return [
        event(task_id, "received", position, start, message_size_kb=1.5, **more),
        event(task_id, "processing", position, start + 1, **more),
        event(task_id, "completed", position, start + 5, duration_ms=4000.0, **more),
    ]
