"""What the state of a task means for the command that shows it: its exit code, and the next thing to type."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

import msgspec

from asya_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from asya.protocol.pause import PauseField, TaskPause
    from asya.tasks.view import TaskView

_PLACEHOLDERS: dict[str, object] = {"string": "…", "number": 0, "boolean": True, "array": [], "object": {}}
_CODES = {"failed": ExitCode.TASK_FAILED, "canceled": ExitCode.TASK_FAILED, "paused": ExitCode.PAUSED}


def exit_code(status: str | None) -> ExitCode:
    """Return the exit code for a status; a task that has not ended is no failure."""
    return _CODES.get(status or "", ExitCode.DONE)


def resume_command(envelope_id: str, pause: TaskPause, options: str) -> str:
    """Return the line that answers a pause, with a value in the place of each required answer.

    Args:
        envelope_id: The id of the paused task.
        pause: Its question.
        options: The options that select the mesh, as typed.
    """
    answers = {field.name: _placeholder(field) for field in pause.fields if field.required and field.default is None}
    if not answers:  # all answers have a value, or any answer does
        answers = {field.name: _placeholder(field) for field in pause.fields[:1]}
    given = f" --input {quote(msgspec.json.encode(answers).decode())}" if answers else ""
    return f"asya resume {quote(envelope_id)}{given}{options}"


def _placeholder(field: PauseField) -> object:
    """Return an answer of the type of a field: its default, its first option, or a value of its type."""
    if field.default is not None:
        return field.default
    if field.options:
        return [field.options[0]] if field.type == "array" else field.options[0]
    return _PLACEHOLDERS[field.type]


def failure_of(task: TaskView, options: str) -> CommandError:
    """Return the error that tells why a task has failed or was canceled."""
    name = quote(task.id)
    if task.status == "canceled":
        return CommandError(f"{task.id} was canceled", f"`asya status {name}{options}` shows it.", ExitCode.TASK_FAILED)
    error = f": {task.error.type}: {task.error.message}" if task.error else ""
    reason = f" ({task.reason})" if task.reason else ""
    place = f" at {task.actor}" if task.actor else ""
    return CommandError(
        f"{task.id} failed{reason}{place}{error}",
        f"`asya status {name}{options}` shows the traceback; `asya replay {name}{options}` runs it again.",
        ExitCode.TASK_FAILED,
    )


def pause_of(task: TaskView, pause: TaskPause, options: str) -> CommandError:
    """Return the error that tells what a paused task waits for."""
    return CommandError(
        f"{task.id} waits for an answer: {pause.prompt}",
        f"Answer it: {resume_command(task.id, pause, options)}",
        ExitCode.PAUSED,
    )
