"""`asya replay`: starts a new task from a stored copy of an envelope."""

from __future__ import annotations

from typing import Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, EnvelopeId, Namespace, Region, State, client


def replay(
    envelope_id: EnvelopeId,
    *,
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
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Run an envelope again as a new task, by default from the hop that failed, and print the id of the new task.

    The new task gets a new deadline if the old one had one. The old task does not change.
    """
    if hop is not None and checkpoint is not None:
        raise CommandError("--from and --from-checkpoint exclude each other", "Use one of them.")

    from asya.dead_letters.replay import ReplayRequest

    new_task = client(state, namespace, region).replay(envelope_id, ReplayRequest(hop=hop, checkpoint=checkpoint))
    typer.echo(f"started from {new_task.source}", err=True)
    typer.echo(new_task.id)
