"""`asya resume`: answers the questions of a paused task."""

from __future__ import annotations

from typing import Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, EnvelopeId, Namespace, Profile, Region, State, client
from asya_cli.output.text import echo

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

    try:
        value = msgspec.json.decode(answers.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommandError(f"--input is not valid JSON: {error}", _EXAMPLE) from None
    if not isinstance(value, dict):
        raise CommandError("--input is not a JSON object", _EXAMPLE)
    client(state, namespace, region, profile).resume(envelope_id, answers.encode())
    echo(f"resumed {envelope_id}", err=True)
