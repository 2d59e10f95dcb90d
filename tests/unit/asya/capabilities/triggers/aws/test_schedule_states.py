"""The states of schedules and of backfills: of two processes that have seen the same state, one writes."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from asya.capabilities.triggers.aws.backfills import Backfills, StoredBackfill
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.operators.backfill import Backfill
from asya.capabilities.triggers.slots import ScheduleState
from asya.testing.dynamo.queries import new_table
from asya.testing.dynamo.tables import MemoryDynamo

NOW = datetime(2026, 11, 25, tzinfo=UTC)
HOUR = timedelta(hours=1)
AT = "2026-11-25T00:00:00.000000Z"
BACKFILL = Backfill(
    id="b1", trigger="nightly", cron="0 2 * * *", timezone="UTC", first=AT, until=AT, total=1, at_once=1, by="AIDA",
    created_at=AT, updated_at=AT,
)  # fmt: skip


@pytest.fixture
def table() -> MemoryDynamo:
    return MemoryDynamo({"tasks": new_table("tasks")})


@pytest.mark.rule("16.due")
@pytest.mark.parametrize("change", [{"decided": NOW + HOUR}, {"paused": True}, {"off": True}])
def test_16_of_two_sweeps_that_have_seen_the_same_schedule_one_writes(
    table: MemoryDynamo, change: dict[str, object]
) -> None:
    states = ScheduleStates(table, "tasks")  # type: ignore[arg-type]
    seen = ScheduleState(decided=NOW, schedule="digest")
    assert states.write("nightly", seen, None)
    assert not states.write("nightly", seen, None)
    assert states.write("nightly", replace(seen, **change), seen)
    assert not states.write("nightly", replace(seen, decided=NOW + 2 * HOUR), seen)
    assert states.read_all() == {"nightly": replace(seen, **change)}


@pytest.mark.rule("16.backfill.state")
def test_16_of_two_steps_that_have_seen_the_same_backfill_one_writes(table: MemoryDynamo) -> None:
    backfills = Backfills(table, "tasks", retention=3600.0)  # type: ignore[arg-type]
    assert backfills.create(BACKFILL, NOW)
    assert not backfills.create(replace(BACKFILL, by="AIDABOB"), NOW)
    seen = backfills.read("b1")
    assert seen is not None
    assert backfills.replace(seen, replace(BACKFILL, succeeded=1), NOW) == StoredBackfill(
        replace(BACKFILL, succeeded=1), 2
    )
    assert backfills.replace(seen, replace(BACKFILL, failed=1), NOW) is None
    assert backfills.read("b1") == StoredBackfill(replace(BACKFILL, succeeded=1), 2)


@pytest.mark.rule("16.backfill.state")
@pytest.mark.parametrize(
    ("state", "is_kept"), [("running", True), ("stopped", True), ("done", False), ("canceled", False)]
)
def test_16_an_ended_backfill_is_listed_as_long_as_tasks_are_kept(
    table: MemoryDynamo, state: str, is_kept: bool
) -> None:
    """One that has stopped may be resumed, so it waits for ever."""
    backfills = Backfills(table, "tasks", retention=3600.0)  # type: ignore[arg-type]
    kept = replace(BACKFILL, state=state)
    backfills.create(kept, NOW)
    assert backfills.read_all(NOW + HOUR - timedelta(seconds=1)) == [kept]
    assert backfills.read_all(NOW + HOUR) == ([kept] if is_kept else [])


@pytest.mark.rule("16.pause")
def test_16_a_schedule_begins_anew_when_it_is_resumed(table: MemoryDynamo) -> None:
    """Once: a second call would leave out the slots since the first."""
    states = ScheduleStates(table, "tasks")  # type: ignore[arg-type]
    seen = ScheduleState(decided=NOW, schedule="digest")
    states.write("nightly", seen, None)
    states.pause("nightly", NOW + HOUR)
    assert states.read_all() == {"nightly": replace(seen, paused=True)}
    states.resume("nightly", NOW + 2 * HOUR)
    states.resume("nightly", NOW + 3 * HOUR)
    assert states.read_all() == {"nightly": replace(seen, decided=NOW + 2 * HOUR)}
