"""Prints backfills at 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from asya_cli.backfill.progress import line_of
from asya_cli.output.text import counted, one_line, without_fraction
from asya_cli.tasks.report import COLORS
from asya_cli.triggers.moments import local_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asya.capabilities.triggers.operators.answers import BackfillView
    from asya_cli.output.console import Console

_COLORS = {"done": "green", "stopped": "red", "canceled": "yellow", "running": "cyan"}


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
    facts += [("paused", f"{counted(view.paused, 'task')}, which gave their places back")] if view.paused else []
    facts += [("paused", "a paused task keeps its place")] if view.hold_paused else []
    facts += [("stop after", counted(view.stop_after, "failure"))] if view.stop_after is not None else []
    return [*facts, ("by", view.by), ("since", without_fraction(view.created_at))]


def _state(view: BackfillView) -> Text:
    return Text(view.state, style=_COLORS.get(view.state, ""))
