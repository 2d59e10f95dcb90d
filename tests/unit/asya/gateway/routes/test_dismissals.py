"""Dismissals: a person settles a failure without a replay (`protocol §13.dismiss`)."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from asya.tasks.view import TaskView
from tests.doubles.api_function import ALICE, NOW, RESULTS, emulated_shop
from tests.doubles.envelopes import message
from tests.doubles.tasks import event
from tests.unit.asya.gateway.routes.test_replays import OPERATOR, Gateway
from tests.unit.asya.gateway.routes.test_replays_links import FAILED
from tests.unit.memory_tables import memory_tables

BOB = {"userArn": "arn:aws:iam::123456789012:user/bob", "userId": "AIDABOB"}
REASON = {"reason": " the order was a test "}


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    with memory_tables(), emulated_shop(monkeypatch, "infer"):
        shop = Gateway()
        shop.failed("RuntimeError")
        shop.put(f"{RESULTS}failed/env-1.json", message(status=FAILED))
        yield shop


def shown(gateway: Gateway) -> TaskView:
    task = gateway.tasks.read("env-1", NOW)
    assert task is not None
    return task


def groups(gateway: Gateway, **query: str) -> Any:
    path = "/api/v1/operations/failures"
    return gateway.request("GET", path, {}, "", OPERATOR, {"queryStringParameters": query})[1]


@pytest.mark.rule("13.dismiss", "13.failures")
@pytest.mark.parametrize("caller", [ALICE, OPERATOR])
def test_owners_and_operators_dismiss_a_failure_with_a_reason(gateway: Gateway, caller: dict[str, str]) -> None:
    code, body = gateway.post("env-1", "dismiss", REASON, iam=caller)
    resolution = {
        "how": "dismissed", "at": "2026-11-20T12:00:00.000000Z", "by": caller["userId"], "reason": "the order was a test",
    }  # fmt: skip
    assert (code, body) == (200, {"id": "env-1", "resolution": resolution})
    assert shown(gateway).status == "failed"
    assert groups(gateway) == {"items": [], "resolved": 1}
    assert [group["count"] for group in groups(gateway, resolved="true")["items"]] == [1]
    assert gateway.post("env-1", "dismiss", REASON, iam=caller) == (code, body)
    other = gateway.post("env-1", "dismiss", {"reason": "a known bug"}, iam=caller)[1]
    assert other["resolution"]["reason"] == "a known bug"


@pytest.mark.rule("13.dismiss")
def test_an_undone_dismissal_leaves_the_failure_open(gateway: Gateway) -> None:
    code, body = gateway.post("env-1", "dismiss", {"undo": True})
    assert (code, body["error"]["code"]) == (409, "not_dismissed")
    gateway.post("env-1", "dismiss", REASON)
    assert gateway.post("env-1", "dismiss", {"undo": True}) == (200, {"id": "env-1"})
    assert [group["count"] for group in groups(gateway)["items"]] == [1]


@pytest.mark.rule("13.dismiss")
@pytest.mark.parametrize(
    "body", [{}, {"reason": "  "}, {"reason": "x" * 1025}, {"reason": "a", "undo": True}, {"why": "a"}]
)
def test_a_dismissal_without_a_usable_reason_is_refused(gateway: Gateway, body: dict[str, Any]) -> None:
    code, answer = gateway.post("env-1", "dismiss", body)
    assert (code, answer["error"]["code"]) == (400, "invalid_field")
    assert gateway.post("env-1", "dismiss", "junk")[1]["error"]["code"] == "invalid_json"
    assert shown(gateway).resolution is None


@pytest.mark.rule("13.dismiss")
def test_only_failures_of_ones_own_are_dismissed(gateway: Gateway) -> None:
    gateway.report(event("env-2", "received", owner="AIDAALICE"))
    code, body = gateway.post("env-2", "dismiss", REASON)
    assert (code, body["error"]["code"]) == (409, "not_failed")
    assert gateway.post("env-1", "dismiss", REASON, iam=BOB)[0] == 404
    new_id = gateway.post("env-1", "replay", iam=ALICE)[1]["id"]
    code, body = gateway.post("env-1", "dismiss", REASON)
    assert (code, body["error"]["code"], new_id in body["error"]["message"]) == (409, "replayed", True)


@pytest.mark.rule("12.replay.again")
def test_a_dismissed_failure_is_replayed_by_force_alone(gateway: Gateway) -> None:
    gateway.post("env-1", "dismiss", REASON)
    code, body = gateway.post("env-1", "replay")
    assert (code, body["error"]["code"]) == (409, "dismissed")
    assert "the order was a test" in body["error"]["message"]
    new_id = gateway.post("env-1", "replay", {"force": True})[1]["id"]
    resolution = shown(gateway).resolution
    assert resolution is not None
    assert (resolution.how, resolution.task) == ("replayed", new_id)


@pytest.mark.rule("13.dismiss")
def test_a_later_end_of_a_provisional_failure_is_not_dismissed(gateway: Gateway) -> None:
    gateway.report(event("env-2", "failed", 1, 5, reason="DeliveryExhausted", provisional=True))
    assert gateway.post("env-2", "dismiss", REASON)[0] == 200
    gateway.report(event("env-2", "failed", 1, 9, reason="RuntimeError"))
    task = gateway.tasks.read("env-2", NOW)
    assert task is not None
    assert (task.reason, task.resolution) == ("RuntimeError", None)


@pytest.mark.rule("13.dismiss")
def test_a_failure_after_a_pause_is_not_dismissed(gateway: Gateway) -> None:
    """SQS has moved the dead letter back: the envelope pauses, goes on and misses its deadline."""
    deadline_at = "2026-11-20T11:59:00.000000Z"
    gateway.report(
        event("env-2", "failed", 1, 5, reason="DeliveryExhausted", provisional=True, deadline_at=deadline_at)
    )
    assert gateway.post("env-2", "dismiss", REASON)[0] == 200
    gateway.report(event("env-2", "paused", 1, 9))
    gateway.tasks.update("env-2", lambda record, _: replace(record, status="running", pause=None), NOW)
    task = gateway.tasks.read("env-2", NOW)
    assert task is not None
    assert (task.status, task.reason, task.resolution) == ("failed", "Timeout", None)
