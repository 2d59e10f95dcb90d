"""The errors of a client: each says what is wrong, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asya.protocol.errors import ErrorInfo
    from asya.protocol.pause import TaskPause
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
    """The task, actor or tool does not exist, or the task belongs to another owner."""


class UnreachableError(MeshError):
    """The gateway, AWS or the local cloud does not answer."""


class NotEndedError(MeshError):
    """A task has not ended within the time limit of a wait."""


class RefusedError(MeshError):
    """The gateway refused a call. The problem is its own message.

    Args:
        problem: The message.
        advice: What the caller can do about it; empty if unknown.
        status: The HTTP status.
        code: The code of the error, such as `invalid_arguments` (`protocol §13`, errors); empty without one.
        field: The field at fault; None if the whole call is.
    """

    def __init__(
        self, problem: str, advice: str = "", *, status: int, code: str = "", field: str | None = None
    ) -> None:
        super().__init__(problem, advice)
        self.status = status
        self.code = code
        self.field = field


class AccessDeniedError(RefusedError):
    """The credentials do not allow the call (403)."""


class UnavailableError(RefusedError):
    """The gateway cannot serve the call now (429, 5xx). The same call may succeed later."""


class ConflictError(RefusedError):
    """The state of the task, or the size of the request, does not allow the call (409, 413).

    Args:
        problem: The gateway's own message.
        code: The code of the error, such as `slice`.
    """

    def __init__(self, problem: str, code: str = "", *, status: int = 409, field: str | None = None) -> None:
        super().__init__(problem, status=status, code=code, field=field)


class OversizedEnvelopeError(MeshError):
    """The envelope is too large for a message even without its payload."""


class InvalidAnswersError(RefusedError):
    """The answers to a pause are invalid; the task stays paused.

    Args:
        task_id: The id of the task.
        fields: The problem of each invalid field, by its name.
    """

    def __init__(self, task_id: str, fields: dict[str, str]) -> None:
        details = "\n".join(f"  {name}: {problem}" for name, problem in fields.items())
        problem = f"task {task_id!r} stays paused: the answers are invalid"
        super().__init__(problem, details, status=422, code="invalid_input")
        self.fields = fields


class TaskFailedError(MeshError):
    """The task failed, so it has no result.

    Args:
        view: The task.
    """

    def __init__(self, view: TaskView) -> None:
        super().__init__(_end_of(view), "Repair the cause, then replay the task.")
        self.view = view

    @property
    def actor(self) -> str | None:
        """The actor at which the task ended."""
        return self.view.actor

    @property
    def reason(self) -> str | None:
        """Why the mesh ended the task, such as `RuntimeError` or `Timeout` (`protocol §6`, reasons)."""
        return self.view.reason

    @property
    def error(self) -> ErrorInfo | None:
        """The error, with its type, message and traceback; None if the record has none."""
        return self.view.error

    @property
    def type(self) -> str | None:
        """The type of the error, such as `ValueError` or `shop.OutOfStock`."""
        return self.view.error.type if self.view.error else None

    @property
    def message(self) -> str | None:
        """The message of the error."""
        return self.view.error.message if self.view.error else None


class TaskCanceledError(TaskFailedError):
    """The task was canceled, so it has no result."""


class TaskPausedError(MeshError):
    """The task waits for an answer. `Task.resume` gives it.

    Args:
        view: The task; `view.pause` has the question and its fields.
    """

    def __init__(self, view: TaskView) -> None:
        prompt = f": {view.pause.prompt}" if view.pause else ""
        super().__init__(f"{view.id} waits for an answer{prompt}", "Answer with `resume`, then wait again.")
        self.view = view

    @property
    def pause(self) -> TaskPause | None:
        """The question: its prompt, and the fields of the answer."""
        return self.view.pause


def _end_of(view: TaskView) -> str:
    place = f" at {view.actor}" if view.actor else ""
    if view.is_canceled:
        return f"{view.id} was canceled{place}"
    error = f": {view.error.type}: {view.error.message}" if view.error else ""
    return f"{view.id} failed{f' ({view.reason})' if view.reason else ''}{place}{error}"
