"""`asya report`: what ran since a time, what failed, how long it took, and what its job runs cost."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated

import typer

from asya.protocol import states
from asya_cli import clock
from asya_cli.errors import CommandError
from asya_cli.options import JsonDocument, MeshOptions, selects_mesh
from asya_cli.output.text import counted, echo, one_line, without_fraction, write_json_line
from asya_cli.tasks.selection import moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asya.client.connection import Connection
    from asya.client.mesh_client import MeshClient
    from asya.ends.results import ResultRow
    from asya_cli.report.summary import Summary


@selects_mesh
def report(
    *,
    since: Annotated[str, typer.Option("--since", help="12h, 7d, or a time such as 2026-11-24T22:00:00Z.")] = "24h",
    start: Annotated[
        str, typer.Option("--start", help="Only tasks whose route starts at this actor.", show_default=False)
    ] = "",
    tool: Annotated[str, typer.Option("--tool", help="Only tasks of this tool.", show_default=False)] = "",
    as_json: JsonDocument = False,
    selected: MeshOptions,
) -> None:
    """Sum up what ended since a time: tasks, failures, durations, and the cost of job runs.

    Tasks are counted by the first actor of their route, failures by actor and error: the open ones, and beside them those that
    were replayed, dismissed or overtaken since. The ends come from the index of results in S3. Tasks that are still at work are
    not in it: `asya list --status running` shows them.
    """
    from asya.protocol.times import format_time
    from asya_cli.report.summary import last_ends, read_rows, summarize

    now = clock.now()
    earliest = moment(since, now)
    mesh = selected.client()
    connection, since_text = mesh.connection, format_time(earliest)
    rows = last_ends(read_rows(connection, earliest, now), since_text)
    summary = summarize(rows, since_text, start, tool, _settled(mesh, rows))
    if not (start or tool):  # a job run may have envelopes of several routes
        summary = _with_jobs(summary, connection)
    if as_json:
        write_json_line(summary)
    else:
        _print(summary)


def _settled(mesh: MeshClient, rows: Sequence[ResultRow]) -> set[str]:
    """Return the ids of the failed tasks whose failures are settled, or go on in a failed replay.

    If the gateway does not tell, all failures count as open.
    """
    from asya.client.errors import MeshError
    from asya.tasks.listing import TaskFilter
    from asya_cli.tasks.selection import limited

    failed = [row for row in rows if row.phase == states.FAILED]
    if not failed:
        return set()
    wanted = TaskFilter(
        status=states.FAILED, resolved=True, since=min(row.created_at or row.ended_at for row in failed)
    )
    try:
        tasks = [task for page in limited(mesh.task_pages(wanted)) for task in page.items]
    except (MeshError, CommandError) as error:
        echo(f"settled failures count as open: {error}", err=True)
        return set()
    found = ((task.id, task.resolution) for task in tasks)
    return {
        task_id for task_id, what in found if what is not None and not (what.is_open and what.status != states.FAILED)
    }


def _with_jobs(summary: Summary, connection: Connection) -> Summary:
    from asya.capabilities.operations.prices import prices_of
    from asya_cli.job.mesh_runs import MeshRuns, run_errors
    from asya_cli.report.summary import JobCost

    mesh = MeshRuns(connection)
    jobs: list[JobCost] = []
    source = ""
    with run_errors("cannot read the job runs"):
        for actor in mesh.heavy_actors():
            recent = takewhile(lambda record: record.formed_at >= summary.since, mesh.records.recent(actor))
            ended = [record for record in recent if record.usage is not None]
            if not ended:
                continue
            prices = prices_of(mesh.architecture(next((each for each in ended if each.application_id), None)))
            usages = [record.usage for record in ended if record.usage is not None]
            source = prices.source
            jobs.append(
                JobCost(
                    actor=actor,
                    runs=len(usages),
                    vcpu_hours=sum(usage.vcpu_hours for usage in usages),
                    memory_gb_hours=sum(usage.memory_gb_hours for usage in usages),
                    dollars=sum(map(prices.cost, usages)),
                )
            )
    return replace(summary, jobs=tuple(jobs), prices=source)


def _print(summary: Summary) -> None:
    from rich.table import Table
    from rich.text import Text

    from asya_cli.output.console import table_console

    console = table_console()
    total = sum(each.succeeded + each.failed + each.canceled for each in summary.ends)
    console.print(f"{counted(total, 'task')} ended since {without_fraction(summary.since)}")
    tables = (
        (
            ("start", "succeeded", "failed", "canceled", "median", "slowest"),
            [
                (each.start, each.succeeded, each.failed, each.canceled, _seconds(each.median), _seconds(each.slowest))
                for each in summary.ends
            ],
        ),
        (
            ("failures", "settled", "actor", "error"),
            [(each.count, each.settled or "", each.actor, each.error) for each in summary.causes],
        ),
        (
            ("job runs of", "runs", "vCPU-hours", "GB-hours", "dollars"),
            [
                (each.actor, each.runs, f"{each.vcpu_hours:.3f}", f"{each.memory_gb_hours:.3f}", f"{each.dollars:.4f}")
                for each in summary.jobs
            ],
        ),
    )
    for names, rows in tables:
        if rows:
            table = Table(box=None, pad_edge=False, header_style="dim")
            for name in names:
                left = name in {"start", "actor", "error", "job runs of"}
                table.add_column(name, justify="left" if left else "right", overflow="fold")
            for row in rows:
                table.add_row(*(Text(one_line(str(cell))) for cell in row))
            console.print()
            console.print(table)
    if summary.prices:
        echo(f"prices: {summary.prices}", err=True)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f} s"
