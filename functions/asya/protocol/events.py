"""Reports about tasks, as the report queues and the batch endpoint of the gateway take them (`protocol §13`).

One event is one item of a message on `x-reports` or `x-ends`, and of `POST /api/v1/mesh/events`. Events are idempotent: id,
generation, position, attempt and status identify one.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from asya.protocol import states
from asya.protocol.envelope import Route
from asya.protocol.errors import ErrorInfo, TaskProblem
from asya.protocol.pause import PauseField, ShownValue
from asya.protocol.run_progress import RunNote
from asya.protocol.states import EventStatus

_PHASES: dict[str, int] = {
    states.REGISTERED: 0,
    states.RECEIVED: 1,
    states.PROCESSING: 2,
    states.COMPLETED: 3,
    states.WAITING: 4,
    states.PAUSED: 4,
    states.SUCCEEDED: 5,
    states.FAILED: 5,
    states.CANCELED: 5,
}

EVENT_LIMIT = 256 * 1024
"""Bytes of one report; a record must stay below DynamoDB's 400 KB."""
COUNT_LIMIT = 999_999
"""Largest position, attempt and sequence: keys of the tasks table have six digits for each."""
RECEIVE_LIMIT = 9_999
PARTIAL_LIMIT = 64 * 1024
"""Bytes of one partial."""
TRACE_ID = "^[0-9a-f]{32}$"
INLINE_RESULT_LIMIT = 64 * 1024
"""Bytes of a result that travels in its report; a report names the object of a larger result."""


class RetryNote(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a failed attempt that is followed by another one (`protocol §13.retry`).

    Attributes:
        error: the error of this attempt.
        max_attempts: the attempts that the policy allows.
        next_at: when the next attempt is due.
    """

    error: ErrorInfo
    max_attempts: int
    next_at: str


class EventData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of an event. The status of the event decides which fields are set (`protocol §13`).

    Attributes:
        trace_id: of a trace that X-Ray gets.
        provisional: whether another end of this generation replaces this one (`protocol §11`).
        waiting_until: when a wait, or a pause with a timer, is due.
        callback: the link that answers a pause.
        shown: what a pause shows of the payload.
        set_id: the set that takes the task as a slice.
    """

    actor: str = ""
    route: Route | None = None
    attempt: int | None = None
    message_size_kb: float | None = None
    trace_id: Annotated[str, Meta(pattern=TRACE_ID)] | None = None
    duration_ms: float | None = None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result_uri: str | None = None
    error: ErrorInfo | None = None
    reason: str | None = None
    provisional: bool = False
    owner: str | None = None
    created_at: str | None = None
    deadline_at: str | None = None
    run: RunNote | None = None
    prompt: str | None = None
    fields: tuple[PauseField, ...] = ()
    problem: TaskProblem | None = None
    retry: RetryNote | None = None
    waiting_until: str | None = None
    callback: str | None = None
    shown: tuple[ShownValue, ...] = ()
    set_id: str | None = None


class TaskEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One report about one envelope. `at` is the time at the reporter (RFC 3339).

    Attributes:
        key: the key of the task, from an actor with code of users (`protocol §4.keys`).
        row: of an end, its row of the index of results (`protocol §11.index`).
    """

    id: str
    status: EventStatus
    at: str
    type: Literal["status"] = "status"
    generation: int = 0
    position: int = 0
    attempt: int = 1
    parent_id: str | None = None
    root_id: str | None = None
    data: EventData = EventData()
    key: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    row: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class PartialEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A partial of a handler (`protocol §7`, FLY). Streams show it; the task record never holds it.

    Attributes:
        data: a JSON object.
        receive: the receive count of the hop's message. A redelivered hop publishes all its partials again.
        sequence: the number of the partial within one receive of the hop, from 0.
        key: the key of the task, from an actor with code of users.
    """

    id: str
    at: str
    data: msgspec.Raw
    type: Literal["fly"] = "fly"
    actor: str = ""
    generation: int = 0
    position: int = 0
    attempt: int = 1
    receive: int = 1
    sequence: int = 0
    key: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


Report = TaskEvent | PartialEvent


def is_end(report: Report) -> bool:
    """Whether a report ends its task, or holds its envelope in a pause or a wait; only the crew makes such reports."""
    return isinstance(report, TaskEvent) and (report.status in states.AT_REST or report.status == states.WAITING)


def report_order(event: TaskEvent) -> tuple[int, int, int, int]:
    """Sorts the reports of one task as they were made; they arrive in any order."""
    return (event.generation, event.position, event.attempt, _PHASES[event.status])


class EventResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one event of a batch: 204 is accepted, 400 and 404 are final refusals, 5xx asks for a retry."""

    id: str
    status: int
    error: str | None = None


class EventResults(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the batch endpoint, in the order of the request."""

    items: tuple[EventResult, ...]
