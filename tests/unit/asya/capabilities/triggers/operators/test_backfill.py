"""One step of a backfill: which slots are noted, which have ended, and when it stops."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from asya.capabilities.triggers.occurrences import slot_occurrence
from asya.capabilities.triggers.operators.backfill import (
    MOST_PAUSED,
    Backfill,
    NotedSlot,
    advance,
    canceled,
    resumed,
    with_starts,
)
from asya.protocol.errors import ErrorInfo
from asya.protocol.states import TaskStatus
from asya.protocol.task import StartedBy, TaskRecord
from asya.protocol.triggers import Trigger

NOW = datetime(2026, 11, 25, tzinfo=UTC)
AT = "2026-11-25T00:00:00.000000Z"
TRIGGER = Trigger(route=("greet",), cron="0 2 * * *", payload={"day": "{date}"})


def backfill_of(**more: Any) -> Backfill:
    """A backfill of five days."""
    fields: dict[str, Any] = {
        "id": "b1", "trigger": "nightly", "cron": "0 2 * * *", "timezone": "UTC", "first": "2026-01-01T00:00:00.000000Z",
        "until": "2026-01-05T23:59:59.999999Z", "total": 5, "at_once": 2, "by": "AIDA", "created_at": AT, "updated_at": AT,
    }  # fmt: skip
    return Backfill(**fields | more)


def slot(day: int) -> str:
    return f"2026-01-{day:02d}T02:00:00.000000Z"


def record(backfill: Backfill, day: int, status: TaskStatus, *, by: str | None = "b1") -> TaskRecord:
    """The record of the task of a slot; `by` is the backfill that started it, None for the schedule."""
    started_by = StartedBy(kind="backfill", name=by) if by is not None else StartedBy(kind="trigger", name="nightly")
    error = ErrorInfo(type="ValueError", message="no such file") if status == "failed" else None
    task_id = backfill.task_id(slot(day))
    return TaskRecord(id=task_id, status=status, created_at=AT, updated_at=AT, started_by=started_by, error=error)


def step(backfill: Backfill, *records: TaskRecord, may_start: bool = True) -> tuple[Backfill, tuple[str, ...]]:
    """Take one step with the next slots that the function reads."""
    by_id: Mapping[str, TaskRecord] = {each.id: each for each in records}
    result = advance(backfill, backfill.following(backfill.room), by_id, NOW, may_start=may_start)
    return result.backfill, result.to_start


def noted(*days: int, is_started: bool = True) -> tuple[NotedSlot, ...]:
    return tuple(NotedSlot(slot(day), is_started) for day in days)


@pytest.mark.rule("16.backfill", "16.backfill.at-once")
def test_16_slots_are_noted_oldest_first_as_many_as_may_run() -> None:
    """The end of one notes the next; with none left and none running it is done."""
    backfill, to_start = step(backfill_of())
    assert (backfill.noted, to_start) == (noted(1, 2, is_started=False), (slot(1), slot(2)))
    backfill = with_starts(backfill, {slot(1), slot(2)}, {})
    backfill, to_start = step(backfill, record(backfill, 1, "succeeded"), record(backfill, 2, "running"))
    assert (backfill.succeeded, to_start) == (1, (slot(3),))
    backfill = replace(backfill, noted=noted(5), decided=slot(5))
    assert step(backfill, record(backfill, 5, "running"))[0].state == "running"
    assert step(backfill, record(backfill, 5, "succeeded"))[0].state == "done"


@pytest.mark.rule("16.backfill.state")
def test_16_a_slot_whose_start_is_not_noted_starts_again() -> None:
    """Its task may run already: the record says nothing about the message."""
    backfill = backfill_of(noted=noted(1, is_started=False), decided=slot(1), at_once=1)
    for records in ((), (record(backfill, 1, "pending"),)):
        assert step(backfill, *records) == (backfill, (slot(1),))
    assert step(with_starts(backfill, {slot(1)}, {}), record(backfill, 1, "pending"))[1] == ()


@pytest.mark.rule("16.backfill.state")
def test_16_a_slot_that_another_process_has_started_is_no_failure() -> None:
    """A slow process of an older version could not start it; the task runs and counts by its own end."""
    backfill = with_starts(backfill_of(noted=noted(1, 2, is_started=False), decided=slot(2)), {slot(1)}, {})
    late = with_starts(backfill, set(), {slot(1): "too_large: old", slot(2): "too_large: old"})
    assert (late.noted, late.failed) == (noted(1), 1)


@pytest.mark.rule("16.backfill.once")
def test_16_a_slot_with_a_task_counts_as_done_before() -> None:
    """Whatever its end; with `again` the slot has a key of the backfill, and starts."""
    backfill = backfill_of()
    earlier = [record(backfill, 1, "failed", by=None), record(backfill, 2, "running", by="b0")]
    result = advance(backfill, backfill.following(2), {each.id: each for each in earlier}, NOW, may_start=True)
    assert (result.backfill.before, result.to_start, result.reads_on) == (2, (), True)
    backfill, to_start = step(result.backfill)
    assert to_start == (slot(3), slot(4))
    schedule = TRIGGER.schedule
    assert schedule is not None
    occurrence = backfill.occurrence(slot(3), TRIGGER)
    of_schedule = slot_occurrence("nightly", TRIGGER, schedule, datetime(2026, 1, 3, 2, tzinfo=UTC))
    assert (occurrence.key, occurrence.task_id) == (of_schedule.key, of_schedule.task_id)
    assert occurrence.started_by == StartedBy(kind="backfill", name="b1", slot=slot(3))
    assert bytes(occurrence.payload) == b'{"day":"2026-01-03"}'
    again = backfill_of(again=True)
    assert again.task_id(slot(1)) not in {each.id for each in earlier}
    assert step(again, *earlier)[1] == (slot(1), slot(2))
    assert again.task_id(slot(1)) != backfill_of(again=True, id="b2").task_id(slot(1))


@pytest.mark.rule("16.backfill.stop")
def test_16_failures_stop_it_and_resume_allows_as_many_again() -> None:
    """Running tasks go on, and their ends count."""
    backfill = backfill_of(stop_after=2, stop_at=2, noted=noted(1, 2, 3), decided=slot(3), at_once=3)
    failed, gone = record(backfill, 1, "failed"), record(backfill, 2, "canceled")
    stopped, to_start = step(backfill, failed, gone, record(backfill, 3, "running"))
    assert (stopped.state, stopped.failed, to_start, stopped.is_open) == ("stopped", 2, (), True)
    assert [(each.slot, each.problem) for each in stopped.failures] == [
        (slot(1), "ValueError: no such file"),
        (slot(2), "canceled"),
    ]
    ended, to_start = step(stopped, record(backfill, 3, "succeeded"))
    assert (ended.state, ended.succeeded, to_start, ended.is_open) == ("stopped", 1, (), False)
    again = resumed(ended, NOW)
    assert (again.state, again.stop_at) == ("running", 4)
    assert resumed(again, NOW) == again
    assert step(again)[1] == (slot(4), slot(5))


@pytest.mark.rule("16.backfill.stop")
def test_16_a_slot_that_can_never_start_is_a_failure() -> None:
    """Its place is free."""
    backfill = with_starts(backfill_of(noted=noted(1, 2, is_started=False)), {slot(2)}, {slot(1): "too_large: 2 MB"})
    assert (backfill.noted, backfill.failed) == (noted(2), 1)
    assert [(each.slot, each.problem) for each in backfill.failures] == [(slot(1), "too_large: 2 MB")]


@pytest.mark.rule("16.backfill.stop")
def test_16_a_task_without_a_record_is_a_failure_once_it_was_started() -> None:
    """Nobody knows its end."""
    backfill, _ = step(backfill_of(noted=noted(1), decided=slot(1), at_once=1))
    assert [each.problem for each in backfill.failures] == ["the record of its task has expired"]


def test_16_the_state_names_the_newest_failures_only() -> None:
    """It has one item, whatever fails."""
    days = range(1, 31)
    many = backfill_of(noted=noted(*days), decided=slot(30), at_once=30, total=30)
    ended, _ = step(many, *(record(many, day, "failed") for day in days))
    assert (ended.failed, len(ended.failures), ended.failures[-1].slot) == (30, 20, slot(30))


@pytest.mark.rule("16.backfill.cancel")
def test_16_a_canceled_one_finishes_a_start_under_way() -> None:
    """A process died after the record of its task. Else the task would be pending for ever, and so would the backfill be open."""
    before = canceled(backfill_of(noted=noted(1, 2, is_started=False), decided=slot(2), at_once=2), NOW)
    backfill, to_start = step(before, record(before, 1, "pending"))
    assert (backfill.noted, to_start) == (noted(1, is_started=False), (slot(1),))
    backfill, to_start = step(with_starts(backfill, {slot(1)}, {}), record(before, 1, "succeeded"))
    assert (to_start, backfill.is_open) == ((), False)


@pytest.mark.rule("16.backfill.cancel")
def test_16_a_canceled_one_starts_nothing() -> None:
    """It waits for its running tasks."""
    before = replace(backfill_of(decided=slot(2)), noted=(*noted(1), *noted(2, is_started=False)))
    backfill, to_start = step(canceled(before, NOW), record(before, 1, "running"))
    assert (backfill.state, backfill.noted, to_start, backfill.is_open) == ("canceled", noted(1), (), True)
    backfill, _ = step(backfill, record(before, 1, "canceled"))
    assert (backfill.state, backfill.is_open, canceled(backfill, NOW)) == ("canceled", False, backfill)
    done = backfill_of(state="done")
    assert canceled(done, NOW) == done


@pytest.mark.rule("16.backfill.waits")
def test_16_a_trigger_that_is_off_starts_nothing_but_its_tasks_are_counted() -> None:
    """A noted slot waits too."""
    backfill = replace(backfill_of(decided=slot(2)), noted=(*noted(1), *noted(2, is_started=False)))
    off, to_start = step(backfill, record(backfill, 1, "succeeded"), may_start=False)
    assert (off.succeeded, off.noted, to_start, off.state) == (1, noted(2, is_started=False), (), "running")
    assert step(off)[1] == (slot(2), slot(3))


@pytest.mark.rule("16.backfill.paused")
def test_16_a_paused_task_gives_its_place_back() -> None:
    backfill = backfill_of(noted=noted(1, 2), decided=slot(2))
    backfill, to_start = step(backfill, record(backfill, 1, "paused"), record(backfill, 2, "running"))
    assert (to_start, backfill.paused, len(backfill.noted)) == ((slot(3),), 1, 3)
    backfill = with_starts(backfill, {slot(3)}, {})
    # All of them pause, and each lets another one start.
    paused = [record(backfill, day, "paused") for day in (1, 2, 3)]
    backfill, to_start = step(step(backfill, *paused)[0], *paused)
    assert (to_start, backfill.paused, backfill.state) == ((slot(4), slot(5)), 3, "running")


@pytest.mark.rule("16.backfill.paused")
def test_16_a_resumed_task_runs_beside_those_that_took_its_place() -> None:
    backfill = backfill_of(noted=noted(1, 2, 3), decided=slot(3), paused=1)
    running = [record(backfill, day, "running") for day in (1, 2, 3)]
    backfill, to_start = step(backfill, *running)
    assert (to_start, backfill.paused, backfill.free) == ((), 0, -1)
    # One of the three ends: two still run, and those are all that may.
    backfill, to_start = step(backfill, record(backfill, 1, "succeeded"), *running[1:])
    assert (to_start, backfill.free) == ((), 0)
    backfill, to_start = step(backfill, record(backfill, 2, "succeeded"), running[2])
    assert to_start == (slot(4),)


@pytest.mark.rule("16.backfill.paused")
def test_16_with_hold_paused_a_paused_task_keeps_its_place() -> None:
    backfill = backfill_of(noted=noted(1, 2), decided=slot(2), hold_paused=True)
    changed, to_start = step(backfill, record(backfill, 1, "paused"), record(backfill, 2, "paused"))
    assert (to_start, changed) == ((), backfill)


@pytest.mark.rule("16.backfill.paused")
def test_16_further_paused_tasks_keep_their_places() -> None:
    hourly = {"cron": "0 * * * *", "until": "2026-12-31T00:00:00.000000Z", "at_once": 1}
    slots = [
        f"2026-{1 + n // 672:02d}-{1 + n // 24 % 28:02d}T{n % 24:02d}:00:00.000000Z" for n in range(MOST_PAUSED + 1)
    ]
    backfill = backfill_of(**hourly, noted=tuple(NotedSlot(each, True) for each in slots), decided=slots[-1])
    records = {
        backfill.task_id(each): TaskRecord(
            id=backfill.task_id(each),
            status="paused",
            created_at=AT,
            updated_at=AT,
            started_by=StartedBy(kind="backfill", name="b1"),
        )
        for each in slots
    }
    result = advance(backfill, backfill.following(5), records, NOW, may_start=True)
    assert (result.backfill.paused, result.to_start) == (MOST_PAUSED, ())
    backfill = replace(backfill, noted=backfill.noted[1:])
    assert len(advance(backfill, backfill.following(5), records, NOW, may_start=True).to_start) == 1


@pytest.mark.rule("16.backfill.cancel")
def test_16_one_that_is_done_stays_so() -> None:
    done = backfill_of(state="done", succeeded=5, decided=slot(5))
    assert canceled(done, NOW) == resumed(done, NOW) == done


@pytest.mark.rule("16.backfill")
def test_16_the_first_and_the_last_moment_may_be_slots() -> None:
    assert backfill_of(first=slot(1), until=slot(3)).following(9) == [slot(1), slot(2), slot(3)]
    assert backfill_of(first=slot(1), until=slot(3), decided=slot(1)).following(9) == [slot(2), slot(3)]
    assert backfill_of(first=slot(1), until=slot(3), decided=slot(3)).following(9) == []
