"""`asya cost`: what a mesh costs by the list prices of AWS, with the arithmetic, and how large it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.deployment import Choice, Context, Output
from asya_cli.options import DEFAULT_MESH, JsonDocument, MeshFile, Stage
from asya_cli.output.results import write_view

if TYPE_CHECKING:
    from rich.table import Table

    from asya_cli.output.console import Console
    from asya_infra.costs.view import Costs, Sum

_OUTPUT = Path("cdk.out")


def cost(
    mesh: MeshFile = DEFAULT_MESH,
    stage: Stage = "",
    *,
    idle: Annotated[bool, typer.Option("--idle", help="Only a month without an envelope.")] = False,
    context: Context = None,
    output: Output = _OUTPUT,
    as_json: JsonDocument = False,
) -> None:
    """Compute what a mesh costs: a month without an envelope, and a million hops and tasks of light actors. Count its resources.

    List prices without free tiers. Your handlers, job runs, data and network come on top. It needs no AWS account.
    """
    from asya_infra.assembly import read_assembly
    from asya_infra.costs.view import costs_of

    choice = Choice(mesh, stage, tuple(context or ()), output, None, None)
    choice.synthesize()
    assembly = read_assembly(choice.folder)
    write_view(costs_of(assembly.namespace, assembly.templates, only_idle=idle), _show, as_json=as_json)


def _show(console: Console, costs: Costs) -> None:
    console.print(f"asya-{costs.namespace}: {costs.prices}, without free tiers", style="bold")
    console.print(costs.size.text)
    for each in (costs.idle, *costs.calls):
        console.print()
        console.print(_table(each))


def _table(costs: Sum) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0), show_footer=True)
    table.add_column(costs.of, footer="together")
    table.add_column("calculation")
    table.add_column("price")
    table.add_column("$", footer=f"{costs.dollars:.2f}", justify="right")
    for part in costs.parts:
        table.add_row(part.part, part.calculation, part.price, f"{part.dollars:.3f}")
    return table
