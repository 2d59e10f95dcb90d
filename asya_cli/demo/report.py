"""What the demo prints: the duration of its steps, its job runs with their cost, and its result."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from asya.capabilities.operations.prices import prices_of
from asya_cli import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from asya.client.mesh_client import MeshClient
    from asya.protocol.job_runs import Usage
    from asya.tasks.listing import TimelineEntry

BAR_WIDTH = 30


class Lap(NamedTuple):
    """One measured step, in seconds. A step with `within` is part of an earlier one, which counts its time."""

    name: str
    seconds: float
    within: bool = False


@dataclass
class Stopwatch:
    """Measures consecutive steps."""

    laps: list[Lap] = field(default_factory=list)

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Measure the body, also when it fails. Parts noted by the body follow this step."""
        began, place = clock.monotonic(), len(self.laps)
        try:
            yield
        finally:
            self.laps.insert(place, Lap(name, clock.monotonic() - began))

    def note(self, name: str, seconds: float) -> None:
        """Add a part of a step that was measured elsewhere."""
        self.laps.append(Lap(name, seconds, within=True))

    @property
    def total(self) -> float:
        """Sum of all steps, in seconds."""
        return sum(lap.seconds for lap in self.laps if not lap.within)

    def table(self) -> Table:
        """Table of the steps, with a bar for the share of each."""
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(justify="right")
        table.add_column()
        for name, seconds, within in self.laps:
            share = round(BAR_WIDTH * min(1.0, seconds / self.total)) if self.total else 0
            style = "dim" if within else ""
            indent = "      " if within else "  "
            table.add_row(
                Text(indent + name, style), Text(f"{seconds:.1f} s", style), Text("▇" * share, style or "cyan")
            )
        table.add_row(Text("  total", "bold"), Text(f"{self.total:.1f} s", "bold"), Text())
        return table


_MAX_SLICES = 50


@dataclass(frozen=True)
class JobRun:
    """A job run that a task used.

    Attributes:
        seconds: from the start of its first envelope's work to the end of the last one's.
        usage: the resources used; None if they were not reported.
    """

    run_id: str
    actor: str
    envelopes: int
    seconds: float
    usage: Usage | None

    @property
    def dollars(self) -> float | None:
        """The price of the resources; None if they are unknown."""
        if self.usage is None:
            return None
        return prices_of("ARM64").cost(self.usage)


def read_job_runs(mesh: MeshClient, task_id: str) -> list[JobRun]:
    """Return the job runs of a task and of its slices, in the order of their start.

    Raises:
        CommandError: The gateway does not answer, or answers with an error.
    """
    children = [task.id for task in mesh.tasks(status=None, parent=task_id, limit=_MAX_SLICES)]
    return job_runs([entry for each in (task_id, *children) for entry in mesh.timeline(each)])


def job_runs(entries: Iterable[TimelineEntry]) -> list[JobRun]:
    """Return the job runs in timelines, in the order of their start. Envelopes that share a run count it once."""
    by_run: dict[str, list[TimelineEntry]] = {}
    for entry in entries:
        if entry.run is not None:
            by_run.setdefault(entry.run.run_id, []).append(entry)
    return [_merged(each) for each in sorted(by_run.values(), key=lambda each: _times(each)[:1])]


def _merged(entries: Sequence[TimelineEntry]) -> JobRun:
    notes = [entry.run for entry in entries if entry.run is not None]
    latest, times = max(notes, key=lambda note: note.at), _times(entries)
    seconds = (times[-1] - times[0]).total_seconds() if times else 0.0
    usage = next((note.usage for note in notes if note.usage is not None), None)
    return JobRun(latest.run_id, entries[0].actor, latest.envelopes, seconds, usage)


def _times(entries: Iterable[TimelineEntry]) -> list[datetime]:
    texts = [text for entry in entries for text in (entry.processing_at, entry.completed_at) if text]
    return sorted(map(datetime.fromisoformat, texts))


def table(runs: Sequence[JobRun]) -> Table:
    """Return a table with a row for each run, and the sum."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, min_width=max((len(run.run_id) for run in runs), default=0))
    for _ in range(3):
        rows.add_column(justify="right")
    for run in runs:
        noun = "envelope" if run.envelopes == 1 else "envelopes"
        rows.add_row(run.run_id, f"{run.envelopes} {noun}", f"{run.seconds:.1f} s", _price(run.dollars))
    known = [run.dollars for run in runs if run.dollars is not None]
    seconds = sum(run.seconds for run in runs)
    rows.add_row("total", "", f"{seconds:.1f} s", _price(sum(known) if known else None), style="bold")
    return rows


def _price(dollars: float | None) -> str:
    return "–" if dollars is None else f"${dollars:.4f}"


Row = dict[str, Any]
ROWS = 6


def summary(payload: Row) -> list[RenderableType]:
    """Return key figures, and tables of airports, worst airlines, worst routes and weather."""
    statistics = payload["statistics"]
    rows_in, cancelled = payload["rows_in"], payload["cancelled"]
    share = cancelled / rows_in if rows_in else 0.0
    carriers = sorted(statistics["by_carrier"], key=lambda row: _descending(row["mean_arr_delay"]))
    routes = statistics["worst_routes"]
    airports = statistics["by_airport"]
    return [
        f"[bold]{rows_in:,}[/] flights, [bold]{cancelled:,}[/] canceled ({share:.1%})",
        Columns(
            [
                delays("Airports", [""], [[row["name"] or row["airport"]] for row in airports], airports),
                delays(
                    "Airlines, worst first",
                    ["Airline"],
                    [[row["name"] or row["carrier"]] for row in carriers],
                    carriers,
                ),
                delays("Worst routes", ["From", "To"], [[row["origin"], row["dest"]] for row in routes], routes),
                delays("Weather", [""], [[row["weather"]] for row in statistics["weather"]], statistics["weather"]),
            ],
            padding=(0, 3),
        ),
    ]


def delays(title: str, headings: Sequence[str], names: Sequence[Sequence[str]], rows: Sequence[Row]) -> Table:
    """Return a table of mean arrival delays in minutes, limited to the first rows."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1), header_style="dim")
    for heading in headings:
        table.add_column(heading)
    table.add_column("flights", justify="right")
    table.add_column("delay", justify="right", style="cyan")
    for name, row in list(zip(names, rows, strict=True))[:ROWS]:
        table.add_row(*name, f"{row['flights']:,}", minutes(row["mean_arr_delay"]))
    return table


def minutes(value: float | None) -> str:
    """Format `12.3 min`, or a dash if no flight arrived."""
    return "–" if value is None else f"{value:.1f} min"


def _descending(value: float | None) -> float:
    return float("inf") if value is None else -value
