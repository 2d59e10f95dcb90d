"""`asya actors`: the actors of a mesh in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.options import MeshOptions, selects_mesh
from asya_cli.output.text import counted, one_line, write_json_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.capabilities.operations.mesh_numbers import ActorNumbers


@selects_mesh
def actors(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per actor and line.")] = False,
    selected: MeshOptions,
) -> None:
    """Show the actors of the mesh in numbers: what waits, what fails, queues that nobody reads, open circuits, job runs.

    Counts of SQS are approximate. Rates are those of the last 5 minutes, of CloudWatch; a mesh on this machine has none. The
    command is for operators. Lines with a severity say what would raise an alarm, also in a mesh that tells nobody.
    """
    from rich.table import Table
    from rich.text import Text

    from asya.client.operations import Operations
    from asya_cli.output.console import table_console
    from asya_cli.would_alarm import show_raised

    numbers = Operations(selected.client()).numbers()
    if as_json:
        for actor in numbers.actors:
            write_json_line(actor)
        return
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("actor", overflow="fold")
    for name in ("waiting", "at work", "oldest", "dead", "per min", "failed"):
        table.add_column(name, justify="right")
    table.add_column("state", overflow="fold")
    for actor in numbers.actors:
        cells = (
            str(actor.waiting),
            str(actor.in_flight),
            _number(actor.oldest_seconds, " s"),
            str(actor.dead_letters or ""),
            _number(actor.per_minute),
            _number(actor.failing_per_minute),
        )
        table.add_row(Text(one_line(actor.name)), *cells, ", ".join(states(actor)))
    console = table_console()
    console.print(table)
    for actor in numbers.actors:
        for line in explanations(actor):
            console.print(Text(one_line(f"{actor.name}: {line}")), soft_wrap=True)
    show_raised(console, numbers.actors)


def states(actor: ActorNumbers) -> Iterator[str]:
    """Say what is special about an actor: who reads its queue, its circuit, its job runs, and whether they are held back."""
    if actor.not_read is not None:
        yield f"not read: {actor.not_read.reason}"
    if actor.circuit not in (None, "closed"):
        yield f"circuit {actor.circuit}"
    if (runs := actor.runs) is not None:
        if runs.pending:
            yield f"{counted(runs.pending, 'envelope')} for a run"
        if runs.running:
            yield counted(runs.running, "run")
        if runs.lingering:
            yield f"{runs.lingering} lingering"
        if runs.is_drained:
            yield "drained"


def explanations(actor: ActorNumbers) -> Iterator[str]:
    """Say why an actor does not go on, and what starts it again."""
    if actor.not_read is not None:
        yield f"not read: {actor.not_read.reason}; {actor.not_read.repair}"
    if (circuit := actor.open_circuit) is not None:
        since = f" since {circuit.since}" if circuit.since else ""
        error = f", after {circuit.error}" if circuit.error else ""
        rule = f"{counted(circuit.failures, 'failure')} within {circuit.window:g} s open it"
        yield f"circuit {actor.circuit}{since}{error}; the next call is allowed at {circuit.next_call_at}; {rule}"


def _number(value: float | None, unit: str = "") -> str:
    return "" if not value else f"{value:,.0f}{unit}" if value >= 1 else f"{value:.1f}{unit}"
