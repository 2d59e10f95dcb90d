"""`asya resume`: answers the questions of a paused task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.json_input import invalid_json
from asya_cli.options import DEFAULT_STATE, EnvelopeId, Namespace, Profile, Region, State, as_typed, client
from asya_cli.output.text import echo
from asya_cli.tasks.outcome import resume_command
from asya_cli.tasks.records import task_advice

if TYPE_CHECKING:
    from asya.client.mesh_client import MeshClient

_EXAMPLE = "Example: --input '{\"approved\": true}'"


def resume(
    envelope_id: EnvelopeId,
    *,
    answers: Annotated[
        str, typer.Option("--input", metavar="JSON", help="The answers by field, such as '{\"approved\": true}'.")
    ] = "{}",
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Resume a paused task with these answers. `asya status ID` shows the questions.

    If an answer is invalid, the command lists each problem and the task stays paused.
    """
    import msgspec

    text = answers.encode("utf-8", "surrogatepass")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_json(text, "--input", error, _EXAMPLE) from None
    if not isinstance(value, dict):
        raise CommandError("--input is not a JSON object", _EXAMPLE)
    from asya.client.errors import InvalidAnswersError

    mesh, options = client(state, namespace, region, profile), as_typed(state, namespace, region, profile)
    try:
        with task_advice(envelope_id, options):
            mesh.resume(envelope_id, answers.encode())
    except InvalidAnswersError as error:
        raise _still_paused(mesh, envelope_id, error.fields, options) from None
    echo(f"resumed {envelope_id}", err=True)


def _still_paused(mesh: MeshClient, envelope_id: str, problems: dict[str, str], options: str) -> CommandError:
    """Return the error with the problem of each answer, and the line to type."""
    details = "; ".join(f"{name} {problem}" for name, problem in problems.items())
    task = mesh.task(envelope_id)
    pause = task.pause if task is not None else None
    advice = f"Type: {resume_command(envelope_id, pause, options)}" if pause is not None else ""
    return CommandError(f"{envelope_id} stays paused: {details}", advice)
