"""What the gateway's lists answer (`protocol §13`, lists)."""

import msgspec

from asya.protocol.task_view import TaskView
from asya.protocol.timeline import TimelineEntry


class TaskList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of tasks, newest first; `next_cursor` where there may be more."""

    items: list[TaskView]
    next_cursor: str | None = None


class Timeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of a task's hops, first to last; `next_cursor` where there are more."""

    items: list[TimelineEntry]
    next_cursor: str | None = None
