"""protocol §11, §13: the waits in a task record, ordered by position and attempt."""

import itertools

import pytest
from msgspec.structs import replace

from asya.protocol.events import TaskEvent
from asya.protocol.hops import fold
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge, reopened
from asya.tasks.aws import items as task_items
from asya.tasks.view import task_view
from tests.doubles.tasks import at, event, hop

UNTIL = "2026-11-23T09:00:00.000000Z"


def merged(*events: TaskEvent, record: TaskRecord | None = None) -> TaskRecord:
    for each in events:
        record = merge(record, each)
    assert record is not None
    return record


def waiting(position: int = 1, seconds: float = 12.0, **more: object) -> TaskEvent:
    return event("t", "waiting", position, seconds, **({"waiting_until": UNTIL} | more))


@pytest.mark.rule("13.waiting")
def test_a_waiting_task_runs_and_says_until_when() -> None:
    record = merged(*hop("t", 0), waiting())
    assert (record.status, record.waiting_until) == ("running", UNTIL)
    view = task_view(record, fold([], 0), at(20))
    assert (view.status, view.waiting_until, view.actor) == ("running", UNTIL, "inspect-dataset")
    assert merged(waiting()).status == "running"


@pytest.mark.rule("11.wait.reported")
def test_only_a_later_wait_counts() -> None:
    record = merged(*hop("t", 0), waiting(2, attempt=2))
    for late in (waiting(2, attempt=2), waiting(2, attempt=1), waiting(1)):
        assert merged(late, record=record) == record
    later = merged(waiting(2, attempt=3), record=record)
    assert later.wait is not None
    assert later.wait.place == (2, 3)


@pytest.mark.rule("11.wait.reported")
def test_a_wait_before_the_last_pause_is_over() -> None:
    paused = merged(*hop("t", 0), event("t", "paused", 2, 30))
    assert merged(waiting(1), record=paused) == paused
    assert merged(waiting(2), record=paused) == paused


@pytest.mark.rule("11.wait.reported")
def test_a_sent_wait_is_not_reported_again() -> None:
    record = merged(*hop("t", 0), waiting())
    assert record.wait is not None
    sent = replace(record, wait=replace(record.wait, is_sent=True))
    assert merged(waiting(), record=sent) == sent
    assert sent.waiting_until is None


@pytest.mark.rule("11.wait.cancel", "13.order")
def test_a_cancellation_makes_the_wait_due_in_any_order() -> None:
    reports = (*hop("t", 0), waiting(), event("t", "canceled", 1, 50))
    records = {merged(*order) for order in map(tuple, itertools.permutations(reports)) if order[0].status != "canceled"}
    assert {(record.status, record.wait and record.wait.until) for record in records} == {
        ("canceled", "2026-11-20T09:00:12.000000Z")
    }
    (keys,) = {_keys(record) for record in records}
    assert keys is not None
    assert keys[1] == "2026-11-20T09:00:12.000000Z"


@pytest.mark.rule("11.wait.reported")
def test_an_ended_task_has_a_wait_because_its_end_may_be_provisional() -> None:
    ended = merged(*hop("t", 0), event("t", "failed", 1, 20, provisional=True))
    record = merged(waiting(), record=ended)
    assert (record.status, record.provisional, record.waiting_until) == ("failed", True, None)
    assert _keys(record) is not None
    assert merged(waiting(), event("t", "succeeded", 2, 90), record=ended).status == "succeeded"


def test_a_redrive_forgets_the_wait_and_another_generation_has_its_own() -> None:
    record = reopened(merged(*hop("t", 0), waiting()), 1, at="2026-11-20T10:00:00.000000Z")
    assert record.wait is None
    again = merged(waiting(generation=1), record=record)
    assert again.waiting_until == UNTIL
    assert merged(waiting(2), record=again).wait == again.wait


@pytest.mark.rule("11.wait.sent")
def test_the_record_is_found_by_its_due_time() -> None:
    record = merged(*hop("t", 0), waiting())
    keys = _keys(record)
    assert keys is not None
    assert (keys[0].rpartition("#")[0], keys[1]) == ("wait", UNTIL)
    assert record.wait is not None
    assert _keys(replace(record, wait=replace(record.wait, is_sent=True))) is None


def test_many_tasks_are_spread_over_the_shards() -> None:
    partitions = {_keys(replace(merged(waiting()), id=f"task-{number}")) for number in range(200)}
    assert len({keys[0] for keys in partitions if keys}) == task_items.WAITING_SHARDS


@pytest.mark.rule("11.wait.stands")
def test_a_pause_with_a_timer_is_found_by_its_due_time() -> None:
    record = merged(*hop("t", 0), event("t", "paused", 1, 12, waiting_until=UNTIL))
    assert (record.status, record.waiting_until) == ("paused", UNTIL)
    keys = _keys(record)
    assert keys is not None
    assert (keys[0].rpartition("#")[0], keys[1]) == ("wait", UNTIL)
    assert task_items.record_of(task_items.put_record(record, 1, 9_999_999_999).item) == record


def _keys(record: TaskRecord) -> tuple[str, str] | None:
    item = task_items.put_record(record, 1, 9_999_999_999).item
    assert task_items.record_of(item) == record
    return (item.text("waits_in"), item.text("waits_since")) if "waits_in" in item else None
