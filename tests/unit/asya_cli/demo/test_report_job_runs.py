"""The job runs that the demo prints."""

from io import StringIO

from rich.console import Console

from asya.protocol.job_runs import Usage
from asya.protocol.run_progress import RunNote
from asya.tasks.listing import TimelineEntry
from asya_cli.demo.report import job_runs, table

USAGE = Usage(vcpu_hours=0.5, memory_gb_hours=2.0)


def entry(actor: str, run: str | None, start: int, end: int, *, usage: Usage | None = USAGE) -> TimelineEntry:
    note = None
    if run is not None:
        at = f"2026-01-01T00:00:{end:02d}Z"
        note = RunNote(run_id=run, job_run_id="00x", state="SUCCESS", at=at, envelopes=3, usage=usage)
    return TimelineEntry(
        generation=0,
        position=1,
        attempt=1,
        actor=actor,
        processing_at=f"2026-01-01T00:00:{start:02d}Z",
        completed_at=f"2026-01-01T00:00:{end:02d}Z",
        run=note,
    )


def test_envelopes_that_share_a_run_count_it_once() -> None:
    runs = job_runs(
        [
            entry("count", "r2", 20, 28),
            entry("check", None, 0, 1),
            entry("count", "r2", 21, 30),
            entry("clean", "r1", 2, 9),
        ]
    )
    assert [(run.run_id, run.actor, run.envelopes, run.seconds) for run in runs] == [
        ("r1", "clean", 3, 7.0),
        ("r2", "count", 3, 10.0),
    ]
    assert runs[0].dollars == 0.5 * 0.042094 + 2 * 0.004628


def test_the_table_has_runs_times_and_costs() -> None:
    text = StringIO()
    runs = job_runs([entry("clean", "r1", 2, 9), entry("count", "r2", 20, 30, usage=None)])
    Console(file=text, width=100).print(table(runs))
    first, second, total = text.getvalue().splitlines()
    assert first.split() == ["r1", "3", "envelopes", "7.0", "s", "$0.0303"]
    assert second.split() == ["r2", "3", "envelopes", "10.0", "s", "–"]
    assert total.split() == ["total", "17.0", "s", "$0.0303"]
