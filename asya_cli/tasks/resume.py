"""`asya resume`: answers the questions of a paused task, or the same question of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya.protocol import states
from asya_cli.errors import CommandError
from asya_cli.json_input import invalid_json
from asya_cli.options import JsonLines, MeshOptions, OptionalId, not_empty, selects_mesh
from asya_cli.output.text import echo, write_json_line
from asya_cli.tasks.bulk import DryRun, Yes
from asya_cli.tasks.records import resume_command, task_advice
from asya_cli.tasks.selection import Actor, Owner, Selection, Since, Tool

if TYPE_CHECKING:
    from asya.client.mesh_client import MeshClient

_EXAMPLE = "Example: --input '{\"approved\": true}'"


@selects_mesh
def resume(
    envelope_id: OptionalId = None,
    *,
    answers: Annotated[
        str, typer.Option("--input", metavar="JSON", help="The answers by field, such as '{\"approved\": true}'.")
    ] = "{}",
    pause: Annotated[
        str | None,
        typer.Option(
            "--pause",
            metavar="TIME",
            callback=not_empty,
            help="The start of the pause whose question you have read, as `asya status` prints it. A later one gets no answer.",
            show_default=False,
        ),
    ] = None,
    paused: Annotated[bool, typer.Option("--paused", help="All paused tasks instead of one.")] = False,
    actor: Actor = None,
    tool: Tool = None,
    owner: Owner = None,
    since: Since = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """Resume a paused task with these answers. `asya status ID` shows the questions.

    If an answer is invalid, the command lists each problem and the task stays paused. --pause names the question that you have
    read: the task stays paused if it asks another one by now.

    Without ID, give the answers to all paused tasks that --actor, --tool, --owner and --since select, or to all with --paused,
    oldest first, and print their ids. They must wait at one actor. Tasks that wait for a time are left out.
    """
    selection = Selection.of(status=states.PAUSED, actor=actor, tool=tool, owner=owner, since=since)
    is_many = paused or selection != Selection.of(status=states.PAUSED)
    if (envelope_id is None) != is_many or (envelope_id and dry_run) or (pause and is_many):
        raise CommandError(
            "resume takes an ID, or options that select paused tasks",
            "Type `asya resume ID --input '{…}'`, or `asya resume --actor NAME --input '{…}' --dry-run` to see which.",
        )
    import msgspec

    text = answers.encode("utf-8", "surrogatepass")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_json(text, "--input", error, _EXAMPLE) from None
    if not isinstance(value, dict):
        raise CommandError("--input is not a JSON object", _EXAMPLE)
    from asya.client.errors import InvalidAnswersError
    from asya_cli.tasks.answers import ResumedTask, answer_all

    if envelope_id is None:
        mesh = selected.client()
        answer_all(mesh, selection, text, dry_run=dry_run, yes=yes, as_json=as_json)
        return
    mesh, options = selected.client(), selected.as_typed()
    try:
        with task_advice(envelope_id, options):
            mesh.resume(envelope_id, answers.encode(), since=pause)
    except InvalidAnswersError as error:
        raise _still_paused(mesh, envelope_id, error.fields, options) from None
    if as_json:
        write_json_line(ResumedTask(envelope_id))
    echo(f"resumed {envelope_id}", err=True)


def _still_paused(mesh: MeshClient, envelope_id: str, problems: dict[str, str], options: str) -> CommandError:
    """Return the error with the problem of each answer, and the line to type."""
    details = "; ".join(f"{name} {problem}" for name, problem in problems.items())
    task = mesh.task(envelope_id)
    pause = task.pause if task is not None else None
    advice = f"Type: {resume_command(envelope_id, pause, options)}" if pause is not None else ""
    return CommandError(f"{envelope_id} stays paused: {details}", advice)
