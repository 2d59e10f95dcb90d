"""`asya status`: shows a task and the stored envelope."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.options import EnvelopeId, MeshOptions, selects_mesh
from asya_cli.output.text import write_json_document
from asya_cli.tasks.records import awaited_task, envelope_of, exit_code, no_task, resume_command, status_of

if TYPE_CHECKING:
    from asya.capabilities.operations.mesh_numbers import ActorNumbers
    from asya.client.operations import Operations
    from asya.tasks.view import TaskView

_CHILDREN = 100
_STARTS = {"input": "--from", "checkpoint": "--from-checkpoint"}
"""The option of `asya replay` by the kept copy."""
FOLLOW_SECONDS = 24 * 3600.0


@selects_mesh
def status(
    envelope_id: EnvelopeId,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show the progress until the task ends or pauses.")
    ] = False,
    timeline: Annotated[bool, typer.Option("--timeline", help="Also show each hop with its times.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the record as JSON, as the gateway answers it.")
    ] = False,
    selected: MeshOptions,
) -> None:
    """Show a task: its status, route, error with traceback, and the address of the stored envelope.

    The exit code is 3 if the task failed or was canceled, and 4 if it waits for an answer.
    """
    from asya.client.operations import Operations
    from asya_cli.output.console import Console
    from asya_cli.progress.display import leaving
    from asya_cli.tasks.report import show_restart, show_resume, show_set, show_task_report, show_timeline, show_unread
    from asya_cli.would_alarm import show_raised

    mesh = selected.client()
    if follow:
        from asya_cli.progress.display import follow as follow_task

        with leaving(envelope_id, selected.as_typed()):
            task = follow_task(mesh, envelope_id, Console(stderr=True), FOLLOW_SECONDS)
    else:
        task = mesh.task(envelope_id)
    stored = mesh.stored(envelope_id, task.result_uri if task else None)
    if task is None and stored is None and not follow:
        task = awaited_task(mesh, envelope_id)
        stored = mesh.stored(envelope_id, task.result_uri if task else None)
    if task is None and (as_json or stored is None):
        raise no_task(envelope_id, selected.as_typed())
    envelope = envelope_of(stored)
    if as_json:
        write_json_document(task)
    else:
        console = Console()
        operations = Operations(mesh)
        show_task_report(console, task, stored, envelope)
        waits_for = operations.task_set(envelope_id) if task is not None and task.is_running else None
        if waits_for is not None and waits_for.missing:
            show_set(console, waits_for)
        if task is not None:
            queues = where_it_waits(operations, task, lacks_slices=bool(waits_for and waits_for.missing))
            show_unread(console, queues)
            show_raised(console, queues, indent="  ")
        if task is not None and task.canceled is not None:
            show_restart(console, restart_command(operations, task, selected.as_typed()))
        if task is not None and task.pause is not None:
            show_resume(console, resume_command(envelope_id, task.pause, selected.as_typed()))
        if timeline:
            show_timeline(console, mesh.timeline(envelope_id))
    raise typer.Exit(exit_code(status_of(task, envelope)))


def restart_command(operations: Operations, task: TaskView, options: str) -> str | None:
    """Return the command that runs a canceled task again, or the root that it was canceled with; None if nothing is kept."""
    root = task.canceled.root if task.canceled is not None and task.canceled.root is not None else task.id
    kept = [hop for hop in operations.kept_hops(root) if hop.copy in _STARTS]
    if not kept:
        return None
    return f"asya replay {quote(root)} {_STARTS[kept[0].copy or 'input']} {kept[0].hop}{options}"


def where_it_waits(operations: Operations, task: TaskView, *, lacks_slices: bool) -> list[ActorNumbers]:
    """Return the actors on whose queues a task, its children or its slices may wait.

    Callers who are no operators get none.

    Args:
        operations: The operations of the mesh.
        task: The task.
        lacks_slices: Whether its set lacks slices. A slice has no task until a function has received it, so each queue with
            messages may hold it.
    """
    from asya.capabilities.operations.mesh_numbers import queues_of
    from asya.client.errors import MeshError

    if not task.is_active:
        return []
    try:
        queues = queues_of([task, *operations.mesh.tasks(status=None, parent=task.id, limit=_CHILDREN)])
        if not queues and not lacks_slices:
            return []
        actors = operations.numbers(None if lacks_slices else queues).actors
    except MeshError:
        return []
    # A gateway of an older version answers with all actors.
    return [actor for actor in actors if actor.name in queues or (lacks_slices and actor.waiting)]
