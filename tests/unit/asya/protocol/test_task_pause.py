"""protocol §11, §13: the pauses in a task record, ordered by epoch."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw
from msgspec.structs import replace

from asya.protocol.envelope import Route
from asya.protocol.errors import ErrorInfo
from asya.protocol.hops import fold
from asya.protocol.pause import PauseFailure, PauseField, PauseRelease, TaskPause
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge, reopened
from asya.tasks.aws import items as task_items
from asya.tasks.view import fail_if_overdue, task_view
from tests.doubles.tasks import at, event, hop

FIELDS = (
    PauseField(name="approved", type="boolean", default=False),
    PauseField(name="n", type="number", options=(1, 2)),
)


def merged(*events: object, record: TaskRecord | None = None) -> TaskRecord:
    for each in events:
        record = merge(record, each)  # type: ignore[arg-type]
    assert record is not None
    return record


def paused(position: int, seconds: float = 12.0, **more: object) -> object:
    return event("t", "paused", position, seconds, **({"prompt": "Sure?", "fields": FIELDS} | more))


def resumed(record: TaskRecord) -> TaskRecord:
    """The record after a resume, as the gateway writes it."""
    epoch = record.pause_epoch or 0
    handover = PauseRelease(to="x-resume", epoch=epoch, at=record.updated_at, input=Raw(b'{"approved":true}'))
    return replace(record, status="running", pause=None, resumed_epoch=epoch, handover=handover)


def test_a_pause_is_kept_with_what_it_asks_for() -> None:
    record = merged(*hop("t", 0), paused(1))
    assert (record.status, record.pause_epoch, record.actor) == ("paused", 1, "clean-flights")
    assert record.pause == TaskPause(prompt="Sure?", fields=FIELDS, since="2026-11-20T09:00:12.000000Z")


def test_a_repeated_pause_report_changes_nothing() -> None:
    record = merged(*hop("t", 0), paused(1))
    assert merged(paused(1), paused(1), record=record) == record


@pytest.mark.rule("11.pause.epoch")
def test_a_report_not_above_the_last_resumed_epoch_is_dropped() -> None:
    going_on = resumed(merged(*hop("t", 0), paused(4)))
    for late in (1, 3, 4):
        assert merged(paused(late, 50), record=going_on) == going_on
    again = merged(paused(6, 50), record=going_on)
    assert (again.status, again.pause_epoch, again.resumed_epoch) == ("paused", 6, 4)


def test_only_a_resume_leads_back_to_running() -> None:
    record = merged(*hop("t", 0), paused(1))
    for status in ("registered", "received", "processing", "completed"):
        assert merged(event("t", status, 2, 60), record=record).status == "paused"


@pytest.mark.rule("11.pause.epoch")
def test_of_two_pauses_the_further_counts_in_any_order() -> None:
    epochs = {
        merged(*order).pause_epoch
        for order in itertools.permutations([event("t", "received"), paused(1, 10), paused(5, 40)])
    }
    assert epochs == {5}


def test_a_later_pause_clears_the_release_of_the_earlier_one() -> None:
    record = merged(paused(5, 40), record=resumed(merged(*hop("t", 0), paused(1))))
    assert (record.status, record.handover) == ("paused", None)


@pytest.mark.rule("11.pause.cancel")
def test_a_cancellation_during_a_pause_releases_the_envelope_to_x_sink() -> None:
    record = merged(paused(1), event("t", "canceled", 1, 99))
    assert (record.status, record.pause) == ("canceled", None)
    assert record.handover == PauseRelease(to="x-sink", epoch=1, at="2026-11-20T09:01:39.000000Z")


def test_a_cancellation_after_the_resume_keeps_the_release_to_x_resume() -> None:
    """The pre-flight of a later hop ends the canceled envelope."""
    record = merged(event("t", "canceled", 1, 99), record=resumed(merged(paused(1))))
    assert record.handover is not None
    assert record.handover.to == "x-resume"


@pytest.mark.rule("11.pause.ends")
@pytest.mark.parametrize("end", ["succeeded", "failed"])
@pytest.mark.parametrize("position", [0, 4])
def test_no_end_at_or_below_the_last_pause_counts(end: str, position: int) -> None:
    stale = event("t", end, position, 99, route=Route((), "clean-flights", ()))  # type: ignore[arg-type]
    for record in (merged(paused(4)), resumed(merged(paused(4)))):
        assert merged(stale, record=record) == record
        assert merged(paused(1, 15), stale, record=record) == record
    beyond = event("t", end, 5, 99, route=Route((), "post", ()))  # type: ignore[arg-type]
    assert merged(beyond, record=resumed(merged(paused(4)))).status == end
    assert merged(paused(4), replace(stale, generation=1)).status == end


@pytest.mark.rule("11.pause.ends")
@pytest.mark.parametrize(
    ("status", "data"),
    [
        ("canceled", {"route": Route((), "clean-flights", ())}),
        ("failed", {"route": Route((), "x-sump", ()), "reason": "ParseError"}),
        ("succeeded", {"route": None}),
    ],
)
def test_an_end_without_a_hop_of_its_own_counts(status: str, data: dict[str, object]) -> None:
    ended = event("t", status, 0, 99, **data)  # type: ignore[arg-type]
    assert merged(ended, record=resumed(merged(paused(4)))).status == status


@pytest.mark.rule("11.pause.ends")
def test_a_late_copy_whose_payload_is_gone_ends_nothing() -> None:
    gone = event("t", "failed", 1, 99, route=Route(("prep",), "infer", ()), reason="ParseError")
    record = resumed(merged(paused(4)))
    assert merged(gone, record=record) == record


@pytest.mark.rule("11.pause.ended-before")
def test_the_kept_envelope_of_a_task_that_was_canceled_before_its_pause_ends_too() -> None:
    canceled = merged(event("t", "received"), event("t", "canceled", 0, 20))
    record = merged(paused(1), paused(1), record=canceled)
    assert (record.status, record.pause, record.pause_epoch) == ("canceled", None, 1)
    assert record.handover == PauseRelease(to="x-sink", epoch=1, at="2026-11-20T09:00:20.000000Z")
    sent = replace(record, handover=None)
    assert merged(paused(1), record=sent) == sent
    in_order = merged(event("t", "received"), paused(1), event("t", "canceled", 0, 20))
    assert in_order.handover == record.handover


@pytest.mark.rule("11.pause.ended-before")
def test_the_kept_envelope_of_a_task_that_failed_before_its_pause_fails_too() -> None:
    error = ErrorInfo(type="ValueError", message="no rows")
    failed = merged(event("t", "failed", 0, 20, reason="RuntimeError", error=error))
    record = merged(paused(1), paused(1), record=failed)
    assert (record.status, record.reason, record.error) == ("failed", "RuntimeError", error)
    assert record.handover is not None
    assert record.handover.to == "x-sink"
    assert record.handover.failure == PauseFailure(reason="RuntimeError", error=error)
    with_object = merged(event("t", "failed", 0, 21, result_uri="s3://b/k"), record=record)
    assert (with_object.result_uri, with_object.handover) == ("s3://b/k", record.handover)


@pytest.mark.rule("11.pause.ended-before")
def test_a_pause_replaces_a_provisional_failure() -> None:
    overdue = merged(event("t", "received", deadline_at="2026-11-20T09:00:05.000000Z"))
    failed = fail_if_overdue(overdue, at(9))
    record = merged(paused(1), record=failed)
    assert (record.status, record.reason, record.handover) == ("paused", None, None)
    assert merged(paused(1), record=replace(failed, pause_epoch=1, resumed_epoch=1)).status == "failed"


@pytest.mark.rule("11.pause.ends")
def test_the_end_of_a_late_copy_replaces_no_provisional_one() -> None:
    overdue = replace(resumed(merged(paused(4))), deadline_at="2026-11-20T09:00:05.000000Z")
    failed = fail_if_overdue(overdue, at(999))
    assert merged(event("t", "succeeded", 2, 99, result_uri="s3://b/k"), record=failed) == failed


@pytest.mark.rule("13.cancel.paused", "13.cancel")
def test_the_cancellation_of_a_paused_task_stays_before_late_copies_and_its_own_release() -> None:
    record = merged(paused(4), event("t", "canceled", 4, 50, route=None))
    stale = event("t", "succeeded", 4, 20, route=Route((), "clean-flights", ()))
    assert merged(stale, record=record) == record
    assert merged(event("t", "canceled", 5, 60), record=record) == record


@pytest.mark.rule("11.pause.ended-before")
def test_a_late_pause_of_a_task_that_succeeded_or_went_on_changes_nothing() -> None:
    succeeded = merged(event("t", "succeeded", 5, 20))
    assert merged(paused(1, 25), record=succeeded) == succeeded
    canceled = replace(merged(event("t", "canceled", 3, 99), record=resumed(merged(paused(1)))), handover=None)
    assert merged(paused(1), record=canceled) == canceled


@pytest.mark.parametrize("end", ["succeeded", "failed"])
def test_other_ends_clear_the_release(end: str) -> None:
    ended = event("t", end, 3, 99)  # type: ignore[arg-type]
    for record in (merged(paused(1)), resumed(merged(paused(1)))):
        after = merged(ended, record=record)
        assert (after.status, after.pause, after.handover) == (end, None, None)


def test_a_new_generation_has_no_pause() -> None:
    record = reopened(resumed(merged(paused(1))), 1, at="2026-11-20T09:10:00.000000Z")
    assert (record.pause_epoch, record.resumed_epoch, record.pause, record.handover) == (None, None, None, None)
    assert merged(paused(1, 70, generation=1), record=record).status == "paused"


def test_the_question_is_shown_only_during_the_pause() -> None:
    record = merged(*hop("t", 0), paused(1))
    view = task_view(record, fold([], 0), at(20))
    assert (view.status, view.pause) == ("paused", record.pause)
    assert task_view(resumed(record), fold([], 0), at(20)).pause is None


@pytest.mark.rule("11.resume.time")
def test_13_paused_a_task_is_never_overdue() -> None:
    record = merged(event("t", "registered", deadline_at="2026-11-20T09:00:15.000000Z"), paused(1))
    assert task_view(record, fold([], 0), at(9999)).status == "paused"


@pytest.mark.parametrize("record", [merged(*hop("t", 0), paused(1)), resumed(merged(paused(1))), merged(paused(2))])
def test_a_record_survives_the_table(record: TaskRecord) -> None:
    assert task_items.record_of(task_items.put_record(record, 1, 2**40).item) == record


def test_the_index_holds_only_waiting_tasks() -> None:
    waits = merged(*hop("t", 0), paused(1))
    item = task_items.put_record(waits, 1, 2**40).item
    assert item.text("waits_in").startswith("paused#")
    assert item.text("waits_since") == "2026-11-20T09:00:12.000000Z"
    assert task_items.put_record(resumed(waits), 2, 2**40).item.text("waits_in").startswith("handover#")
    done = replace(resumed(waits), handover=None)
    assert "waits_in" not in task_items.put_record(done, 3, 2**40).item


STEPS = st.one_of(
    st.tuples(st.sampled_from(["registered", "received", "completed"]), st.integers(0, 9)),
    st.tuples(st.just("paused"), st.integers(0, 9)),
    st.tuples(st.just("resume"), st.just(0)),
    st.tuples(st.sampled_from(["succeeded", "failed", "canceled"]), st.integers(0, 9)),
)


@pytest.mark.slow
@given(st.lists(STEPS, max_size=25))
def test_in_any_order_of_reports_only_a_resume_ends_a_pause(steps: list[tuple[str, int]]) -> None:
    ranks = {"pending": 0, "running": 1, "paused": 2, "succeeded": 3, "failed": 3, "canceled": 3}
    record = merged(event("t", "registered"))
    was_replaced = False
    for number, (what, position) in enumerate(steps):
        before = record
        if what == "resume":
            record = resumed(record) if record.status == "paused" else record
            continue
        record = merge(record, event("t", what, position, number))  # type: ignore[arg-type]
        assert ranks[record.status] >= ranks[before.status]
        if before.status == "canceled" and record.status in ("succeeded", "failed"):
            assert position > before.last_pause  # the end was claimed, and the cancellation was not
            was_replaced = True
        elif before.is_terminal:
            assert replace(record, handover=before.handover, pause_epoch=before.pause_epoch) == before
        elif record.status == "paused":
            assert (record.pause_epoch or 0) > (-1 if record.resumed_epoch is None else record.resumed_epoch)
        assert (record.pause is not None) == (record.status == "paused")
        # The note of a cancellation that was replaced stays: x-sink refuses what it sends, because the end is claimed.
        if record.handover is not None and record.handover.to == "x-sink" and not was_replaced:
            assert record.status in ("canceled", "failed")
            assert (record.handover.failure is UNSET) == (record.status == "canceled")
        assert task_items.record_of(task_items.put_record(record, 1, 2**40).item) == record
