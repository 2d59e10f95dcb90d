"""Reads the queries of lists, selects tasks, and encodes cursors; builds timelines (`protocol §13`).

A list reads summaries of records before it reads tasks with their hops: `may_match` decides on the summary, and `matches` on
the task as the list shows it.

A cursor holds a key at or below the last inspected entry, and a digest of the query. Its holder can decode it: it names tasks
and principals of its holder only (`ListKey.for_owner`). It grants no access: each page checks access when it is read. So its
checksum needs no key: it rejects a cursor of another list, and one that was cut or changed by mistake.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import groupby
from typing import get_args

import msgspec

from asya.protocol import states
from asya.protocol.api_errors import ApiError
from asya.protocol.errors import ErrorInfo
from asya.protocol.hops import HopRecord
from asya.protocol.run_progress import RunNote
from asya.protocol.states import TaskStatus
from asya.protocol.task import TaskRecord, TaskRetry
from asya.protocol.times import format_time, parse_time
from asya.tasks.failures import failure_kind, failure_text, shortened_error
from asya.tasks.view import RetryView, TaskView, fail_if_overdue

STATUSES: tuple[str, ...] = get_args(TaskStatus)
TEXT_LIMIT = 1024
"""Characters of the value of a filter."""
_TEXTS = ("parent", "tool", "actor", "owner", "error")
_TIMES = ("since", "until")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """The filters of a list; None means any.

    Attributes:
        status: one of the six; the gateway refuses any other.
        parent: the task whose children are listed.
        tool: the tool that started the task or its root.
        actor: the actor that the task is at, or ended at.
        owner: the principal that owns the task.
        error: a text within the error, the reason, or the error as groups of failures show it.
        since, until: the earliest creation, and the time before which the task was created, as records have them.
        roots: whether only tasks without a parent are listed.
        retrying: whether only running tasks are listed that run again after a failed attempt.
        resolved: whether a list of failed tasks has those too that are settled. Other lists have them in any case.
    """

    status: str | None = None
    parent: str | None = None
    tool: str | None = None
    actor: str | None = None
    owner: str | None = None
    error: str | None = None
    since: str | None = None
    until: str | None = None
    roots: bool = False
    retrying: bool = False
    resolved: bool = False

    @property
    def is_of_open_failures(self) -> bool:
        """Whether the list leaves out failed tasks that are settled."""
        return self.status == states.FAILED and not self.resolved

    @property
    def reads_records(self) -> bool:
        """Whether the keys of the indexes do not decide: the list reads the summary of each record."""
        # Each status shares a list of the index with another one.
        return self.roots or self.retrying or (self.status, self.tool, self.actor, self.error) != (None,) * 4

    def matches(self, task: TaskView) -> bool:
        """Whether a task is listed, as a list shows it; its parent is not checked."""
        return (
            self.status in (None, task.status)
            and not (self.retrying and task.retry is None)
            and self._matches_error(task.status, task.error or _retried(task.retry), task.reason)
            and self.actor in (None, task.actor)
            and self._matches_start(task)
            and (not self.is_of_open_failures or task.resolution is None or task.resolution.is_open)
        )

    def may_match(self, record: TaskRecord, now: datetime) -> bool:
        """Whether a task with this record, or with the summary of it, can be listed.

        The hops of a task that has not ended decide on its actor, and on whether it is pending or running. Other records decide
        on whether a failure is open.
        """
        task = fail_if_overdue(record, now)
        may_run = task.is_pending and self.status == states.RUNNING
        # The hops decide whether the task still runs again.
        retry = None if task.is_terminal else task.retry
        return (
            (self.status in (None, task.status) or may_run)
            and not (self.retrying and retry is None)
            and self._matches_error(task.status, task.error or _retried(retry), task.reason)
            and (self.actor in (None, task.actor) or not record.is_terminal)
            and self._matches_start(task)
        )

    def parameters(self) -> dict[str, str]:
        """The parameters of a query with these filters."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: "true" if value is True else value for name, value in values.items() if value}

    def _matches_start(self, task: TaskRecord | TaskView) -> bool:
        """Whether what a task has from its start is asked for."""
        return (
            self.tool in (None, task.tool)
            and self.owner in (None, task.owner)
            and (self.since is None or task.created_at >= self.since)
            and (self.until is None or task.created_at < self.until)
            and not (self.roots and task.parent_id is not None)
        )

    def _matches_error(self, status: str, error: ErrorInfo | None, reason: str | None) -> bool:
        if self.error is None:
            return True
        shown = shortened_error(error)
        texts = failure_text(status, shown, reason), reason or "", failure_kind(status, shown, reason)
        return any(self.error in each for each in texts)


def _retried(retry: TaskRetry | RetryView | None) -> ErrorInfo | None:
    """The error after which a task runs again."""
    return None if retry is None else retry.error


def read_filter(parameters: Mapping[str, str]) -> TaskFilter:
    """Read the filters of a query; other parameters are ignored.

    Raises:
        ApiError: 400 with the name of the parameter.
    """
    texts = {name: _text(name, parameters[name]) for name in _TEXTS if name in parameters}
    times = {name: _time(name, parameters[name]) for name in _TIMES if name in parameters}
    status = parameters.get("status")
    if status is not None and status not in STATUSES:
        raise ApiError(400, "invalid_field", f"status must be one of {', '.join(STATUSES)}", "status")
    return TaskFilter(
        status=status,
        roots=_flag("roots", parameters),
        retrying=_flag("retrying", parameters),
        resolved=_flag("resolved", parameters),
        **texts,
        **times,
    )


def _text(name: str, text: str) -> str:
    if not 1 <= len(text) <= TEXT_LIMIT:
        raise ApiError(400, "invalid_field", f"{name} must have 1 to {TEXT_LIMIT:,} characters", name)
    return text


def _time(name: str, text: str) -> str:
    try:
        return format_time(parse_time(text))
    except ValueError as error:
        raise ApiError(400, "invalid_field", f"{name}: {error}", name) from None


def _flag(name: str, parameters: Mapping[str, str]) -> bool:
    text = parameters.get(name, "false")
    if text not in ("true", "false"):
        raise ApiError(400, "invalid_field", f"{name} must be true or false", name)
    return text == "true"


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt at one hop; unreported times are omitted.

    Attributes:
        message_size_kb, duration_ms: kilobytes of the message and milliseconds of the handler, as reported.
        trace_id: of a trace that X-Ray has.
        run: the progress of a heavy actor's job run; after its end, the time and resources it used.
    """

    generation: int
    position: int
    attempt: int
    actor: str
    received_at: str | None = None
    processing_at: str | None = None
    completed_at: str | None = None
    message_size_kb: float | None = None
    duration_ms: float | None = None
    trace_id: str | None = None
    run: RunNote | None = None


def timeline(records: Iterable[HopRecord]) -> Iterator[TimelineEntry]:
    """Merge hop records, sorted by key, into one entry per attempt."""
    for key, group in groupby(records, key=lambda record: record.key):
        hops = list(group)
        yield TimelineEntry(
            generation=key.generation,
            position=key.position,
            attempt=key.attempt,
            actor=hops[0].actor,
            # After a redelivery the records may stem from different runs: the earliest start and the latest end count.
            received_at=min((hop.received_at for hop in hops if hop.received_at), default=None),
            processing_at=min((hop.processing_at for hop in hops if hop.processing_at), default=None),
            completed_at=max((hop.completed_at for hop in hops if hop.completed_at), default=None),
            message_size_kb=max((hop.message_size_kb for hop in hops if hop.message_size_kb is not None), default=None),
            duration_ms=max((hop.duration_ms for hop in hops if hop.duration_ms is not None), default=None),
            trace_id=next((hop.trace_id for hop in hops if hop.trace_id), None),
            run=_run_note(hops),
        )


def _run_note(hops: list[HopRecord]) -> RunNote | None:
    """The note on the latest run. The one of its end counts: the event of its start may come, and be noted, after that."""
    latest = max((hop.run for hop in hops if hop.run), key=lambda run: run.at, default=None)
    if latest is None:
        return None
    ends = [hop.run for hop in hops if hop.run and hop.stage == "done" and hop.run.run_id == latest.run_id]
    return max(ends or [latest], key=lambda run: run.at)


DEFAULT_LIMIT = 20
LARGEST_LIMIT = 100
_CURSOR_LIMIT = 2048


class TaskList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of tasks, newest first; `next_cursor` is set if there may be more.

    Attributes:
        resolved: failed tasks that the page leaves out, because they are settled or go on in a failed replay.
    """

    items: list[TaskView]
    resolved: int = 0
    next_cursor: str | None = None


class Timeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of a task's hops, first to last; `next_cursor` is set if there are more."""

    items: list[TimelineEntry]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The query for one page.

    Attributes:
        scope: the list that a cursor is valid for, together with the filters.
        filter: which tasks are listed.
        after: the key in the cursor; empty on the first page.
    """

    scope: str
    filter: TaskFilter = field(default_factory=TaskFilter)
    limit: int = DEFAULT_LIMIT
    after: tuple[str | int, ...] = ()

    def cursor(self, key: Sequence[str | int]) -> str:
        """Encode the cursor of the page that follows a key."""
        return _encode_cursor(self._digest, key)

    @property
    def _digest(self) -> str:
        content = msgspec.json.encode((self.scope, self.filter.parameters()))
        return hashlib.sha256(content).hexdigest()[:16]


def read_list_query(
    parameters: Mapping[str, str], scope: str, key_types: tuple[type, ...], largest: int = LARGEST_LIMIT
) -> ListQuery:
    """Read the filters, `limit` and `cursor`.

    Args:
        scope: the list; a cursor of another list is rejected.
        key_types: the types of the members of a key in this list.
        largest: the upper bound of `limit`.

    Raises:
        ApiError: 400 with the name of the parameter.
    """
    query = ListQuery(scope, read_filter(parameters), _limit(parameters.get("limit"), largest))
    cursor = parameters.get("cursor")
    if cursor is None:
        return query
    after = _decode_cursor(cursor, query._digest)
    if tuple(map(type, after)) != key_types:
        raise _invalid_cursor()
    return replace(query, after=after)


def _limit(text: str | None, largest: int) -> int:
    if text is None:
        return min(DEFAULT_LIMIT, largest)
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= largest):
        raise ApiError(400, "invalid_field", f"limit must be a number from 1 to {largest}", "limit")
    return int(text)


def _encode_cursor(digest: str, key: Sequence[str | int]) -> str:
    content = msgspec.json.encode((digest, *key))
    checksum = hashlib.sha256(content).digest()[:6]
    return base64.urlsafe_b64encode(checksum + content).decode().rstrip("=")


def _decode_cursor(cursor: str, digest: str) -> tuple[str | int, ...]:
    if len(cursor) > _CURSOR_LIMIT or not cursor.isascii():
        raise _invalid_cursor()
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        content = msgspec.json.decode(data[6:], type=tuple[str | int, ...])
    except (ValueError, msgspec.MsgspecError):
        raise _invalid_cursor() from None
    if not content or content[0] != digest or _encode_cursor(digest, content[1:]) != cursor:
        raise _invalid_cursor()
    return content[1:]


def _invalid_cursor() -> ApiError:
    return ApiError(
        400, "invalid_cursor", "the cursor does not belong to this list; start again without a cursor", "cursor"
    )
