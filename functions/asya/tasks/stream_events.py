"""What those who follow a task are told, one piece at a time (`protocol §13`, `GET …/events`; `§7`, FLY)."""

from typing import Literal

import msgspec
from msgspec import Raw

from asya.protocol.events import Progress
from asya.protocol.pause import TaskPause
from asya.protocol.route import Route
from asya.protocol.run_progress import RunNote
from asya.protocol.task import ViewStatus

StreamEventType = Literal["status", "partial", "final"]


class StreamStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step of a task, or a change of its status; how it ends is told by its whole record instead.

    Attributes:
        status: how the task stands when this is shown; a step that is told late does not take it back.
        progress_percent: never less than what was shown before.
        step: what happened at the hop; None where the task as a whole has changed.
        at: when it happened.
        message_size_kb, duration_ms: kilobytes, milliseconds, as reported.
        is_snapshot: whether this stands for everything so far: it was not known, or not for sure, what had been shown.
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
    pause: TaskPause | None = None
    is_snapshot: bool = msgspec.field(default=False, name="snapshot")


class StreamPartial(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler said to those who look on.

    Attributes:
        receive: tells the runs of one attempt apart: a redelivered hop says everything again.
        sequence: the how-manieth message of that run, from 0.
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
