"""`asya dismiss`: says that failures need no replay, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from asya.protocol import states
from asya_cli.errors import CommandError
from asya_cli.options import JsonLines, MeshOptions, OptionalId, selects_mesh
from asya_cli.output.results import write
from asya_cli.output.text import one_line
from asya_cli.tasks.bulk import DryRun, Yes, for_each
from asya_cli.tasks.records import task_advice
from asya_cli.tasks.selection import Actor, ErrorText, Owner, Selection, Settled, Since, Tool

if TYPE_CHECKING:
    from asya.tasks.view import TaskView


@dataclass(frozen=True)
class DismissedTask:
    """A task after the call.

    Attributes:
        reason: Why its failure needs no replay; empty after an undo.
    """

    id: str
    reason: str

    def __str__(self) -> str:
        return one_line(self.id)


@selects_mesh
def dismiss(
    envelope_id: OptionalId = None,
    *,
    reason: Annotated[
        str, typer.Option("--reason", help="Why nothing has to be done about the failure.", show_default=False)
    ] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Open the failure again.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="All open failures instead of one.")] = False,
    actor: Actor = None,
    tool: Tool = None,
    owner: Owner = None,
    error: ErrorText = None,
    since: Since = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """Dismiss the failure of a task with a reason: it needs no replay. The task stays failed, and `asya failures` leaves it out.

    With --failed, dismiss all open failures, or those that --actor, --tool, --owner, --error and --since select, and print their
    ids.
    """
    selection = Selection.of(status=states.FAILED, actor=actor, tool=tool, owner=owner, error=error, since=since)
    is_limited = selection != Selection.of(status=states.FAILED)
    if (envelope_id is None) != failed or (envelope_id and (is_limited or dry_run)):
        raise CommandError(
            "dismiss takes an ID, or --failed with the options that select tasks",
            "Type `asya dismiss ID --reason TEXT`, or `asya dismiss --failed --dry-run --reason TEXT` to see which.",
        )
    if undo and (failed or reason):
        raise CommandError("--undo excludes --failed and --reason", "Type `asya dismiss ID --undo`.")
    if not undo and not reason.strip():
        raise CommandError("dismiss takes a reason", 'Type `asya dismiss ID --reason "the order was a test"`.')

    from asya.capabilities.dead_letters.settlements import DismissRequest

    mesh = selected.client()
    request = DismissRequest(reason=reason, undo=undo)
    if envelope_id is None:

        def dismiss_one(task: TaskView) -> DismissedTask:
            mesh.dismiss(task.id, request)
            return DismissedTask(task.id, reason)

        settled = Settled()
        tasks = list(selection.tasks(mesh, settled=settled))
        settled.tell("`asya list --status failed --all` shows them")
        if not tasks:
            selection.check(mesh)
        for_each(tasks, "dismiss", dismiss_one, dry_run=dry_run, yes=yes, as_json=as_json)
        return
    with task_advice(envelope_id, selected.as_typed()):
        mesh.dismiss(envelope_id, request)
    task = DismissedTask(envelope_id, reason)
    write(task, str(task), as_json=as_json)
