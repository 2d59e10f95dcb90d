"""The events of a task's stream (`protocol §13`, `GET …/events`; `§7`, FLY)."""

from typing import Literal

import msgspec
from msgspec import Raw

from asya.protocol.events import Progress
from asya.protocol.pause import TaskPause
from asya.protocol.route import Route
from asya.protocol.run_progress import RunNote
from asya.protocol.task import ViewStatus
from asya.tasks.view import RetryView

StreamEventType = Literal["status", "partial", "final"]


class StreamStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress at a hop, or a change of the task's status; the final event is the whole view instead.

    Attributes:
        status: the current status of the task, also for a step that is reported late.
        progress_percent: never lower than in an earlier event.
        step: the progress at the hop; None if the task as a whole changed.
        at: the time of the change.
        message_size_kb, duration_ms: kilobytes and milliseconds, as reported.
        is_snapshot: whether the event replaces all earlier ones, because the cursor does not name them exactly.
    """

    id: str
    status: ViewStatus
    progress_percent: int
    generation: int
    at: str
    step: Progress | None = None
    actor: str | None = None
    route: Route | None = None
    position: int | None = None
    attempt: int | None = None
    message_size_kb: float | None = None
    duration_ms: float | None = None
    run: RunNote | None = None
    retry: RetryView | None = None
    pause: TaskPause | None = None
    waiting_until: str | None = None
    is_snapshot: bool = msgspec.field(default=False, name="snapshot")


class StreamPartial(msgspec.Struct, frozen=True, kw_only=True):
    """A partial of a handler.

    Attributes:
        receive: separates the runs of one attempt, because a redelivered hop publishes its partials again.
        sequence: the number of the partial within its run, from 0.
    """

    id: str
    actor: str
    generation: int
    position: int
    attempt: int
    receive: int
    sequence: int
    at: str
    data: Raw
