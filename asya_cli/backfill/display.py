"""Prints backfills at 80 columns, and follows one to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from asya.protocol import states
from asya_cli import clock
from asya_cli.errors import INTERRUPTED, ExitCode
from asya_cli.output.console import Console
from asya_cli.output.text import counted, echo, one_line, without_fraction
from asya_cli.tasks.report import COLORS
from asya_cli.triggers.tables import local_time

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    return view.state != states.RUNNING and not view.running


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
    is_good = view.state == states.DONE and not view.failed
    return ExitCode.DONE if is_good else ExitCode.TASK_FAILED


_COLORS = {states.DONE: "green", states.STOPPED: "red", states.CANCELED: "yellow", states.RUNNING: "cyan"}


def backfill_table(views: Sequence[BackfillView]) -> Table:
    """Return a table with one line for each backfill."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    for name in ("backfill", "trigger", "state", "done", "failed"):
        is_text = name in ("backfill", "trigger", "state")
        table.add_column(name, no_wrap=name != "trigger", overflow="fold", justify="left" if is_text else "right")
    for view in views:
        done = view.succeeded + view.failed + view.before
        table.add_row(
            Text(one_line(view.id)), one_line(view.trigger), _state(view), f"{done}/{view.total}", str(view.failed)
        )
    return table


def show_backfill(console: Console, view: BackfillView) -> None:
    """Print a backfill, its running slots and its newest failures."""
    console.print(Text.assemble((one_line(view.id), "bold"), "  ", _state(view)), soft_wrap=True)
    for name, value in _facts(view):
        console.print(Text.assemble((f"  {name:<12}", "dim"), one_line(value)), soft_wrap=True)
    for slot in view.running:
        status = slot.status or "starting"
        at = local_time(slot.at, view.timezone)
        console.print(Text.assemble(f"  {at}  ", (status, COLORS.get(status, "cyan")), f"  {slot.id}"), soft_wrap=True)
    for failure in view.failures:
        at = local_time(failure.slot, view.timezone)
        problem = one_line(failure.problem.partition("\n")[0])
        console.print(Text.assemble(f"  {at}  ", ("failed", "red"), f"  {failure.id}"), soft_wrap=True)
        console.print(Text(f"    {problem}", style="dim"), soft_wrap=True)


def _facts(view: BackfillView) -> list[tuple[str, str]]:
    first, until = local_time(view.first, view.timezone), local_time(view.until, view.timezone)
    facts = [
        ("trigger", view.trigger),
        ("slots", f"{first} to {until}"),
        ("progress", line_of(view)),
        ("at once", str(view.at_once)),
    ]
    facts += [(states.PAUSED, f"{counted(view.paused, 'task')}, which gave their places back")] if view.paused else []
    facts += [(states.PAUSED, "a paused task keeps its place")] if view.hold_paused else []
    facts += [("stop after", counted(view.stop_after, "failure"))] if view.stop_after is not None else []
    return [*facts, ("by", view.by), ("since", without_fraction(view.created_at))]


def _state(view: BackfillView) -> Text:
    return Text(view.state, style=_COLORS.get(view.state, ""))
