"""Which tasks a program lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from asya.protocol.times import format_time
from asya.tasks.filters import TaskFilter

if TYPE_CHECKING:
    from datetime import datetime


class Filters(TypedDict, total=False):
    """The filters of a list. They hold together, and one that is left out means any (`protocol §13.list.filters`).

    Attributes:
        status: Tasks with this status, such as `failed`.
        tool: Tasks of this tool, their slices and other children included.
        actor: Tasks that are at this actor, or ended there.
        owner: Tasks of this principal; for operators.
        error: Tasks with this text in their error or reason.
        since, until: Tasks that were created at this time or later; before this time. With a time zone.
        roots: Only tasks that no other task has fanned out into.
        retrying: Only running tasks that run again after a failed attempt.
        resolved: Of failed tasks also those that are settled: replayed, dismissed or overtaken.
    """

    status: str | None
    tool: str | None
    actor: str | None
    owner: str | None
    error: str | None
    since: datetime | None
    until: datetime | None
    roots: bool
    retrying: bool
    resolved: bool


def task_filter(filters: Filters) -> TaskFilter:
    """Return the filters as the gateway takes them.

    Raises:
        ValueError: A time has no time zone.
    """
    return TaskFilter(
        status=filters.get("status"),
        tool=filters.get("tool"),
        actor=filters.get("actor"),
        owner=filters.get("owner"),
        error=filters.get("error"),
        since=_time("since", filters.get("since")),
        until=_time("until", filters.get("until")),
        roots=filters.get("roots", False),
        retrying=filters.get("retrying", False),
        resolved=filters.get("resolved", False),
    )


def _time(name: str, moment: datetime | None) -> str | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"{name} has no time zone; give a time such as datetime.now(UTC)")
    return format_time(moment)
