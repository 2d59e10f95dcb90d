"""Reads what the mesh knows of a task, and says what its state means for the command that shows it.

A state has an exit code, and the next thing to type. A command that has started a task waits for its end.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

import msgspec

from asya.client.errors import MeshError
from asya.protocol import states
from asya_cli import clock
from asya_cli.errors import CommandError, ExitCode, exit_code_of
from asya_cli.output.text import echo, write_exact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.client.mesh_client import MeshClient, StoredObject
    from asya.protocol.envelope import Envelope
    from asya.protocol.pause import PauseField, TaskPause
    from asya.tasks.view import TaskView

RECORD_SECONDS = 5.0
"""How long a record is waited for: the first actor of an envelope that was just sent writes it."""
_POLL_SECONDS = 0.25


def awaited_task(mesh: MeshClient, envelope_id: str) -> TaskView | None:
    """Return a task, and wait a few seconds for its record; None without one."""
    task = mesh.task(envelope_id)
    if task is not None:
        return task
    if sys.stderr.isatty():
        echo(f"no record of {envelope_id} yet; waiting up to {RECORD_SECONDS:.0f} s", err=True)
    deadline = clock.monotonic() + RECORD_SECONDS
    while task is None and clock.monotonic() < deadline:
        clock.sleep(_POLL_SECONDS)
        task = mesh.task(envelope_id)
    return task


@contextmanager
def task_advice(envelope_id: str, options: str) -> Iterator[None]:
    """Complete the errors of the gateway about one task with what to type.

    Args:
        envelope_id: The id of the task.
        options: The options that select the mesh, as typed.
    """
    try:
        yield
    except MeshError as error:
        if error.advice or exit_code_of(error) not in (ExitCode.NOT_FOUND, ExitCode.COMMAND_FAILED):
            raise
        if exit_code_of(error) is ExitCode.NOT_FOUND:
            raise no_task(envelope_id, options) from None
        error.advice = f"`asya status {quote(envelope_id)}{options}` shows it."
        raise


def no_task(envelope_id: str, options: str) -> CommandError:
    """Return the error for an id that names no task."""
    advice = f"`asya list{options}` shows the newest tasks, `asya dlq list{options}` messages that failed too often."
    return CommandError(f"there is no task {envelope_id!r}", advice, ExitCode.NOT_FOUND)


def envelope_of(stored: StoredObject | None) -> Envelope | None:
    """Decode the stored envelope; None without an object or if the object is not an envelope."""
    from asya.protocol.codec import ParseError, decode

    try:
        return decode(stored.body) if stored else None
    except ParseError:
        return None


def status_of(task: TaskView | None, envelope: Envelope | None) -> str | None:
    """Return the status of a task, from its stored envelope if it has no record."""
    if task is not None:
        return task.status
    return envelope.status.phase if envelope is not None and envelope.status is not None else None


_PLACEHOLDERS: dict[str, object] = {"string": "…", "number": 0, "boolean": True, "array": [], "object": {}}
_CODES = {states.FAILED: ExitCode.TASK_FAILED, states.CANCELED: ExitCode.TASK_FAILED, states.PAUSED: ExitCode.PAUSED}


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
    return f"asya resume {quote(envelope_id)}{given} --pause {pause.since}{options}"


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
    if task.is_canceled:
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


WAIT_SECONDS = 24 * 3600.0


def print_result(mesh: MeshClient, envelope_id: str, options: str) -> None:
    """Show the progress of a task on standard error, and print the payload of its result.

    Args:
        mesh: The mesh.
        envelope_id: The id of the task.
        options: The options that select the mesh, as typed.

    Raises:
        CommandError: The task failed, was canceled, waits for an answer, or has not ended within a day. The exit code tells which.
    """
    from asya_cli.output.console import Console
    from asya_cli.progress.display import follow, leaving

    with leaving(envelope_id, options):
        # The envelope is on its queue, so its record comes, however long the queue is.
        task = follow(mesh, envelope_id, Console(stderr=True), WAIT_SECONDS, unknown_seconds=None)
    assert task is not None  # `follow` ends with the ended task
    if task.pause is not None:
        raise pause_of(task, task.pause, options)
    if not task.has_succeeded:
        raise failure_of(task, options)
    write_exact(_payload(mesh, task))


def _payload(mesh: MeshClient, task: TaskView) -> bytes:
    import msgspec
    from msgspec import UNSET

    from asya_cli.tasks.result import payload_of

    if task.result is not UNSET:
        return msgspec.json.format(bytes(task.result), indent=2) + b"\n"
    stored = mesh.stored(task.id, task.result_uri)
    if stored is None:
        raise CommandError(f"{task.id} succeeded, but its object is missing: {task.result_uri or 'no address'}")
    return payload_of(stored.body, stored.uri)
