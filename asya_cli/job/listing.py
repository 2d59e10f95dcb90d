"""`asya job list`: the runs of heavy actors, and the drained actors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli import clock
from asya_cli.errors import CommandError
from asya_cli.job.options import MemoryPrice, VcpuPrice
from asya_cli.options import MeshOptions, selects_mesh
from asya_cli.output.text import counted, echo, one_line, without_fraction, write_json_line

if TYPE_CHECKING:
    from datetime import datetime

    from asya.capabilities.operations.aws.job_runs import RunLine
    from asya.heavy.aws.drains import Drain
    from asya_cli.job.mesh_runs import MeshRuns


@selects_mesh
def list_runs(
    actor: Annotated[str | None, typer.Argument(help="Only the runs of this actor.", show_default=False)] = None,
    *,
    before: Annotated[
        int | None, typer.Option("--before", metavar="NUMBER", help="Only older runs of ACTOR than this one: a page.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="Maximum number of ended runs, in total.")
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per run and line.")] = False,
    vcpu_price: VcpuPrice = None,
    memory_price: MemoryPrice = None,
    selected: MeshOptions,
) -> None:
    """List the job runs of an actor, or of all: the open ones first, then the others, newest first.

    Drained actors, and envelopes that wait for a run, are named on standard error.
    """
    from asya.capabilities.operations.aws.job_runs import line_of, read_runs
    from asya.capabilities.operations.prices import prices_of
    from asya_cli.aws_errors import check_actor
    from asya_cli.job.mesh_runs import MeshRuns, run_errors

    if before is not None and actor is None:
        raise CommandError(
            "--before needs an actor", "Run numbers belong to one actor: asya job list ACTOR --before N."
        )
    options = selected.as_typed()
    mesh = MeshRuns(selected.client().connection, options)
    with run_errors("cannot list the job runs"):
        actors = mesh.heavy_actors() if actor is None else [actor]
        if not as_json:
            _show_waiting(mesh, actors)
        older = {actor: before} if actor is not None and before is not None else {}
        records, has_more = read_runs(mesh.records, actors, before=older, limit=limit, has_open=not older)
        known = next((each for each in records if each.application_id), None)
        prices = prices_of(mesh.architecture(known), vcpu=vcpu_price, memory=memory_price)
    lines = [line_of(mesh.run_id(record), record, prices) for record in records]
    if as_json and lines:
        for line in lines:
            write_json_line(line)
        return
    if not lines:
        if actor is not None:
            check_actor(mesh.connection, actor)
        echo("no job runs", err=True)
        return
    _print(lines)
    echo(f"prices: {prices.source}", err=True)
    if has_more:
        rest = (
            f"asya job list {actor} --before {records[-1].number}" if actor else "asya job list ACTOR, or a higher -n"
        )
        echo(f"older runs: {rest}", err=True)


def age(formed_at: str, now: datetime) -> str:
    """Return the time since a run was formed, in the two largest units that fit: `3d 4h`, `12m 5s`."""
    from asya.protocol.times import parse_time

    seconds = max(0, int((now - parse_time(formed_at)).total_seconds()))
    for unit, smaller, name, next_name in ((86_400, 3_600, "d", "h"), (3_600, 60, "h", "m"), (60, 1, "m", "s")):
        if seconds >= unit:
            return f"{seconds // unit}{name} {seconds % unit // smaller}{next_name}"
    return f"{seconds}s"


def envelopes_text(line: RunLine) -> str:
    """Return the envelopes of a run by outcome, or how far the run is: `19 succeeded, 1 failed`, `20 running`."""
    if line.outcomes is None or line.is_open:
        return f"{line.envelopes} {line.state}"
    return line.outcomes.text


def drain_line(actor: str, drain: Drain, pending: int, options: str) -> str:
    """Return what an operator should know about a drained actor, with the options that select the mesh."""
    by = f" by {one_line(drain.by)}" if drain.by else ""
    reason = f" ({one_line(drain.reason)})" if drain.reason else ""
    return (
        f"{actor}: drained{by} since {without_fraction(drain.since)}{reason}; {counted(pending, 'envelope')} pending. "
        f"`asya job undrain {actor}{options}` lets its runs start"
    )


def _show_waiting(mesh: MeshRuns, actors: list[str]) -> None:
    for actor in actors:
        drain, pending = mesh.drains.get(actor), mesh.pending(actor)
        if drain is not None:
            echo(drain_line(actor, drain, pending, mesh.options), err=True, color="yellow")
        elif pending:
            echo(f"{actor}: {counted(pending, 'envelope')} pending", err=True)


def _print(lines: list[RunLine]) -> None:

    from rich.table import Table

    from asya_cli.output.console import table_console

    now = clock.now()
    # One space between columns: an id of 37 characters and the counts of two outcomes fit into 80.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for column in ("run", "envelopes", "age", "vCPU-h", "$"):
        is_text = column in {"run", "envelopes"}
        table.add_column(column, no_wrap=column != "envelopes", overflow="fold", justify="left" if is_text else "right")
    for line in lines:
        hours = f"{line.usage.vcpu_hours:.3f}" if line.usage else "-"
        dollars = f"{line.dollars:.4f}" if line.dollars is not None else "-"
        row = (line.run_id, envelopes_text(line), age(line.formed_at, now), hours, dollars)
        table.add_row(*map(one_line, row))
    table_console().print(table)
