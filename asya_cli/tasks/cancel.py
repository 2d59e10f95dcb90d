"""`asya cancel`: cancels a task, or all tasks of a selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from asya.client.errors import MeshError
from asya.protocol import states
from asya_cli.errors import CommandError, ExitCode, exit_code_of
from asya_cli.options import JsonLines, MeshOptions, OptionalId, selects_mesh
from asya_cli.output.results import write
from asya_cli.output.text import one_line
from asya_cli.tasks.bulk import DryRun, Yes, for_each
from asya_cli.tasks.records import awaited_task, no_task
from asya_cli.tasks.selection import Actor, Owner, Roots, Selection, Since, Tool

if TYPE_CHECKING:
    from asya.tasks.view import TaskView


@dataclass(frozen=True)
class CanceledTask:
    """A task after the call that cancels it; one that has ended before keeps its status."""

    id: str
    status: str

    def __str__(self) -> str:
        return one_line(self.id)


@selects_mesh
def cancel(
    envelope_id: OptionalId = None,
    *,
    running: Annotated[bool, typer.Option("--running", help="All running tasks instead of one.")] = False,
    actor: Actor = None,
    tool: Tool = None,
    owner: Owner = None,
    since: Since = None,
    roots: Roots = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """Cancel a task with its children and its job runs. A task that has ended does not change.

    With --running, cancel all running tasks, or those that --actor, --tool, --owner, --since and --roots select, and print
    their ids.
    """
    selection = Selection.of(status=states.RUNNING, actor=actor, tool=tool, owner=owner, since=since, roots=roots)
    is_limited = selection != Selection.of(status=states.RUNNING)
    if (envelope_id is None) != running or (envelope_id and (is_limited or dry_run)):
        raise CommandError(
            "cancel takes an ID, or --running with the options that select tasks",
            "Type `asya cancel ID`, or `asya cancel --running --dry-run` to see which.",
        )
    mesh = selected.client()
    if envelope_id is None:

        def cancel_one(task: TaskView) -> CanceledTask:
            return CanceledTask(task.id, mesh.cancel(task.id) or states.CANCELED)

        tasks = list(selection.tasks(mesh))
        if not tasks:
            selection.check(mesh)
        for_each(tasks, "cancel", cancel_one, dry_run=dry_run, yes=yes, as_json=as_json)
        return
    try:
        ended_as = mesh.cancel(envelope_id)
    except MeshError as error:
        if exit_code_of(error) is not ExitCode.NOT_FOUND:
            raise
        if awaited_task(mesh, envelope_id) is None:
            raise no_task(envelope_id, selected.as_typed()) from None
        ended_as = mesh.cancel(envelope_id)
    task = mesh.task(envelope_id)
    status = ended_as or (task.status if task is not None else states.CANCELED)
    write(CanceledTask(envelope_id, status), status, as_json=as_json)
