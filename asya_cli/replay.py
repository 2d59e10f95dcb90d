"""`asya replay`: a new task from what is kept of an envelope."""

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
        typer.Option("--from", metavar="HOP", min=0, help="From this hop (0: the first) of an actor with keep_input."),
    ] = None,
    checkpoint: Annotated[
        int | None, typer.Option("--from-checkpoint", metavar="N", min=0, help="From the checkpoint at this position.")
    ] = None,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Run an envelope again, from where it failed unless said otherwise, and print the new task's id.

    It gets a new id, and a new deadline if it had one. Of the old task nothing changes.
    """
    if hop is not None and checkpoint is not None:
        raise CommandError("--from and --from-checkpoint exclude each other")

    from asya.dead_letters.replay import ReplayRequest

    started = client(state, namespace, region).replay(envelope_id, ReplayRequest(hop=hop, checkpoint=checkpoint))
    typer.echo(f"started from {started.source}", err=True)
    typer.echo(started.id)
