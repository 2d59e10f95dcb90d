"""protocol §11: wait actors, with redeliveries."""

from datetime import timedelta
from typing import Any

import pytest

from asya.protocol.times import format_time
from asya.protocol.wait import TaskWait
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import message, status
from tests.doubles.waiting import BEGAN, DAY, WaitingWorld

KEY = "waiting/env-1/0/1-1.json"
DUE = "2026-11-23T12:00:00.000000Z"


@pytest.mark.rule("3.wait", "11.wait.kept", "11.wait.reported", "13.waiting")
def test_an_envelope_is_held_and_its_task_says_until_when(waits: WaitingWorld) -> None:
    waits.arrive("cool-down")
    held = waits.held(KEY)
    assert held["route"] == {"prev": ["prep"], "curr": "cool-down", "next": ["post"]}
    assert held["headers"]["x-asya-wait"] == {"since": format_time(BEGAN), "until": DUE}
    assert held["payload"] == {"text": "hello"}
    record = waits.record()
    assert (record.status, record.waiting_until) == ("running", DUE)
    assert record.wait == TaskWait(actor="cool-down", position=1, attempt=1, since=format_time(BEGAN), until=DUE)
    assert waits.sent("post") == []


@pytest.mark.rule("11.wait.sent", "11.wait.passed-on")
def test_it_goes_on_when_it_is_due_and_not_before(waits: WaitingWorld) -> None:
    waits.arrive("cool-down")
    waits.clock.moment += 2.99 * DAY
    waits.go_on("cool-down")
    assert waits.sent("post") == []
    waits.clock.moment += 0.01 * DAY
    waits.go_on("cool-down")
    (sent,) = waits.sent("post")
    assert (sent.id, sent.route.prev, sent.route.curr) == ("env-1", ("prep", "cool-down"), "post")
    assert "x-asya-wait" not in sent.headers
    assert sent.header("tenant") == "acme"
    assert waits.held(KEY)["resumed"]
    assert (waits.record().status, waits.record().waiting_until) == ("running", None)
    waits.go_on("cool-down")
    assert len(waits.sent("post")) == 1


@pytest.mark.rule("11.wait.sent")
def test_a_late_sweep_sends_late(waits: WaitingWorld) -> None:
    waits.arrive("cool-down")
    waits.clock.moment += 20 * DAY
    waits.go_on("cool-down")
    assert len(waits.sent("post")) == 1


@pytest.mark.rule("11.wait.kept")
def test_a_redelivery_does_not_begin_the_wait_again(waits: WaitingWorld) -> None:
    body = waits.arrive("cool-down")
    waits.clock.moment += DAY
    assert waits.deliver("cool-down", body) == []
    assert waits.held(KEY)["headers"]["x-asya-wait"]["until"] == DUE
    assert waits.record().waiting_until == DUE


@pytest.mark.rule("11.wait.kept")
def test_of_two_deliveries_at_once_the_one_that_holds_first_counts(
    waits: WaitingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second delivery comes an hour later, and holds the envelope while the first one stands still."""
    put = waits.s3.put_object
    body = message(route={"prev": ["prep"], "curr": "cool-down", "next": ["post"]})
    calls = 0

    def put_after_another_delivery(**request: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            waits.clock.moment += timedelta(hours=1)
            assert waits.deliver("cool-down", body) == []
        return put(**request)

    monkeypatch.setattr(waits.s3, "put_object", put_after_another_delivery)
    assert waits.deliver("cool-down", body) == []
    due = format_time(BEGAN + 3 * DAY + timedelta(hours=1))
    assert waits.held(KEY)["headers"]["x-asya-wait"]["until"] == due
    assert waits.record().waiting_until == due


@pytest.mark.rule("11.wait.passed-on")
def test_a_redelivery_after_the_wait_sends_nothing(waits: WaitingWorld) -> None:
    body = waits.arrive("cool-down")
    waits.clock.moment += 3 * DAY
    waits.go_on("cool-down")
    assert waits.deliver("cool-down", body) == []
    waits.go_on("cool-down")
    assert len(waits.sent("post")) == 1


@pytest.mark.rule("11.wait.reported")
def test_the_message_stays_until_the_report_is_accepted(waits: WaitingWorld) -> None:
    waits.sqs.refuse["asya-shop-x-ends"] = [Refusal("call")]
    body = message(route={"prev": [], "curr": "cool-down", "next": ["post"]})
    assert waits.deliver("cool-down", body) == ["message-0"]
    assert waits.deliver("cool-down", body) == []
    waits.clock.moment += 3 * DAY
    waits.go_on("cool-down")
    assert len(waits.sent("post")) == 1


@pytest.mark.rule("11.wait.due")
@pytest.mark.parametrize("value", ["2026-11-20T12:00:00Z", 1_700_000_000, "2026-11-20T13:00:00+01:00"])
def test_a_wait_that_is_over_holds_nothing(waits: WaitingWorld, value: object) -> None:
    waits.arrive("embargo", payload={"publish_at": value})
    (sent,) = waits.sent("post")
    assert sent.route.prev == ("prep", "embargo")
    assert waits.s3.keys("waiting/") == []


@pytest.mark.rule("11.wait.value")
@pytest.mark.parametrize("payload", [{}, {"publish_at": "soon"}, {"publish_at": None}, [1]])
def test_a_payload_without_a_time_fails(waits: WaitingWorld, payload: object) -> None:
    waits.arrive("embargo", payload=payload)
    (failed,) = waits.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert (failed.status.phase, failed.status.reason) == ("failed", "RuntimeError")
    assert "/publish_at" in failed.status.error.message
    assert waits.s3.keys("waiting/") == []


@pytest.mark.rule("11.wait.deadline")
@pytest.mark.parametrize(("deadline", "fails"), [(DUE, True), ("2026-11-23T12:00:01Z", False)])
def test_a_wait_beyond_the_deadline_fails_at_entry(waits: WaitingWorld, deadline: str, fails: bool) -> None:
    waits.arrive("cool-down", status=status(deadline_at=deadline))
    failed = waits.sent("x-sink")
    assert bool(failed) == fails
    if not fails:
        return
    assert failed[0].status is not None
    assert failed[0].status.error is not None
    assert (failed[0].status.reason, failed[0].status.error.type) == ("Timeout", "Timeout")
    assert f"until {DUE} would end after the deadline of the task, {DUE}" in failed[0].status.error.message
    assert "deadline: stands" in failed[0].status.error.message


@pytest.mark.rule("11.wait.longest")
def test_a_wait_that_outlives_its_record_fails(waits: WaitingWorld) -> None:
    waits.arrive("embargo", payload={"publish_at": format_time(BEGAN + 29.1 * DAY)})
    (failed,) = waits.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert "this mesh holds an envelope for 696h0m0s at most" in failed.status.error.message


@pytest.mark.rule("11.wait.recorded")
def test_without_a_record_an_envelope_cannot_wait(waits: WaitingWorld) -> None:
    waits.arrive("cool-down", headers={"x-asya-mesh-status": "off"})
    (failed,) = waits.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert "no record of its task (x-asya-mesh-status: off" in failed.status.error.message


@pytest.mark.rule("11.wait.recorded")
def test_a_slice_may_wait(waits: WaitingWorld) -> None:
    place = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2}
    waits.arrive("cool-down", headers={"x-asya-fan-in": place | {"aggregation_key": "/results"}})
    assert waits.record().waiting_until == DUE


@pytest.mark.rule("11.wait.cancel")
def test_a_canceled_task_ends_at_its_wait_actor(waits: WaitingWorld) -> None:
    waits.arrive("cool-down")
    waits.clock.moment += DAY
    waits.cancel()
    assert waits.record().waiting_until is None
    waits.go_on("cool-down")
    (canceled,) = waits.sent("x-sink")
    assert canceled.status is not None
    assert (canceled.id, canceled.status.phase) == ("env-1", "canceled")
    assert waits.sent("post") == []


def test_the_deadline_counts_when_it_goes_on(waits: WaitingWorld) -> None:
    waits.arrive("cool-down", status=status(deadline_at=format_time(BEGAN + 3.5 * DAY)))
    waits.clock.moment += 4 * DAY
    waits.go_on("cool-down")
    (late,) = waits.sent("x-sink")
    assert late.status is not None
    assert (late.status.phase, late.status.reason) == ("failed", "Timeout")
