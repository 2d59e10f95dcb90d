"""Waits for the end of a task that a command has started, and prints its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asya_cli.errors import CommandError
from asya_cli.output.text import write_exact
from asya_cli.tasks.outcome import failure_of, pause_of

if TYPE_CHECKING:
    from asya.client.mesh_client import MeshClient
    from asya.tasks.view import TaskView

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
    if task.status != "succeeded":
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
