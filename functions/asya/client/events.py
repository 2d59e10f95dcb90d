"""The events of a task (`protocol §13`), and how it ended: a result, or an error that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from asya.client.errors import NotEndedError, TaskCanceledError, TaskFailedError, TaskPausedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.tasks.view import TaskView


def is_over(view: TaskView | None) -> bool:
    """Whether a wait ends with this state: the task has ended, or waits for an answer that only the caller can give."""
    return view is not None and view.is_at_rest


def check_not_paused(view: TaskView | None) -> None:
    """Check that a task is not paused.

    Raises:
        TaskPausedError: The task waits for an answer.
    """
    if view is not None and view.is_paused:
        raise TaskPausedError(view)


def check_succeeded(view: TaskView) -> TaskView:
    """Return the view of a task that has a result.

    Raises:
        TaskFailedError: The task failed.
        TaskCanceledError: The task was canceled.
        TaskPausedError: The task waits for an answer.
        NotEndedError: The task is at work.
    """
    check_not_paused(view)
    if not view.is_terminal:
        raise NotEndedError(f"{view.id} has not ended: it is {state_of(view)}", "Wait for it.")
    if view.is_canceled:
        raise TaskCanceledError(view)
    if not view.has_succeeded:
        raise TaskFailedError(view)
    return view


def state_of(view: TaskView | None) -> str:
    """Return what a task that has not ended is doing."""
    return f"{view.status} at {view.actor or 'no actor yet'}" if view else "no actor has received it"


def not_ended(task_id: str, state: str, seconds: float) -> NotEndedError:
    """Return the error of a wait that took too long."""
    return NotEndedError(f"{task_id} has not ended after {seconds:.0f} s: {state}")


@dataclass(frozen=True)
class Event:
    """One event of a task.

    Attributes:
        name: `status`, `partial` or `final`.
        cursor: what names the events up to this one.
        data: what happened; of `final` the record of the task.
    """

    name: str
    cursor: str
    data: Any

    @property
    def is_last(self) -> bool:
        """Whether the task has ended with it."""
        return self.name == "final"


def parse_events(text: bytes) -> Iterator[Event]:
    """Read the events of one answer. Comments, such as a keep-alive, are none."""
    for block in text.decode("utf-8").split("\n\n"):
        fields: dict[str, list[str]] = {}
        for line in block.split("\n"):  # `splitlines` would also split at U+2028, which JSON leaves in its strings
            name, colon, value = line.partition(":")
            if name and colon:
                fields.setdefault(name, []).append(value.removeprefix(" "))
        if "event" in fields and "data" in fields:
            data = msgspec.json.decode("\n".join(fields["data"]))
            yield Event(fields["event"][-1], fields.get("id", [""])[-1], data)
