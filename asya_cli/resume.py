"""`asya resume`: the answers for a task that waits for a person."""

from __future__ import annotations

from typing import Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, EnvelopeId, Namespace, Region, State, client


def resume(
    envelope_id: EnvelopeId,
    *,
    answers: Annotated[
        str, typer.Option("--input", metavar="JSON", help="The answers by name, such as '{\"approved\": true}'.")
    ] = "{}",
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Let a paused task go on with these answers. `asya status ID` shows what it asks for.

    Answers that do not fit are told one by one, and the task stays paused.
    """
    import msgspec

    try:
        found = msgspec.json.decode(answers.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommandError(f"--input is no JSON: {error}", "Such as: --input '{\"approved\": true}'") from None
    if not isinstance(found, dict):
        raise CommandError("--input should be a JSON object", "Such as: --input '{\"approved\": true}'")
    client(state, namespace, region).resume(envelope_id, answers.encode())
    typer.echo(f"{envelope_id} goes on", err=True)
