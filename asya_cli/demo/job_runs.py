"""The job runs of the demo's task: what each ran for, how long, and what it would cost on AWS."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rich.table import Table

from asya.capabilities.operations.prices import prices_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from asya.client.mesh_client import MeshClient
    from asya.protocol.job_runs import Usage
    from asya.tasks.timeline import TimelineEntry

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
