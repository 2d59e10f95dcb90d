"""The timeline of a task."""

from asya.protocol.hops import HopRecord, Stage
from asya.protocol.job_runs import Usage
from asya.protocol.run_progress import RunNote
from asya.tasks.listing import timeline

USAGE = Usage(vcpu_hours=1.0, memory_gb_hours=1.0, storage_gb_hours=0.0, billed=True)


def note(run: int, state: str, at: int) -> RunNote:
    usage = USAGE if state == "SUCCESS" else None
    text = f"2026-11-20T12:00:{at:02}.000000Z"
    return RunNote(run_id=f"run-{run}", job_run_id=f"job-{run}", state=state, at=text, envelopes=1, usage=usage)


def hop(stage: Stage, run: RunNote) -> HopRecord:
    return HopRecord(id="t", generation=0, position=0, attempt=1, stage=stage, actor="a", percent=0, at=run.at, run=run)


def test_the_end_of_a_run_counts_whenever_its_start_is_noted() -> None:
    """The events of a job run come in any order."""
    end = note(1, "SUCCESS", 4)
    (entry,) = timeline([hop("start", note(1, "RUNNING", 5)), hop("done", end)])
    assert entry.run == end


def test_a_later_run_outdates_the_end_of_an_earlier_one() -> None:
    second = note(2, "RUNNING", 9)
    (entry,) = timeline([hop("start", second), hop("done", note(1, "FAILED", 4))])
    assert entry.run == second
