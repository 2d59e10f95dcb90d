"""Reads what the mesh knows of a task: its record, which comes a moment after the envelope was sent, and the stored envelope."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

from asya.client.errors import MeshError
from asya_cli import clock
from asya_cli.errors import CommandError, ExitCode, exit_code_of
from asya_cli.output.text import echo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.client.mesh_client import MeshClient, StoredObject
    from asya.protocol.envelope import Envelope
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
