"""Which tasks of a list are asked for (`protocol §13`, lists).

A list reads summaries of records before it reads tasks with their hops: `may_match` decides on the summary, and `matches` on
the task as the list shows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import get_args

from asya.protocol.api_errors import ApiError
from asya.protocol.errors import ErrorInfo
from asya.protocol.task import TaskRecord, TaskRetry, TaskStatus
from asya.protocol.times import format_time, parse_time
from asya.tasks.failures import failure_kind, failure_text, shortened_error
from asya.tasks.view import RetryView, TaskView, fail_if_overdue

STATUSES: tuple[str, ...] = get_args(TaskStatus)
TEXT_LIMIT = 1024
"""Characters of the value of a filter."""
_TEXTS = ("parent", "tool", "actor", "owner", "error")
_TIMES = ("since", "until")
# The statuses that share their list of the index with another status.
_MIXED_STATUSES = frozenset({"pending", "running", "paused", "failed", "canceled"})


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
        return self.status == "failed" and not self.resolved

    @property
    def reads_records(self) -> bool:
        """Whether the keys of the indexes do not decide: the list reads the summary of each record."""
        if self.status in _MIXED_STATUSES or self.roots or self.retrying:
            return True
        return (self.tool, self.actor, self.error) != (None,) * 3

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
        may_run = task.status == "pending" and self.status == "running"
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
