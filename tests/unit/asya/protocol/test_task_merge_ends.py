"""protocol §13: ends that give way to others: provisional ones, cancellations, and those of earlier generations."""

import itertools
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol.events import EventData, TaskEvent
from asya.protocol.hops import fold
from asya.protocol.task import Cancellation, TaskRecord
from asya.protocol.task_merge import merge, reopened
from asya.protocol.times import parse_time
from asya.tasks.cancellation import cancel_record, cancellation_report
from tests.doubles.tasks import event, route_at

RESULT = Raw(b'{"rows":3}')


def merged(*events: TaskEvent, record: TaskRecord | None = None) -> TaskRecord:
    for each in events:
        record = merge(record, each)
    assert record is not None
    return record


def pending() -> TaskRecord:
    moment = event("t", "received").at
    return TaskRecord(id="t", status="pending", created_at=moment, updated_at=moment, owner="AIDA", route=route_at(0))


def provisional(**data: Any) -> TaskRecord:
    return merged(event("t", "failed", 1, 9, reason="DeliveryExhausted", provisional=True, **data), record=pending())


@pytest.mark.rule("13.provisional")
@pytest.mark.parametrize("status", ["succeeded", "failed", "canceled"])
def test_a_claimed_end_replaces_a_provisional_one(status: Any) -> None:
    assert (provisional().status, provisional().provisional) == ("failed", True)
    ended = merged(event("t", status, 3, 20, result_uri="s3://a"), record=provisional())
    assert (ended.status, ended.provisional, ended.result_uri) == (status, False, "s3://a")
    assert (ended.reason, ended.updated_at) == (None, event("t", status, 3, 20).at)
    assert merged(event("t", "failed", 1, 30, provisional=True), record=ended) == ended


@pytest.mark.rule("13.provisional", "13.order")
def test_a_provisional_end_counts_only_without_another_in_any_order() -> None:
    real, guess = event("t", "succeeded", 3, 20, result=RESULT), event("t", "failed", 1, 9, provisional=True)
    one, other = merged(guess, real, record=pending()), merged(real, guess, record=pending())
    assert one == other
    assert (one.status, one.provisional) == ("succeeded", False)


@pytest.mark.rule("13.provisional")
def test_of_two_provisional_ends_the_first_counts_and_progress_changes_nothing() -> None:
    for later in (event("t", "succeeded", 3, 20, provisional=True), event("t", "completed", 2, 20)):
        assert merged(later, record=provisional()) == provisional()


@pytest.mark.rule("13.provisional")
def test_the_cancellation_of_a_call_does_not_replace_a_provisional_end() -> None:
    at = event("t", "canceled", 0, 20).at
    assert merged(cancellation_report(provisional(), now=parse_time(at)), record=provisional()) == provisional()


def canceled(*before: TaskEvent, seconds: float = 20) -> TaskRecord:
    """The record after the cancellation of a call; before that come some reports."""
    at = parse_time(event("t", "canceled", 0, seconds).at)
    return cancel_record(merged(*before, record=pending()), fold([], 0), now=at, by="AIDAOSCAR")


@pytest.mark.rule("13.cancel.by")
def test_the_call_that_canceled_a_task_is_named_until_it_is_not_canceled_any_more() -> None:
    record = canceled()
    assert record.canceled == Cancellation(at=record.updated_at, by="AIDAOSCAR")
    assert merged(event("t", "canceled", 1, 30), record=record).canceled == record.canceled  # of x-sink
    assert reopened(record, 1, at=record.updated_at).canceled is None


@pytest.mark.rule("13.cancel.claimed", "13.order")
@pytest.mark.parametrize("seconds", [19, 20, 30])
@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_a_cancellation_loses_to_an_end_that_was_claimed_in_any_order(status: Any, seconds: float) -> None:
    ended, progress = event("t", status, 3, seconds, result_uri="s3://a"), event("t", "received", 1, 5)
    expected = merged(progress, ended, record=pending())
    assert (expected.status, expected.result_uri) == (status, "s3://a")
    assert merged(ended, record=canceled(progress)) == expected
    assert canceled(ended) == merged(ended, record=pending())
    call = cancellation_report(pending(), now=parse_time(event("t", "canceled", 0, 20).at))
    for order in itertools.permutations([progress, ended, call, call, ended]):
        assert merged(*order, record=pending()) == expected


@pytest.mark.rule("13.cancel.claimed")
@pytest.mark.parametrize(
    "later",
    [
        event("t", "failed", 3, 19, provisional=True),
        replace(event("t", "failed", 3, 19), data=EventData(reason="RuntimeError")),
        event("t", "canceled", 3, 19),
        event("t", "paused", 3, 19),
        event("t", "completed", 3, 19),
    ],
)
def test_a_cancellation_stays_before_all_other_reports(later: TaskEvent) -> None:
    after = merged(later, record=canceled())
    assert replace(after, handover=None, pause_epoch=None) == canceled()


@pytest.mark.rule("13.cancel.claimed", "12.older-reports")
def test_a_cancellation_of_an_earlier_generation_loses_in_its_entry_too() -> None:
    again = reopened(canceled(), 1, at="2026-11-20T09:10:00.000000Z")
    late = merged(event("t", "succeeded", 3, 19), record=again)
    assert [each.status for each in late.earlier] == ["succeeded"]
    unclaimed = event("t", "failed", 3, 19, provisional=True)
    assert [each.status for each in merged(unclaimed, record=again).earlier] == ["canceled"]


@pytest.mark.rule("13.provisional")
def test_a_pause_replaces_a_provisional_end() -> None:
    paused = merged(event("t", "paused", 2, 20), record=provisional())
    assert (paused.status, paused.provisional, paused.reason, paused.pause_epoch) == ("paused", False, None, 2)


@pytest.mark.rule("13.provisional", "12.older-reports")
def test_a_provisional_end_of_an_earlier_generation_gives_way_in_its_entry() -> None:
    opened = reopened(provisional(), 1, at="2026-11-20T09:00:15.000000Z")
    again = merged(event("t", "received", 1, 20, generation=1), record=opened)
    assert [(each.status, each.provisional) for each in again.earlier] == [("failed", True)]
    late = merged(event("t", "succeeded", 3, 30), record=again)
    assert [(each.status, each.provisional) for each in late.earlier] == [("succeeded", False)]
    assert merged(event("t", "failed", 3, 40, provisional=True), record=late) == late


def test_another_end_does_not_fill_in_its_address() -> None:
    ended = merged(event("t", "succeeded", 3, 9))
    assert merged(event("t", "failed", 3, 12, result_uri="s3://a"), record=ended).result_uri is None
