"""Builds the view of a task from its record, its hops and the clock (`protocol §13`)."""

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from asya.function.outage_words import Outages, no_outages
from asya.protocol import states
from asya.protocol.envelope import HIGHEST_BEFORE_END, Route
from asya.protocol.errors import ErrorInfo, TaskProblem
from asya.protocol.hops import HopFold
from asya.protocol.pause import TaskPause
from asya.protocol.run_progress import RunNote
from asya.protocol.states import ViewStatus
from asya.protocol.task import Cancellation, EarlierGeneration, Resolution, StartedBy, TaskRecord
from asya.protocol.times import parse_time
from asya.tasks.failures import failure_kind, shortened_error

TIMEOUT_ERROR = ErrorInfo(type="Timeout", message="task timed out")


class RetryView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last failed attempt of a task that runs again (`protocol §13.retry`).

    Attributes:
        attempt, max_attempts: the attempt that failed, and the attempts that the policy allows.
        error: type and message of its error.
        failed_at: when it failed.
        next_at: when the next attempt is due; None once it has begun.
    """

    attempt: int
    max_attempts: int
    error: ErrorInfo
    failed_at: str
    next_at: str | None = None


class TaskView(states.HasStatus, msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The response of `GET /api/v1/mesh/{id}`; fields that do not apply are omitted."""

    id: str
    parent_id: str | None = None
    root_id: str | None = None
    status: ViewStatus
    progress_percent: int
    actor: str | None = None
    route: Route | None = None
    attempt: int | None = None
    result: Raw | UnsetType = UNSET
    result_uri: str | None = None
    error: ErrorInfo | None = None
    error_group: str | None = None
    reason: str | None = None
    provisional: bool = False
    pause: TaskPause | None = None
    waiting_until: str | None = None
    run: RunNote | None = None
    problem: TaskProblem | None = None
    retry: RetryView | None = None
    created_at: str
    updated_at: str
    deadline_at: str | None = None
    generation: int
    earlier: tuple[EarlierGeneration, ...] = ()
    owner: str | None = None
    context: str | None = None
    tool: str | None = None
    started_by: StartedBy | None = None
    canceled: Cancellation | None = None
    resolution: Resolution | None = None


def is_overdue(record: TaskRecord, now: datetime) -> bool:
    """Whether the task's deadline has passed; a paused or ended task is never overdue."""
    if record.is_at_rest or record.deadline_at is None:
        return False
    return parse_time(record.deadline_at) <= now


def fail_if_overdue(record: TaskRecord, now: datetime, outages: Outages = no_outages) -> TaskRecord:
    """Fail an overdue record, so that readers need not wait for the deadline sweep.

    The end is provisional: the envelope may have ended in time, and its report may be on the way.

    Args:
        outages: says which outages there were since the task began.
    """
    if not is_overdue(record, now):
        return record
    failed_at = max(record.updated_at, record.deadline_at or "")
    words = outages(parse_time(record.created_at))
    error = replace(TIMEOUT_ERROR, message=TIMEOUT_ERROR.message + words) if words else TIMEOUT_ERROR
    return replace(record, status=states.FAILED, reason="Timeout", error=error, provisional=True, updated_at=failed_at)


def task_view(record: TaskRecord, hops: HopFold, now: datetime) -> TaskView:
    """Build the view of a task.

    Args:
        record: the record of the task.
        hops: the hops of the record's generation.
        now: the time for the deadline check.
    """
    if record.is_pending and hops.latest is not None:
        record = replace(record, status=states.RUNNING)
    record = _at_latest_hop(record, hops)
    record = fail_if_overdue(record, now)
    retry = _retry(record, hops)
    return TaskView(
        id=record.id,
        parent_id=record.parent_id,
        root_id=record.root_id,
        status=record.status,
        progress_percent=100 if record.has_succeeded else min(hops.percent, HIGHEST_BEFORE_END),
        actor=record.actor,
        route=record.route,
        attempt=record.attempt,
        result=record.result,
        result_uri=record.result_uri,
        error=record.error,
        error_group=_error_group(record, retry),
        reason=record.reason,
        provisional=record.provisional,
        pause=record.pause,
        waiting_until=record.waiting_until,
        run=None if record.is_terminal or hops.latest is None else hops.latest.run,
        problem=hops.problem if record.is_running else None,
        retry=retry,
        created_at=record.created_at,
        updated_at=record.updated_at,
        deadline_at=record.deadline_at,
        generation=record.generation,
        earlier=record.earlier,
        owner=record.owner,
        context=record.context,
        tool=record.tool,
        started_by=record.started_by,
        canceled=_cancellation(record) if record.is_canceled else None,
    )


def _retry(record: TaskRecord, hops: HopFold) -> RetryView | None:
    """The retry of a running task, until the next attempt gives its first frame."""
    retry = record.retry
    if retry is None or not record.is_running or retry.generation != record.generation:
        return None
    if hops.has_passed(retry.position, retry.attempt + 1):
        return None
    return RetryView(
        attempt=retry.attempt,
        max_attempts=retry.max_attempts,
        error=retry.error,
        failed_at=retry.at,
        next_at=retry.next_at if hops.is_waiting_for(retry.position, retry.attempt + 1) else None,
    )


def _error_group(record: TaskRecord, retry: RetryView | None) -> str | None:
    """The error of the group of a failed task, or of one that runs again (`protocol §13.failures`)."""
    if retry is not None:
        return failure_kind(states.FAILED, retry.error, None)
    if not record.has_failed:
        return None
    return failure_kind(record.status, shortened_error(record.error), record.reason) or None


def _cancellation(record: TaskRecord) -> Cancellation | None:
    """Who canceled a canceled task; a task that no call named was canceled together with its root, or by a foreign report."""
    if record.canceled is not None:
        return record.canceled
    return Cancellation(at=record.updated_at, root=record.root_id) if record.root_id is not None else None


def _at_latest_hop(record: TaskRecord, hops: HopFold) -> TaskRecord:
    """Move a task that has not ended to its latest hop."""
    latest = hops.latest
    if record.is_terminal:
        return record
    if record.retry is not None and record.retry.generation == record.generation:
        record = replace(record, updated_at=max(record.updated_at, record.retry.at))
    if latest is None:
        return record
    return replace(
        record,
        actor=latest.actor,
        route=hops.route(record.route),
        attempt=latest.attempt,
        updated_at=max(record.updated_at, latest.at),
    )


def unknown_view(task_id: str, owner: str | None, created_at: str) -> TaskView:
    """Build the view of a task whose record is unreadable."""
    return TaskView(
        id=task_id,
        status=states.UNKNOWN,
        progress_percent=0,
        created_at=created_at,
        updated_at=created_at,
        generation=0,
        owner=owner,
    )


def list_view(task: TaskView) -> TaskView:
    """Shorten a view for lists: no result, of the error only type and message, of a pause only the question."""
    pause = task.pause and task.pause.shortened()
    return replace(task, result=UNSET, error=shortened_error(task.error), earlier=(), pause=pause)
