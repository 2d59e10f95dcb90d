"""`asya job list`: the runs of heavy actors, and the drained actors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.job.options import MemoryPrice, VcpuPrice
from asya_cli.options import DEFAULT_STATE, Namespace, Profile, Region, State, client
from asya_cli.output.text import counted, echo, one_line, write_json

if TYPE_CHECKING:
    from datetime import datetime

    from asya.protocol.job_runs import Usage
    from asya.spark.aws.drains import Drain
    from asya.spark.aws.run_items import RunRecord
    from asya_cli.job.mesh_runs import MeshRuns
    from asya_cli.job.prices import Prices


@dataclass(frozen=True)
class RunLine:
    """One run of the list.

    Attributes:
        state: As `run_state` gives it.
        usage, dollars: None until the run has ended.
    """

    run_id: str
    actor: str
    state: str
    is_open: bool
    envelopes: int
    formed_at: str
    usage: Usage | None
    dollars: float | None


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
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """List the job runs of an actor, or of all: the open ones first, then the others, newest first.

    Drained actors, and envelopes that wait for a run, are named on standard error.
    """
    import msgspec

    from asya_cli.job.mesh_runs import MeshRuns, aws_errors
    from asya_cli.job.prices import prices_of
    from asya_cli.suggestions import check_actor

    if before is not None and actor is None:
        raise CommandError(
            "--before needs an actor", "Run numbers belong to one actor: asya job list ACTOR --before N."
        )
    mesh = MeshRuns(client(state, namespace, region, profile).connection)
    with aws_errors("cannot list the job runs"):
        actors = mesh.heavy_actors() if actor is None else [actor]
        if not as_json:
            _show_waiting(mesh, actors)
        records, has_more = read_runs(mesh, actors, before=before, limit=limit)
        known = next((each for each in records if each.application_id), None)
        prices = prices_of(mesh.architecture(known), vcpu=vcpu_price, memory=memory_price)
    lines = [line_of(mesh, record, prices) for record in records]
    if as_json and lines:
        for line in lines:
            write_json(msgspec.json.encode(line) + b"\n")
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


def read_runs(mesh: MeshRuns, actors: list[str], *, before: int | None, limit: int) -> tuple[list[RunRecord], bool]:
    """Read the open runs, then `limit` of the others, newest first; and whether there are more.

    A page with `before` has no open runs of its own, because the first page showed all of them.
    """
    opened: dict[tuple[str, int], RunRecord] = {}
    ended: list[RunRecord] = []
    for actor in actors:
        numbers = list(mesh.records.open_numbers(actor))
        found = (mesh.records.get(actor, number) for number in numbers)
        opened |= {(actor, record.number): record for record in found if record is not None}
        closed = (
            record for record in mesh.records.recent(actor, before=before) if (actor, record.number) not in opened
        )
        ended += islice(closed, limit + 1)
    ended.sort(key=lambda record: record.formed_at, reverse=True)
    first = sorted(opened.values(), key=lambda record: record.formed_at, reverse=True) if before is None else []
    return [*first, *ended[:limit]], len(ended) > limit


def run_state(record: RunRecord) -> str:
    """Return the state of a run in few words: of the mesh until it is started, then of EMR Serverless.

    The state of a batch of a resident run is that of its own envelopes, because the job run goes on.
    """
    from asya.spark.aws.emr_serverless import TERMINAL_STATES

    if record.state == "formed":
        return "formed"
    if not record.job_run_id:
        return "refused"
    state = record.job_state or "SUBMITTED"
    if record.host is not None:
        is_committed = record.resolution is not None and record.resolution.source == "commit"
        return f"{'committed' if is_committed else state}, batch {record.host.batch} of run {record.host.number}"
    if record.is_resident and record.state == "closed" and state not in TERMINAL_STATES:
        return f"{state}, resident"
    return f"{state}, routing" if record.usage is not None and record.state != "closed" else state


def line_of(mesh: MeshRuns, record: RunRecord, prices: Prices) -> RunLine:
    """Return the line of a run."""
    return RunLine(
        mesh.run_id(record),
        record.actor,
        run_state(record),
        record.state != "closed",
        record.members,
        record.formed_at,
        record.usage,
        prices.cost(record.usage) if record.usage else None,
    )


def age(formed_at: str, now: datetime) -> str:
    """Return the time since a run was formed, in the two largest units that fit: `3d 4h`, `12m 5s`."""
    from asya.protocol.times import parse_time

    seconds = max(0, int((now - parse_time(formed_at)).total_seconds()))
    for unit, smaller, name, next_name in ((86_400, 3_600, "d", "h"), (3_600, 60, "h", "m"), (60, 1, "m", "s")):
        if seconds >= unit:
            return f"{seconds // unit}{name} {seconds % unit // smaller}{next_name}"
    return f"{seconds}s"


def drain_line(actor: str, drain: Drain, pending: int) -> str:
    """Return what an operator should know about a drained actor."""
    by = f" by {one_line(drain.by)}" if drain.by else ""
    reason = f" ({one_line(drain.reason)})" if drain.reason else ""
    return (
        f"{actor}: drained{by} since {drain.since[:19]}{reason}; {counted(pending, 'envelope')} pending. "
        f"`asya job undrain {actor}` lets its runs start"
    )


def _show_waiting(mesh: MeshRuns, actors: list[str]) -> None:
    for actor in actors:
        drain, pending = mesh.drains.get(actor), mesh.pending(actor)
        if drain is not None:
            echo(drain_line(actor, drain, pending), err=True, color="yellow")
        elif pending:
            echo(f"{actor}: {counted(pending, 'envelope')} pending", err=True)


def _print(lines: list[RunLine]) -> None:
    from datetime import UTC, datetime

    from rich.table import Table

    from asya_cli.output.console import table_console

    now = datetime.now(UTC)
    # One space between columns: an id of 37 characters and a plain state fit into 80.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for column in ("run", "state", "envelopes", "age", "vCPU-h", "$"):
        is_text = column in {"run", "state"}
        table.add_column(column, no_wrap=column != "state", overflow="fold", justify="left" if is_text else "right")
    for line in lines:
        hours = f"{line.usage.vcpu_hours:.3f}" if line.usage else "-"
        dollars = f"{line.dollars:.4f}" if line.dollars is not None else "-"
        row = (line.run_id, line.state, str(line.envelopes), age(line.formed_at, now), hours, dollars)
        table.add_row(*map(one_line, row))
    table_console().print(table)
