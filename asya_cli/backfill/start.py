"""`asya backfill NAME`: begins a backfill."""

from __future__ import annotations

from typing import Annotated

import typer

from asya_cli.options import JsonDocument, MeshOptions, selects_mesh
from asya_cli.output.results import write, write_view
from asya_cli.output.text import counted, echo

Follow = Annotated[bool, typer.Option("--follow", "-f", help="Show the progress until the backfill ends.")]


@selects_mesh
def start(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The trigger with the schedule.", show_default=False)],
    *,
    from_: Annotated[
        str,
        typer.Option("--from", metavar="DAY", help="The first day in the zone of the schedule, or a time."),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="DAY", help="The last day in the zone of the schedule, or a time.")
    ],
    at_once: Annotated[int, typer.Option("--at-once", min=1, max=100, help="How many tasks run at a time.")] = 1,
    stop_after: Annotated[
        int | None,
        typer.Option(
            "--stop-after", metavar="N", min=1, help="Start nothing more after N failures.", show_default=False
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also start slots that were started before.")] = False,
    hold_paused: Annotated[
        bool, typer.Option("--hold-paused", help="A paused task keeps its place, so that no further one starts.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the slots.")] = False,
    follow: Follow = False,
    as_json: JsonDocument = False,
    selected: MeshOptions,
) -> None:
    """Start the slots of a schedule between two days, oldest first, and print the id of the backfill.

    The mesh does it: this command and the terminal may end. A slot that was started before counts as done. With --follow,
    the exit code is 3 if a slot failed, or the backfill was stopped or canceled.
    """
    from uuid import uuid4

    from asya.capabilities.triggers.operators.answers import BackfillRequest
    from asya_cli.backfill.progress import exit_code
    from asya_cli.backfill.progress import follow as follow_backfill
    from asya_cli.backfill.tables import show_backfill
    from asya_cli.triggers.command import triggers_of
    from asya_cli.triggers.moments import local_time

    triggers = triggers_of(selected)
    request = BackfillRequest(
        trigger=name,
        from_=from_,
        to=to,
        at_once=at_once,
        stop_after=stop_after,
        again=again,
        hold_paused=hold_paused,
        dry_run=dry_run,
    )
    view = triggers.begin(request, str(uuid4()))
    if dry_run:
        first, until = local_time(view.first, view.timezone), local_time(view.until, view.timezone)
        text = f"{counted(view.total, 'slot')} from {first} to {until}; nothing was started"
        write(view, text, as_json=as_json)
        return
    options = selected.as_typed()
    if not follow:
        write(view, view.id, as_json=as_json)
        if not as_json:
            slots = counted(view.total, "slot")
            echo(f"{slots}; `asya backfill show {view.id} --follow{options}` shows them", err=True)
        return
    view = follow_backfill(triggers, view.id, options)
    write_view(view, show_backfill, as_json=as_json)
    raise typer.Exit(exit_code(view))
