"""A task: the record of one envelope id, and how reports change it (`protocol §13`).

Reports may come twice, late, out of order and from several sidecars at once. `merge` gives the same record for any order
of the same reports, but for the two things that the first one decides: `created_at`, and which terminal status stands.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from asya.protocol.errors import ErrorInfo
from asya.protocol.events import TERMINAL_STATUSES, TaskEvent
from asya.protocol.pause import DEFAULT_PROMPT, PauseRelease, TaskPause
from asya.protocol.route import Route

TaskStatus = Literal["pending", "running", "paused", "succeeded", "failed", "canceled"]
ViewStatus = Literal["pending", "running", "paused", "succeeded", "failed", "canceled", "unknown"]
"""`unknown` is shown of a task whose record is there and cannot be read; it is never written."""

_RANKS: dict[str, int] = {"pending": 0, "running": 1, "paused": 2, "succeeded": 3, "failed": 3, "canceled": 3}


# What is told of generations that are over is no more than it takes to know which error the redrive was about.
EARLIER_LIMIT = 10
EARLIER_MESSAGE_LIMIT = 1024


class EarlierGeneration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a generation came to before the task was reopened (`protocol §12`).

    Attributes:
        status: as far as it came; what arrives of it later may still end it here.
        ended_at, actor, reason, error: of its end, if it has ended; of the error type and message only.
    """

    generation: int
    status: TaskStatus
    ended_at: str | None = None
    actor: str | None = None
    reason: str | None = None
    error: ErrorInfo | None = None


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept about a task, once; its hops are kept beside it (`asya.protocol.hops`).

    Attributes:
        owner: principal id of who created it; None for nobody's, which only operators see.
        actor, route, attempt: as of its creation or, once terminal, of its end; in between the hops say more.
        pause_epoch: position at which it paused last (`protocol §11`).
        resumed_epoch: position of the last pause that a resume has ended; earlier ones are over too.
        pause: what it waits for, only while it is paused.
        handover: what of its last pause is still to be sent.
        earlier: the generations before this one, oldest first.
        context: which of its client's conversations it belongs to, in the client's words.
        is_watched: whether somebody wants to be told of each change; who and how stands beside the record.
    """

    id: str
    status: TaskStatus
    created_at: str
    updated_at: str
    generation: int = 0
    parent_id: str | None = None
    root_id: str | None = None
    owner: str | None = None
    deadline_at: str | None = None
    actor: str | None = None
    route: Route | None = None
    attempt: int | None = None
    result: Raw | UnsetType = UNSET
    result_uri: str | None = None
    error: ErrorInfo | None = None
    reason: str | None = None
    pause_epoch: int | None = None
    resumed_epoch: int | None = None
    pause: TaskPause | None = None
    handover: PauseRelease | None = None
    earlier: tuple[EarlierGeneration, ...] = ()
    context: str | None = None
    is_watched: bool = False

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended; it will not change any more but by a new generation."""
        return self.status in TERMINAL_STATUSES


def merge(record: TaskRecord | None, event: TaskEvent, *, owner: str | None = None) -> TaskRecord:
    """The record after a report.

    Args:
        record: the record so far; None where this report is the first word about the task.
        owner: whose task it is if neither the record nor the report says so: on children, that of the root.

    Returns:
        a record equal to `record` where the report is of no consequence to it: a lower status, an older generation, a repetition.
    """
    if record is None:
        return _born(event, owner)
    if event.generation < record.generation:
        return _with_earlier(record, _generation_of(event))
    identified = _identified(record, event, owner)
    if event.generation > record.generation:
        return _reopened(identified, event)
    status = _status_of(event)
    if record.is_terminal:
        return _with_late_result(identified, event)
    if status == "paused" or _RANKS[status] > _RANKS[record.status]:
        return _advanced(identified, event, status)
    return identified


def _status_of(event: TaskEvent) -> TaskStatus:
    """Registered, received, processing and completed all say that it is running."""
    match event.status:
        case "succeeded" | "failed" | "canceled" | "paused":
            return event.status
        case _:
            return "running"


def _born(event: TaskEvent, owner: str | None) -> TaskRecord:
    unknown = TaskRecord(id=event.id, status="pending", created_at=event.at, updated_at=event.at)
    identified = _identified(unknown, event, owner)
    return _advanced(replace(identified, generation=event.generation), event, _status_of(event))


def _identified(record: TaskRecord, event: TaskEvent, owner: str | None) -> TaskRecord:
    """What belongs to the task rather than to its progress: filled in once, by whichever report knows it first."""
    return replace(
        record,
        parent_id=record.parent_id or event.parent_id,
        root_id=record.root_id or event.root_id,
        owner=record.owner or event.data.owner or owner,
        deadline_at=record.deadline_at or event.data.deadline_at,
    )


def _advanced(record: TaskRecord, event: TaskEvent, status: TaskStatus) -> TaskRecord:
    if status == "paused":
        return _paused(record, event)
    data = event.data
    moved = replace(
        record,
        status=status,
        updated_at=event.at if status in TERMINAL_STATUSES else max(record.updated_at, event.at),
    )
    if status not in TERMINAL_STATUSES and record.route is not None:
        return moved
    moved = replace(
        moved,
        actor=data.actor or record.actor,
        route=data.route or record.route,
        attempt=data.attempt or event.attempt,
    )
    if status not in TERMINAL_STATUSES:
        return moved
    return replace(
        moved,
        result=data.result,
        result_uri=data.result_uri,
        error=data.error,
        reason=data.reason,
        pause=None,
        handover=_left_to_send(record, event, status),
    )


def _paused(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """The record after a report of a pause: only one further on than all that were resumed counts, of several the furthest."""
    over = -1 if record.resumed_epoch is None else record.resumed_epoch
    present = record.pause_epoch if record.status == "paused" and record.pause_epoch is not None else -1
    if event.position <= max(over, present):
        return record
    data = event.data
    return replace(
        record,
        status="paused",
        updated_at=max(record.updated_at, event.at),
        pause_epoch=event.position,
        pause=TaskPause(prompt=data.prompt or DEFAULT_PROMPT, fields=data.fields, since=event.at),
        actor=data.actor or record.actor,
        route=data.route or record.route,
        attempt=data.attempt or event.attempt,
        # It has come so far: whatever an earlier pause left to be sent has been.
        handover=None,
    )


def _left_to_send(record: TaskRecord, event: TaskEvent, status: TaskStatus) -> PauseRelease | None:
    """Of a task that is canceled while it is paused, x-sink gets what was kept. What is resumed goes on, and is stopped there."""
    if status != "canceled":
        return None
    if record.status == "paused" and record.pause_epoch is not None:
        return PauseRelease(to="x-sink", epoch=record.pause_epoch, at=event.at)
    return record.handover


def reopened(record: TaskRecord, generation: int, *, at: str) -> TaskRecord:
    """The record of a task that is about to be redriven: pending, in a generation above its own (`protocol §12`).

    What the generation so far came to is told by `earlier` alone from here on.
    """
    return replace(
        _with_earlier(record, _generation_so_far(record)),
        status="pending",
        generation=generation,
        updated_at=at,
        actor=None,
        route=None,
        attempt=None,
        result=UNSET,
        result_uri=None,
        error=None,
        reason=None,
        pause_epoch=None,
        resumed_epoch=None,
        pause=None,
        handover=None,
    )


def _reopened(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """A redriven envelope starts the task again."""
    return _advanced(reopened(record, event.generation, at=event.at), event, _status_of(event))


def _generation_so_far(record: TaskRecord) -> EarlierGeneration:
    if not record.is_terminal:
        return EarlierGeneration(generation=record.generation, status=record.status)
    return EarlierGeneration(
        generation=record.generation,
        status=record.status,
        ended_at=record.updated_at,
        actor=record.actor,
        reason=record.reason,
        error=_short(record.error),
    )


def _generation_of(event: TaskEvent) -> EarlierGeneration:
    """What a report says about its generation, when a later one has begun."""
    status = _status_of(event)
    if status not in TERMINAL_STATUSES:
        return EarlierGeneration(generation=event.generation, status=status)
    return EarlierGeneration(
        generation=event.generation,
        status=status,
        ended_at=event.at,
        actor=event.data.actor or None,
        reason=event.data.reason,
        error=_short(event.data.error),
    )


def _with_earlier(record: TaskRecord, told: EarlierGeneration) -> TaskRecord:
    """The record with a generation noted that is over: the further word about it counts, of two ends the first."""
    known = {each.generation: each for each in record.earlier}
    was = known.get(told.generation)
    if was is not None and _RANKS[told.status] <= _RANKS[was.status]:
        return record
    known[told.generation] = told
    return replace(record, earlier=tuple(known[number] for number in sorted(known))[-EARLIER_LIMIT:])


def _short(error: ErrorInfo | None) -> ErrorInfo | None:
    return error and ErrorInfo(type=error.type, message=error.message[:EARLIER_MESSAGE_LIMIT])


def _with_late_result(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """x-sink may have reported before its upload worked; then it says later where the object is (`protocol §11`)."""
    if record.result_uri is None and event.status == record.status and event.data.result_uri:
        return replace(record, result_uri=event.data.result_uri)
    return record
