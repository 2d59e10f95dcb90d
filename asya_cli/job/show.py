"""`asya job show`: one job run with its envelopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya.protocol.times import format_duration
from asya_cli.job.options import MemoryPrice, RunId, VcpuPrice
from asya_cli.options import MeshOptions, selects_mesh
from asya_cli.output.text import counted, echo, one_line, write_json_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from asya.capabilities.operations.aws.job_runs import EnvelopeLine, RunReport
    from asya.heavy.aws.run_records import RunRecord
    from asya.protocol.job_runs import CallWork, Usage
    from asya_cli.job.mesh_runs import MeshRuns

_COLUMNS = ("envelope", "attempt", "outcome", "ms", "vCPU-hours", "GB-hours", "$", "error")
_NUMBERS = frozenset({"attempt", "ms", "vCPU-hours", "GB-hours", "$"})
_LEFT_OUT = ("GB-hours", "vCPU-hours", "$")
"""The columns that a narrow terminal lacks, the first one first; the facts above have their sums."""
_GAP = 2
_SMALLEST_ERROR = 16
"""Columns below which an error tells little."""
_IDLE_SECONDS = 60
"""How long no task of a stage may end before that is told."""


@selects_mesh
def show(
    run_id: RunId,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Maximum number of envelopes.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run with all its envelopes as JSON.")] = False,
    vcpu_price: VcpuPrice = None,
    memory_price: MemoryPrice = None,
    selected: MeshOptions,
) -> None:
    """Show a job run: its state, envelopes, verdict, stages, cost, log, and a link to its Spark UI (valid for an hour).

    The cost of a run is shared by its envelopes: by the duration of their calls if all are known, else equally. The output
    says which, and which prices it used. Usage is known once the run has ended.
    """
    from asya.capabilities.operations.aws.job_runs import read_report
    from asya.capabilities.operations.prices import prices_of
    from asya.heavy.aws.run_records import job_run_number
    from asya.protocol.job_runs import driver_log_key
    from asya_cli.job.mesh_runs import MeshRuns, run_errors

    options = selected.as_typed()
    mesh = MeshRuns(selected.client().connection, options)
    with run_errors(f"cannot read the job run {run_id}"):
        record = mesh.read(run_id)
        prices = prices_of(mesh.architecture(record), vcpu=vcpu_price, memory=memory_price)
        report = read_report(mesh.reader, record, prices)
    if as_json:
        write_json_document(report)
        return
    for name, value in facts(report):
        echo(f"{name:<10} {one_line(value)}")
    if record.job_run_id and record.application_id:
        log = driver_log_key(record.actor, job_run_number(record), record.application_id, record.job_run_id)
        echo(f"{'log':<10} s3://{mesh.bucket}/{log}")
        echo(f"{'dashboard':<10} {_dashboard(mesh, record)}")
    _print_envelopes(report.members, limit)


def facts(report: RunReport) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each known fact of a run."""
    yield "run", report.run_id
    yield "job run", report.job_run_id or "not started"
    yield "state", report.state
    if report.outcomes is not None:
        yield "results", report.outcomes.text
    if report.emr_state:
        yield "EMR state", report.emr_state
    if report.details:
        yield "details", report.details
    if report.size:
        yield "size", report.size
    yield "envelopes", str(report.envelopes)
    yield "formed", report.formed_at
    if report.running_at:
        yield "running", report.running_at
    if report.attempts:
        yield "attempts", ", ".join(report.attempts)
    yield from _progress(report)
    if report.work is not None:
        yield from _work(report.work)
    if report.verdict:
        yield "verdict", report.verdict
    if report.usage is not None:
        yield "billed" if report.usage.billed else "used", usage_text(report.usage)
        yield "cost", f"${report.dollars:.4f}"
        yield "prices", report.prices
        if report.shared:
            yield "shared", f"{report.shared}, among {counted(report.envelopes, 'envelope')}"
    if report.problem:
        yield "problem", report.problem


def _progress(report: RunReport) -> Iterator[tuple[str, str]]:
    heartbeat = report.heartbeat
    if heartbeat is None:
        return
    executors = "" if heartbeat.executors is None else f", {counted(heartbeat.executors, 'executor')} so far"
    yield "heartbeat", f"{heartbeat.at}, {counted(heartbeat.done, 'envelope')} done{executors}"
    for stage in heartbeat.stages:
        rows = f"{stage.rows_read} rows read, {stage.rows_written} written"
        idle = stage.idle_seconds(heartbeat.at)
        stands = f", no task has ended for {format_duration(round(idle))}" if idle >= _IDLE_SECONDS else ""
        yield "stage", f"{stage.stage} {stage.name}: {stage.done} of {stage.tasks} tasks, {rows}{stands}"


def _work(work: CallWork) -> Iterator[tuple[str, str]]:
    yield "shuffle", f"{size_text(work.shuffle_read)} read, {size_text(work.shuffle_written)} written"
    if work.spilled_memory or work.spilled_disk:
        yield "spilled", f"{size_text(work.spilled_memory)} of memory, {size_text(work.spilled_disk)} on disk"
    if (skew := work.skew) is not None:
        yield (
            "skew",
            (
                f"stage {skew.stage} {skew.name}: the longest of {counted(skew.tasks, 'task')} took "
                f"{skew.longest_ms / 1000:.1f} s, the median {skew.median_ms / 1000:.1f} s"
            ),
        )


def size_text(size: int) -> str:
    """Return a number of bytes: `640 B`, `12.5 KiB`, `3.0 GiB`."""
    amount, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB"]
    while abs(amount) >= 1024 and len(units) > 1:
        amount /= 1024
        del units[0]
    return f"{size} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def usage_text(usage: Usage) -> str:
    """Return the vCPU-hours and GB-hours of a usage."""
    return f"{usage.vcpu_hours:g} vCPU-hours, {usage.memory_gb_hours:g} GB-hours of memory"


def _print_envelopes(lines: Sequence[EnvelopeLine], limit: int) -> None:
    from asya_cli.output.console import table_console

    if not lines or not limit:
        return
    echo("")
    console = table_console()
    console.print(_table_of([tuple(map(one_line, _row(line))) for line in lines[:limit]], console.width))
    if len(lines) > limit:
        echo(f"{len(lines) - limit} more; -n {len(lines)} shows all", err=True)


def _table_of(rows: Sequence[tuple[str, ...]], width: int) -> Table:
    """Return the table of envelopes; columns are left out until there is room for errors."""
    from rich.table import Table
    from rich.text import Text

    widths = {
        name: max(map(len, column)) + _GAP
        for name, column in zip(_COLUMNS, zip(_COLUMNS, *rows, strict=True), strict=True)
    }
    widths["error"] = min(widths["error"], _SMALLEST_ERROR)
    for name in _LEFT_OUT:
        if sum(widths.values()) > width:
            del widths[name]
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
    for name in widths:
        table.add_column(
            name,
            overflow="fold",
            no_wrap=name not in ("outcome", "error"),
            justify="right" if name in _NUMBERS else "left",
        )
    for row in rows:
        table.add_row(*(Text(cell) for name, cell in zip(_COLUMNS, row, strict=True) if name in widths))
    return table


def _row(line: EnvelopeLine) -> tuple[str, ...]:
    usage, dollars = line.usage, line.dollars
    return (
        line.id,
        str(line.attempt),
        line.outcome,
        f"{line.milliseconds:.0f}" if line.milliseconds else "-",
        f"{usage.vcpu_hours:.5f}" if usage else "-",
        f"{usage.memory_gb_hours:.5f}" if usage else "-",
        f"{dollars:.6f}" if dollars is not None else "-",
        line.error[:120],
    )


def _dashboard(mesh: MeshRuns, record: RunRecord) -> str:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return mesh.job_runs(record).dashboard(record.job_run_id or "")
    except (ClientError, BotoCoreError) as error:
        return f"not available: {error}"
