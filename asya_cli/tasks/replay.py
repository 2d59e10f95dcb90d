"""`asya replay`: starts a new task from a stored copy of an envelope, or of each failed one."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from asya.protocol import states
from asya_cli.errors import CommandError
from asya_cli.options import JsonLines, MeshOptions, OptionalId, completed, selects_mesh
from asya_cli.output.results import write
from asya_cli.output.text import echo, one_line
from asya_cli.tasks.bulk import DryRun, Yes, for_each
from asya_cli.tasks.records import task_advice
from asya_cli.tasks.selection import Actor, ErrorText, Owner, Selection, Settled, Since, Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asya.capabilities.dead_letters.replay import RepeatedSlices
    from asya.client.errors import ConflictError
    from asya.client.mesh_client import MeshClient
    from asya.tasks.view import TaskView

_LISTED = 20
_DEAD_LETTER = "DeliveryExhausted"


@selects_mesh
def replay(
    envelope_id: OptionalId = None,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="All failed tasks instead of one.")] = False,
    actor: Actor = None,
    tool: Tool = None,
    owner: Owner = None,
    error: ErrorText = None,
    since: Since = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    hop: Annotated[
        int | None,
        typer.Option(
            "--from", metavar="HOP", min=0, help="Start at this hop; 0 is the first. Its actor needs keep_input."
        ),
    ] = None,
    checkpoint: Annotated[
        int | None,
        typer.Option("--from-checkpoint", metavar="N", min=0, help="Start from the checkpoint at this position."),
    ] = None,
    failed_only: Annotated[
        bool,
        typer.Option(
            "--failed-only",
            help="For the origin of a failed set: copy the results that are stored, and run only the other slices again.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also a task that is settled, or that would start elsewhere than where it was."),
    ] = False,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """Run an envelope again as a new task, by default from the hop that failed, and print the id of the new task.

    The new task gets a new deadline if the old one had one. The old task stays failed, and names its replay. While that replay
    is at work or has succeeded, another one needs --force. An origin whose set failed sends its slices again from the kept frames
    of its fan-out; a repeated call prints the id of the same task until that task fails.

    With --failed, run all open failures again, or those that --actor, --tool, --owner, --error and --since select, oldest first.
    A failed slice runs again with its set: once, and only the slices that have no result. A repetition goes on where the last
    call was interrupted.
    """
    selection = Selection.of(status=states.FAILED, actor=actor, tool=tool, owner=owner, error=error, since=since)
    is_limited = selection != Selection.of(status=states.FAILED)
    if (envelope_id is None) != failed or (envelope_id and (is_limited or dry_run)):
        raise CommandError(
            "replay takes an ID, or --failed with the options that select tasks",
            "Type `asya replay ID`, or `asya replay --failed --dry-run` to see which.",
        )
    if failed and (hop is not None or checkpoint is not None or failed_only or force):
        raise CommandError(
            "--failed excludes --from, --from-checkpoint, --failed-only and --force", "Give them with an ID instead."
        )
    if hop is not None and checkpoint is not None:
        raise CommandError("--from and --from-checkpoint exclude each other", "Use one of them.")
    if failed_only and (hop is not None or checkpoint is not None):
        raise CommandError("--failed-only excludes --from and --from-checkpoint", "Use one of them.")

    from asya.capabilities.dead_letters.replay import ReplayRequest
    from asya.client.errors import ConflictError
    from asya_cli.tasks.set_replays import SetReplays

    mesh = selected.client()
    if envelope_id is None:
        settled = Settled()
        tasks = sorted(selection.tasks(mesh, settled=settled), key=lambda task: task.created_at)
        settled.tell("`asya list --status failed --all` shows them")
        if not tasks:
            selection.check(mesh)
        _name_dead_letters(tasks, selected.as_typed())  # before the question
        for_each(tasks, "replay", SetReplays(mesh), dry_run=dry_run, yes=yes, as_json=as_json)
        return
    request = ReplayRequest(hop=hop, checkpoint=checkpoint, failed_only=failed_only, force=force)
    options = selected.as_typed()
    with task_advice(envelope_id, options):
        try:
            new_task = mesh.replay(envelope_id, request)
        except ConflictError as refusal:
            raise _refusal(mesh, envelope_id, refusal, options) from None
    if not as_json:
        echo(f"started from {new_task.source}", err=True)
        if new_task.slices is not None:
            echo(_describe(new_task.slices), err=True)
    write(new_task, new_task.id, as_json=as_json)


def _name_dead_letters(tasks: Sequence[TaskView], options: str) -> None:
    """Name the tasks whose message is a dead letter: a redrive goes on with the same task, and takes the letter away."""
    letters = [task for task in tasks if task.reason == _DEAD_LETTER]
    for actor in sorted({task.actor for task in letters if task.actor}):
        names = [one_line(task.id) for task in letters if task.actor == actor]
        listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
        echo(f"dead letters, which want a redrive instead: {listed}", err=True)
        echo(f"  asya dlq redrive {quote(actor)}{options}", err=True)


def _refusal(mesh: MeshClient, envelope_id: str, error: ConflictError, options: str) -> ConflictError:
    """Return why a task cannot be replayed, and the command that does what can be done."""
    from asya.capabilities.dead_letters.settlements import SETTLED
    from asya.client.errors import ConflictError

    problem = completed(error.problem.replace("failed_only", "--failed-only"), options)
    task, name = mesh.task(envelope_id), quote(envelope_id)
    if error.code in SETTLED:
        advice = f"`asya replay {name} --force{options}` runs it once more."
    elif error.code == "slice" and task is not None and task.parent_id:
        advice = f"`asya replay {quote(task.parent_id)} --failed-only{options}` runs it again with its set."
    elif task is not None and task.has_failed:
        advice = f"`asya replay {name}{options}` runs it again from where it failed."
    elif error.code == "nothing_to_replay" and task is not None and (command := _restart(mesh, task, options)):
        advice = f"`{command}` runs it again from there."
    elif task is not None and task.has_succeeded:
        advice = f"`asya result {name}{options}` prints its result."
    else:
        advice = f"`asya status {name}{options}` shows it."
    refusal = ConflictError(problem, error.code)
    refusal.advice = advice
    return refusal


def _restart(mesh: MeshClient, task: TaskView, options: str) -> str | None:
    """Return the command that runs a task again that has ended without a failure; None if nothing of it is kept."""
    from asya.client.errors import MeshError
    from asya.client.operations import Operations
    from asya_cli.tasks.status import restart_command

    if task.status not in (states.SUCCEEDED, states.CANCELED):
        return None
    try:
        return restart_command(Operations(mesh), task, options)
    except MeshError:  # the refusal counts
        return None


def _describe(slices: RepeatedSlices) -> str:
    """Say which slices of a set run again.

    The gateway knows the slices that the old set has counted. The fan-in actor also copies results that came after the end of
    the set, and those that come until the copy is made.
    """
    if slices.again is None:
        return "all slices run again" if slices.total is None else f"all {slices.total} slices run again"
    if not slices.again:
        return f"all {slices.copied} results are copied"
    more = len(slices.again) - _LISTED
    listed = ", ".join(map(str, slices.again[:_LISTED])) + (f" and {more} more" if more > 0 else "")
    copied = f"at least {slices.copied} of {slices.total} results are copied; " if slices.copied else ""
    return f"{copied}at most these slices run again: {listed}"
