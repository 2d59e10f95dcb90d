"""Follows a backfill to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from asya_cli import clock
from asya_cli.errors import INTERRUPTED, ExitCode
from asya_cli.output.console import Console
from asya_cli.output.text import echo, one_line

if TYPE_CHECKING:
    from asya.capabilities.triggers.operators.answers import BackfillView
    from asya.client.triggers import Triggers

SECONDS = 2.0
"""Between two questions to the gateway."""


def follow(triggers: Triggers, backfill_id: str, options: str) -> BackfillView:
    """Show the progress on standard error until the backfill ends, and return it.

    Args:
        triggers: The triggers of the mesh.
        backfill_id: The id of the backfill.
        options: The options that select the mesh, as typed.

    Raises:
        MeshError: The mesh has no such backfill, or the gateway fails or does not answer.
    """
    try:
        with Console(stderr=True, markup=False).status("") as status:
            while True:
                view = triggers.backfill(backfill_id)
                if has_ended(view):
                    return view
                status.update(line_of(view))
                clock.sleep(SECONDS)
    except KeyboardInterrupt:
        again = f"`asya backfill show {one_line(backfill_id)} --follow{options}`"
        echo(f"{one_line(backfill_id)} goes on. {again} shows it again.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def has_ended(view: BackfillView) -> bool:
    """Return whether a backfill starts nothing by itself any more, and none of its tasks runs."""
    return view.state != "running" and not view.running


def line_of(view: BackfillView) -> str:
    """Return the progress of a backfill in one line."""
    done = view.succeeded + view.failed + view.before
    parts = [f"{done} of {view.total} slots", f"{view.succeeded} succeeded"]
    parts += [f"{view.failed} failed"] if view.failed else []
    parts += [f"{view.before} started before"] if view.before else []
    parts += [f"{len(view.running)} running"] if view.running else []
    parts += [view.problem] if view.problem else []
    return ", ".join(parts)


def exit_code(view: BackfillView) -> int:
    """Return the exit code of a command that has followed a backfill."""
    is_good = view.state == "done" and not view.failed
    return ExitCode.DONE if is_good else ExitCode.TASK_FAILED
