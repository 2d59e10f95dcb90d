"""The errors of a client: each says what is wrong, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asya.protocol.errors import ErrorInfo
    from asya.tasks.view import TaskView


class MeshError(Exception):
    """A call that did not do its work.

    Args:
        problem: What is wrong, and where.
        advice: What the caller can do about it; empty if unknown.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(f"{problem}\n{advice}" if advice else problem)
        self.problem = problem
        self.advice = advice


class NotFoundError(MeshError):
    """There is no such task, actor or tool, or it belongs to another owner."""


class UnreachableError(MeshError):
    """The gateway, AWS or the local cloud does not answer."""


class NotEndedError(MeshError):
    """A task has not ended within the time limit of a wait."""


class ConflictError(MeshError):
    """The state of the task does not allow the call (409, 413). The problem is the gateway's own message.

    Args:
        problem: The message.
        reason: The gateway's code of the error, such as `slice`.
    """

    def __init__(self, problem: str, reason: str = "") -> None:
        super().__init__(problem)
        self.reason = reason


class OversizedEnvelopeError(MeshError):
    """The envelope is too large for a message even without its payload."""


class InvalidAnswersError(MeshError):
    """The answers to a pause are invalid; the task stays paused.

    Args:
        task_id: The id of the task.
        fields: The problem of each invalid field, by its name.
    """

    def __init__(self, task_id: str, fields: dict[str, str]) -> None:
        details = "\n".join(f"  {name}: {problem}" for name, problem in fields.items())
        super().__init__(f"task {task_id!r} stays paused: the answers are invalid", details)
        self.fields = fields


class TaskFailedError(MeshError):
    """The task failed or was canceled, so it has no result.

    Attributes:
        view: The task.
    """

    def __init__(self, view: TaskView) -> None:
        place = f" at {view.actor}" if view.actor else ""
        if view.status == "canceled":
            problem = f"{view.id} was canceled{place}"
        else:
            error = f": {view.error.type}: {view.error.message}" if view.error else ""
            problem = f"{view.id} failed{f' ({view.reason})' if view.reason else ''}{place}{error}"
        super().__init__(problem, "Repair the cause, then replay the task.")
        self.view = view

    @property
    def reason(self) -> str | None:
        """Why the mesh ended the task, such as `Timeout`; None for an error of the actor's own code."""
        return self.view.reason

    @property
    def error(self) -> ErrorInfo | None:
        """The error, with its type, message and traceback."""
        return self.view.error


class TaskPausedError(MeshError):
    """The task waits for an answer. `Task.resume` gives it.

    Attributes:
        view: The task; `view.pause` has the question and its fields.
    """

    def __init__(self, view: TaskView) -> None:
        prompt = f": {view.pause.prompt}" if view.pause else ""
        super().__init__(f"{view.id} waits for an answer{prompt}", "Answer with `resume`, then wait again.")
        self.view = view
