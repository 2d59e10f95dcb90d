"""The progress of a job run."""

from asya.protocol.run_progress import StageNote


def test_a_stage_knows_for_how_long_no_task_has_ended() -> None:
    stage = StageNote(stage=1, progress_at="2026-11-25T22:00:00.000000Z")
    assert stage.idle_seconds("2026-11-25T22:08:00.000000Z") == 480
    assert stage.idle_seconds("2026-11-25T21:59:00.000000Z") == 0
    assert StageNote(stage=1).idle_seconds("2026-11-25T22:08:00.000000Z") == 0
