"""Groups failed tasks by actor and error (`protocol §13`, failures)."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from asya.protocol.errors import ErrorInfo
from asya.protocol.task import EARLIER_MESSAGE_LIMIT, TaskRecord

if TYPE_CHECKING:
    from asya.tasks.view import TaskView

_UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(\.\d+)*")


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that failed at one actor with the same error.

    Attributes:
        actor: the actor at which they failed; empty if it is unknown.
        error: the first line of their error, with numbers and UUIDs as `#`.
        count: the number of tasks.
        first, last: when the first and the last of them were created.
        example: the id of the last one.
    """

    actor: str
    error: str
    count: int
    first: str
    last: str
    example: str


class FailureList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The groups of one page of failed tasks, most tasks first.

    `next_cursor` is set if there are more tasks. A group may go on there: `merged` adds the pages up.
    """

    items: list[FailureGroup]
    next_cursor: str | None = None


def shortened_error(error: ErrorInfo | None) -> ErrorInfo | None:
    """The error as lists show it: type and message, at most 1,024 characters of it."""
    return error and ErrorInfo(type=error.type, message=error.message[:EARLIER_MESSAGE_LIMIT])


def failure_text(status: str, error: ErrorInfo | None, reason: str | None) -> str:
    """The error of a task, such as `KeyError: 'price'`; else the reason of a failed or canceled one, or nothing."""
    if error is not None:
        return f"{error.type}: {error.message}"
    return (reason or "") if status in ("failed", "canceled") else ""


def kind_of(text: str) -> str:
    """The first line of an error without what differs between tasks of one cause: numbers and UUIDs are `#`."""
    return _NUMBER.sub("#", _UUID.sub("#", text.partition("\n")[0]))


def group_of(task: "TaskRecord | TaskView") -> FailureGroup:
    """The group of one failed task; the summary of its record is enough."""
    return FailureGroup(
        actor=task.actor or "",
        error=kind_of(failure_text(task.status, shortened_error(task.error), task.reason)),
        count=1,
        first=task.created_at,
        last=task.created_at,
        example=task.id,
    )


def merged(groups: Iterable[FailureGroup]) -> list[FailureGroup]:
    """Add up the groups of the same actor and error, most tasks first."""
    by_cause: dict[tuple[str, str], FailureGroup] = {}
    for group in groups:
        cause = group.actor, group.error
        known = by_cause.get(cause)
        by_cause[cause] = group if known is None else _sum(known, group)
    return sorted(by_cause.values(), key=lambda group: (-group.count, group.actor, group.error))


def _sum(known: FailureGroup, group: FailureGroup) -> FailureGroup:
    newest = max(known, group, key=lambda each: (each.last, each.example))
    return replace(newest, count=known.count + group.count, first=min(known.first, group.first))
