"""protocol §13: the reports that change a task record, in any order."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol.errors import ErrorInfo
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge, reopened
from tests.doubles.tasks import event, hop, retry_note, route_at

RESULT = Raw(b'{"rows":3}')


def merged(*events: TaskEvent, record: TaskRecord | None = None) -> TaskRecord:
    for each in events:
        record = merge(record, each)
    assert record is not None
    return record


def pending() -> TaskRecord:
    moment = event("t", "received").at
    return TaskRecord(id="t", status="pending", created_at=moment, updated_at=moment, owner="AIDA", route=route_at(0))


@pytest.mark.rule("13.running")
def test_the_first_progress_makes_it_running() -> None:
    assert merged(event("t", "received", seconds=3), record=pending()).status == "running"


def test_further_progress_changes_nothing_in_the_record() -> None:
    running = merged(event("t", "received"), record=pending())
    assert merged(event("t", "completed", 2, 99), record=running) == running


def test_an_unknown_task_is_created_by_any_report() -> None:
    record = merged(event("t", "completed", 1, parent_id="p", root_id="r"))
    assert (record.status, record.parent_id, record.root_id, record.owner) == ("running", "p", "r", None)


def root(**more: Any) -> TaskRecord:
    return replace(pending(), id="r", owner="AIDA", **more)


@pytest.mark.rule("13.tool")
@pytest.mark.parametrize("first", ["received", "completed", "failed"])
def test_a_child_has_the_owner_and_the_tool_of_its_root(first: Any) -> None:
    record = merge(None, event("t", first, root_id="r"), root=root(tool="quote"))
    assert (record.owner, record.tool) == ("AIDA", "quote")
    assert merge(record, event("t", "succeeded", 3, 40, root_id="r"), root=root(tool="quote")).tool == "quote"


@pytest.mark.rule("13.tool")
def test_the_end_brings_the_tool_of_a_child_whose_root_was_unknown() -> None:
    begun = merged(event("t", "received", root_id="r"))
    assert begun.tool is None
    assert merge(begun, event("t", "succeeded", 3, 40, root_id="r"), root=root(tool="quote")).tool == "quote"
    other = replace(begun, tool="order")
    assert merge(other, event("t", "succeeded", 3, 40, root_id="r"), root=root(tool="quote")).tool == "order"


@pytest.mark.rule("13.tool")
def test_a_redriven_task_is_still_one_of_its_tool() -> None:
    failed = merged(event("t", "failed", 1, 20), record=replace(pending(), tool="quote"))
    assert reopened(failed, 1, at=failed.updated_at).tool == "quote"
    assert merged(event("t", "succeeded", 2, 60, generation=2), record=failed).tool == "quote"


def test_registration_tells_owner_route_and_deadline() -> None:
    record = merged(event("t", "registered", owner="AIDAX", deadline_at="2026-11-20T10:00:00.000000Z"))
    assert (record.status, record.owner, record.deadline_at) == ("running", "AIDAX", "2026-11-20T10:00:00.000000Z")
    assert record.route == route_at(0)


def test_a_registration_that_comes_late_still_tells_the_owner() -> None:
    record = merged(event("t", "completed"), event("t", "registered", owner="AIDAX"))
    assert record.owner == "AIDAX"
    assert merged(event("t", "registered", owner="other"), record=record).owner == "AIDAX"


@pytest.mark.rule("13.owner.reports")
def test_a_report_of_another_owner_changes_nothing() -> None:
    running = merged(*hop("t", 0), record=pending())
    for generation in (0, 9999):
        for status in ("registered", "received", "paused", "failed", "succeeded", "canceled"):
            assert merged(event("t", status, 3, 9, owner="AIDAEVE", generation=generation), record=running) == running
    assert merged(event("t", "succeeded", 3, 9, owner="AIDA"), record=running).status == "succeeded"
    # An envelope that the gateway has started names no owner.
    assert merged(event("t", "succeeded", 3, 9), record=running).status == "succeeded"


@pytest.mark.rule("12.generation")
def test_a_generation_above_the_record_counts_at_its_end_only() -> None:
    """A role may write any generation. No progress takes the record there; its claimed end does, because its object counts."""
    ended = merged(event("t", "failed", 1, 9, reason="Timeout"), record=pending())
    assert merged(*hop("t", 1, generation=9000), record=ended) == ended
    end = merged(event("t", "succeeded", 3, 30, generation=9000), record=ended)
    assert (end.status, end.generation) == ("succeeded", 9000)
    # What was before stays, and a replay goes on from there.
    assert [(each.generation, each.status, each.reason) for each in end.earlier] == [(0, "failed", "Timeout")]
    assert reopened(end, end.generation + 1, at=end.updated_at).generation == 9001


def test_success_is_kept_with_its_result() -> None:
    record = merged(event("t", "succeeded", 3, 9, result=RESULT, result_uri="s3://r/t.json"), record=pending())
    assert (record.status, record.result, record.result_uri) == ("succeeded", RESULT, "s3://r/t.json")
    assert (record.owner, record.actor, record.route) == ("AIDA", "publish-report", route_at(3))


def test_failure_is_kept_with_its_error_and_reason() -> None:
    error = ErrorInfo(type="ValueError", message="no such file")
    record = merged(event("t", "failed", 1, 9, error=error, reason="RuntimeError"), record=pending())
    assert (record.status, record.error, record.reason) == ("failed", error, "RuntimeError")


@pytest.mark.rule("13.statuses")
@pytest.mark.parametrize("later", ["received", "completed", "registered", "paused", "succeeded", "canceled"])
def test_a_terminal_status_stays(later: str) -> None:
    ended = merged(event("t", "failed", 1, 9, reason="Timeout"), record=pending())
    after = merged(event("t", later, 2, 20), record=ended)  # type: ignore[arg-type]
    # A pause leaves a note that ends its kept envelope, too.
    assert replace(after, handover=None, pause_epoch=None) == ended


@pytest.mark.rule("11.sink.late-address")
def test_the_results_address_may_come_later_but_only_once() -> None:
    ended = merged(event("t", "succeeded", 3, 9, result=RESULT))
    filled = merged(event("t", "succeeded", 3, 12, result=RESULT, result_uri="s3://a"), record=ended)
    assert (filled.result, filled.result_uri, filled.updated_at) == (RESULT, "s3://a", ended.updated_at)
    assert merged(event("t", "succeeded", 3, 15, result_uri="s3://b"), record=filled) == filled


@pytest.mark.rule("11.sink.late-address")
def test_with_its_address_comes_the_end_that_the_object_holds() -> None:
    ended = merged(event("t", "succeeded", 3, 9, result=RESULT))
    other = Raw(b'{"rows":2}')
    assert merged(event("t", "succeeded", 3, 12, result=other, result_uri="s3://a"), record=ended).result == other
    without_route = replace(event("t", "succeeded", 3, 12, result_uri="s3://a"), data=EventData(result_uri="s3://a"))
    filled = merged(without_route, record=ended)
    assert (filled.result, filled.result_uri) == (RESULT, "s3://a")


@pytest.mark.rule("13.resumed")
def test_progress_does_not_resume_a_paused_task() -> None:
    paused = merged(*hop("t", 0), event("t", "paused", 1, 12))
    assert (paused.status, paused.pause_epoch) == ("paused", 1)
    assert merged(event("t", "completed", 2, 20), record=paused) == paused
    assert merged(event("t", "succeeded", 3, 30), record=paused).status == "succeeded"


@pytest.mark.rule("13.new-generation")
def test_a_new_generation_starts_again() -> None:
    ended = merged(event("t", "failed", 1, 9, reason="Timeout", result_uri="s3://a"), record=pending())
    opened = reopened(ended, 1, at="2026-11-20T09:00:15.000000Z")
    again = merged(event("t", "received", 1, 20, generation=1), record=opened)
    assert (again.status, again.generation, again.reason, again.result_uri) == ("running", 1, None, None)
    assert (again.created_at, again.owner) == (ended.created_at, "AIDA")
    assert merged(event("t", "succeeded", 3, 30, generation=0), record=again) == again


@pytest.mark.rule("12.generation", "13.new-generation")
def test_the_results_of_earlier_generations_stay_in_the_record() -> None:
    error = ErrorInfo(type="ValueError", message="x" * 5000, traceback="long")
    ended = merged(event("t", "failed", 1, 9, reason="DeliveryExhausted", error=error), record=pending())
    opened = reopened(ended, 1, at="2026-11-20T09:10:00.000000Z")
    assert (opened.status, opened.generation, opened.error, opened.actor) == ("pending", 1, None, None)
    (earlier,) = opened.earlier
    assert (earlier.generation, earlier.status, earlier.reason) == (0, "failed", "DeliveryExhausted")
    assert (earlier.actor, earlier.ended_at) == ("clean-flights", ended.updated_at)
    assert earlier.error == ErrorInfo(type="ValueError", message="x" * 1024)
    assert merged(*hop("t", 1, generation=1), record=opened).earlier == opened.earlier


def test_an_end_after_the_reopening_counts_for_its_earlier_generation() -> None:
    opened = reopened(merged(event("t", "received"), record=pending()), 1, at="2026-11-20T09:10:00.000000Z")
    assert [each.status for each in opened.earlier] == ["running"]
    late = merged(event("t", "failed", 1, 9, reason="DeliveryExhausted"), record=opened)
    assert (late.status, late.generation) == ("pending", 1)
    assert [(each.status, each.reason) for each in late.earlier] == [("failed", "DeliveryExhausted")]


def test_the_number_of_earlier_generations_is_limited() -> None:
    record = pending()
    for generation in range(1, 30):
        record = reopened(record, generation, at=record.updated_at)
    assert [each.generation for each in record.earlier] == list(range(19, 29))


def reports() -> list[TaskEvent]:
    """The concurrent reports about a task that was redelivered, retried and registered."""
    return [
        event("t", "registered", owner="AIDAX", deadline_at="2026-11-20T10:00:00.000000Z"),
        *itertools.chain.from_iterable(hop("t", position) for position in range(3)),
        event("t", "processing", 1, 14, retry=retry_note(1)),
        event("t", "processing", 1, 15, retry=retry_note(2)),
        event("t", "processing", 1, 15, retry=retry_note(3)),
        *hop("t", 1, attempt=2),
        event("t", "processing", 1, 13, attempt=2, retry=retry_note(4)),
        event("t", "succeeded", 3, 40, result=RESULT),
        event("t", "succeeded", 3, 45, result_uri="s3://results/t.json"),
        *hop("t", 1, generation=1),
        event("t", "processing", 0, 50, generation=1, retry=retry_note(5)),
        event("t", "failed", 2, 60, generation=1, reason="RuntimeError"),
    ]


@pytest.mark.rule("13.order")
@given(st.lists(st.sampled_from(reports()), max_size=20), st.permutations(reports()))
def test_any_order_and_any_repetition_give_the_same_record(repeated: list[TaskEvent], order: list[TaskEvent]) -> None:
    # Both orders begin with the same report, because the first report decides some fields.
    first = reports()[0]
    record = merged(first, *repeated, *order, *repeated)
    expected = merged(first, *reports())
    assert without_times(record) == without_times(expected)
    assert record.updated_at == expected.updated_at


def without_times(record: TaskRecord) -> TaskRecord:
    """The record without the times that the first of several reports of the same end sets."""
    return replace(record, updated_at="", earlier=tuple(replace(each, ended_at=None) for each in record.earlier))


@pytest.mark.rule("13.retry.order", "13.order")
@given(st.permutations(reports()))
def test_the_last_retry_stays_in_any_order(order: list[TaskEvent]) -> None:
    retry = merged(*order).retry
    assert retry is not None
    assert (retry.generation, retry.position, retry.attempt, retry.error) == (
        *(1, 0, 1),
        ErrorInfo(type="ConnectionError", message="refused 5"),
    )


@pytest.mark.rule("13.statuses")
@given(st.permutations(reports()))
def test_no_report_ever_lowers_the_status(order: list[TaskEvent]) -> None:
    ranks = {"pending": 0, "running": 1, "paused": 2, "succeeded": 3, "failed": 3, "canceled": 3}
    record: TaskRecord | None = None
    for each in order:
        after = merge(record, each)
        if record is not None:
            assert (after.generation, ranks[after.status]) >= (record.generation, ranks[record.status])
            assert after.created_at <= record.created_at
        record = after


@pytest.mark.rule("13.created_at")
@given(
    st.permutations(
        [
            ("completed", 2, "2026-11-20T08:59:00.000000Z"),
            ("received", 0, None),
            ("failed", 3, "2026-11-20T08:59:00.000000Z"),
        ]
    )
)
def test_a_task_begins_when_its_envelope_did_in_any_order(order: list[tuple[str, int, str | None]]) -> None:
    reports = [
        event("t", status, position, 10.0 * position, created_at=created_at)  # type: ignore[arg-type]
        for status, position, created_at in order
    ]
    assert merged(*reports).created_at == "2026-11-20T08:59:00.000000Z"


@pytest.mark.rule("13.created_at")
@pytest.mark.parametrize(
    ("created_at", "counts"),
    [
        ("2026-11-20T08:59:59.000000Z", True),
        ("2026-10-21T09:00:00.000000Z", True),
        ("2026-10-19T09:00:00.000000Z", False),  # each hour with tasks costs the lists a query
        ("0001-01-01T00:00:00.000000Z", False),
        ("2026-11-20T09:00:01.000000Z", False),
    ],
)
def test_an_incredible_creation_time_does_not_count(created_at: str, counts: bool) -> None:
    report = event("t", "received", created_at=created_at)
    assert merged(report).created_at == (created_at if counts else report.at)


@pytest.mark.rule("3.owner")
def test_a_forged_owner_takes_over_no_task() -> None:
    owned = merged(event("t", "received", owner="AIDA"), event("t", "completed", owner="AIDAFORGED"))
    assert owned.owner == "AIDA"
    assert merged(event("t", "received"), event("t", "completed", owner="AIDAFORGED")).owner is None
    assert merged(event("t", "received"), event("t", "registered", owner="AIDASENDER")).owner == "AIDASENDER"


@pytest.mark.rule("13.new-generation")
@pytest.mark.parametrize("status", ["registered", "received", "processing", "completed"])
@pytest.mark.parametrize("generation", [1, 9_999])
@pytest.mark.parametrize("before", ["succeeded", "canceled", "paused", "received"])
def test_progress_reopens_no_task(status: Any, generation: int, before: Any) -> None:
    record = merged(event("t", before, 1, 9), record=pending())
    assert merged(event("t", status, 1, 20, generation=generation), record=record) == record
    again = merged(event("t", "failed", 1, 20, generation=generation), record=record)
    assert (again.status, again.generation) == ("failed", generation)


@pytest.mark.rule("13.identity")
@pytest.mark.parametrize("status", ["registered", "received", "completed"])
def test_progress_adds_no_deadline_and_no_parent_to_a_record(status: Any) -> None:
    forged = event("t", status, 1, 20, deadline_at="2026-11-20T08:00:00.000000Z", parent_id="p", root_id="r")
    for record in (merged(event("t", "received")), pending(), merged(event("t", "succeeded", 3))):
        after = merge(record, forged, root=root(tool="quote"))
        assert (after.deadline_at, after.parent_id, after.root_id) == (None, None, None)
        assert (after.owner, after.tool) == (record.owner, record.tool)


@pytest.mark.rule("13.identity")
def test_an_end_without_a_route_leaves_the_identity_to_the_next_report() -> None:
    """The DLQ function cannot read the route of every dead letter."""
    ended = replace(event("t", "failed", reason="ParseError"), data=EventData(reason="ParseError"))
    known = {"deadline_at": "2026-11-20T10:00:00.000000Z", "parent_id": "p", "root_id": "r"}
    record = merged(ended, event("t", "received", **known))
    assert (record.status, record.parent_id, record.root_id) == ("failed", "p", "r")
    assert record.deadline_at == known["deadline_at"]


def test_records_compare_by_content() -> None:
    assert msgspec.structs.replace(pending(), result=Raw(b"1")) == msgspec.structs.replace(pending(), result=Raw(b"1"))
