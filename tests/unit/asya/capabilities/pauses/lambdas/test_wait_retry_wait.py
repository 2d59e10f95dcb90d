"""protocol §8, §11: retries of more than a day in x-wait."""

import json

import pytest

from asya.protocol.times import format_time, parse_time
from tests.doubles.envelopes import message
from tests.doubles.times import TIME_ENDS
from tests.doubles.waiting import BEGAN, DAY, WaitingWorld

ROUTE = {"prev": ["prep"], "curr": "flaky", "next": ["post"]}
KEY = "waiting/env-1/0/1-2.json"


def fail_once(waits: WaitingWorld, **members: object) -> str:
    """The retry that the sidecar sends after a failure."""
    assert waits.deliver("flaky", message(**({"route": ROUTE} | members))) == []
    (retry,) = waits.take("x-wait")
    return retry


@pytest.mark.rule("8.retry.days")
def test_a_retry_after_days_waits_in_x_wait(waits: WaitingWorld) -> None:
    assert waits.deliver("x-wait", fail_once(waits)) == []
    assert waits.held(KEY)["route"] == ROUTE
    record = waits.record()
    assert (record.status, record.waiting_until) == ("running", format_time(BEGAN + 2 * DAY))
    waits.clock.moment += 1.9 * DAY
    waits.sweep()
    assert waits.sent("flaky") == []
    waits.clock.moment += 0.1 * DAY
    waits.sweep()
    (again,) = waits.sent("flaky")
    assert again.status is not None
    assert (again.id, again.route.curr, again.status.attempt, again.status.phase) == ("env-1", "flaky", 2, "retrying")
    assert not {"x-asya-wait", "x-asya-not-before"} & again.headers.keys()
    assert waits.record().waiting_until is None


@pytest.mark.rule("8.retry.days")
def test_each_attempt_has_a_wait_of_its_own(waits: WaitingWorld) -> None:
    assert waits.deliver("x-wait", fail_once(waits)) == []
    waits.clock.moment += 2 * DAY
    waits.sweep()
    (body,) = waits.take("flaky")
    assert waits.deliver("flaky", body) == []
    (second,) = waits.take("x-wait")
    assert waits.deliver("x-wait", second) == []
    assert waits.record().waiting_until == format_time(BEGAN + 4 * DAY)
    waits.clock.moment += 2 * DAY
    waits.sweep()
    assert [sent.status.attempt for sent in waits.sent("flaky") if sent.status] == [3]


@pytest.mark.rule("8.retry.days")
def test_a_copy_of_a_retry_that_was_sent_is_not_held_again(waits: WaitingWorld) -> None:
    retry = fail_once(waits)
    for _ in range(2):
        assert waits.deliver("x-wait", retry) == []
        waits.clock.moment += 2 * DAY
        waits.sweep()
    assert len(waits.sent("flaky")) == 1


@pytest.mark.rule("8.retry.days")
def test_without_a_record_a_retry_waits_for_a_day_on_its_queue(waits: WaitingWorld) -> None:
    body = message(route=ROUTE, headers={"x-asya-mesh-status": "off"})
    assert waits.deliver("flaky", body) == []
    (sent,) = waits.sqs.sent["asya-shop-flaky"]
    assert sent.delay == 900
    assert sent.envelope.header("x-asya-not-before") == format_time(BEGAN + DAY)


@pytest.mark.rule("8.retry.days")
def test_a_retry_of_another_gateways_task_waits_for_a_day(waits: WaitingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    retry = fail_once(waits)
    monkeypatch.setattr("asya.sidecar.lambdas.services.Services.records_task", lambda *_: False)
    assert waits.deliver("x-wait", retry) == []
    (sent,) = waits.sqs.sent["asya-shop-flaky"]
    assert sent.delay == 900
    assert sent.envelope.header("x-asya-not-before") == format_time(BEGAN + DAY)
    assert "x-asya-wait" not in sent.envelope.headers


@pytest.mark.rule("8.retry.days")
@pytest.mark.parametrize("since", TIME_ENDS)
@pytest.mark.parametrize("until", TIME_ENDS)
def test_a_retry_of_any_times_goes_on(waits: WaitingWorld, since: str, until: str) -> None:
    retry = json.loads(fail_once(waits))
    retry["headers"]["x-asya-wait"] = {"since": since, "until": until}
    assert waits.deliver("x-wait", json.dumps(retry)) == []
    record = waits.record()
    assert record.waiting_until is not None
    assert BEGAN <= parse_time(record.waiting_until) <= BEGAN + 30 * DAY
    waits.clock.moment = parse_time(record.waiting_until)
    waits.sweep()
    assert len(waits.sent("flaky")) == 1


@pytest.mark.rule("11.wait.cancel")
def test_a_canceled_task_leaves_x_wait_at_once(waits: WaitingWorld) -> None:
    assert waits.deliver("x-wait", fail_once(waits)) == []
    waits.cancel()
    waits.sweep()
    for body in waits.take("flaky"):
        assert waits.deliver("flaky", body) == []
    (canceled,) = waits.sent("x-sink")
    assert canceled.status is not None
    assert canceled.status.phase == "canceled"
