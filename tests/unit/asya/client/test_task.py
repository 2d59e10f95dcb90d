"""A task, as a program uses it: its end, its result, its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from asya.client import (
    ContractError,
    InvalidAnswersError,
    MeshError,
    NotEndedError,
    NotFoundError,
    Task,
    TaskCanceledError,
    TaskFailedError,
    TaskPausedError,
    UnreachableError,
)
from tests.unit.asya.client.conftest import stream, task

if TYPE_CHECKING:
    from asya.client.mesh_client import MeshClient
    from tests.unit.asya.client.conftest import Clock, FakeGateway

URI = "s3://bucket/results/t1.json"
PAUSE = {"prompt": "Ship it?", "fields": [{"name": "approved", "type": "boolean"}], "since": "2026-11-20T09:00:00Z"}


@dataclass
class Checked:
    risk: str


@pytest.fixture
def order(client: MeshClient) -> Task:
    return Task("t1", client)


def test_a_wait_lasts_until_the_end(gateway: FakeGateway, order: Task, clock: Clock) -> None:
    gateway.answers = [(404, {}), (200, task("running")), (503, b""), (200, task("succeeded", result={"risk": "low"}))]
    assert order.wait().result(Checked) == Checked("low")
    assert len(clock.pauses) == 3
    assert order.result() == {"risk": "low"}


@pytest.mark.parametrize("status", ["failed", "canceled"])
def test_a_wait_also_ends_at_a_bad_end(gateway: FakeGateway, order: Task, status: str) -> None:
    gateway.answers = [(200, task(status))]
    assert order.wait() is order


def test_a_failure_says_where_and_why(gateway: FakeGateway, order: Task) -> None:
    error = {"type": "shop.OutOfStock", "message": "no tea", "traceback": "Traceback …"}
    gateway.answers = [(200, task("failed", actor="bill", reason="RuntimeError", error=error))]
    with pytest.raises(
        TaskFailedError, match=r"^t1 failed \(RuntimeError\) at bill: shop.OutOfStock: no tea"
    ) as caught:
        order.result()
    failure = caught.value
    assert (failure.type, failure.message, failure.actor) == ("shop.OutOfStock", "no tea", "bill")
    assert failure.reason == "RuntimeError"
    assert failure.error is not None
    assert failure.error.traceback == "Traceback …"


def test_a_canceled_task_has_an_error_of_its_own(gateway: FakeGateway, order: Task) -> None:
    gateway.answers = [(200, task("canceled", reason="Canceled"))]
    with pytest.raises(TaskCanceledError, match="t1 was canceled") as caught:
        order.result()
    assert (caught.value.type, caught.value.message) == (None, None)


@pytest.mark.parametrize("ask", [Task.wait, Task.result])
def test_a_pause_carries_its_question(gateway: FakeGateway, order: Task, ask: Any) -> None:
    gateway.answers = [(200, task("paused", pause=PAUSE))]
    with pytest.raises(TaskPausedError, match=r"waits for an answer: Ship it\?") as caught:
        ask(order)
    assert caught.value.pause is not None
    assert [field.name for field in caught.value.pause.fields] == ["approved"]


def test_a_task_at_work_has_no_result(gateway: FakeGateway, order: Task) -> None:
    gateway.answers = [(200, task("running", actor="bill")), (404, {})]
    with pytest.raises(NotEndedError, match="running at bill"):
        order.result()
    with pytest.raises(NotFoundError, match="no task 't1'"):
        order.result()


def test_a_wait_with_a_limit_gives_up(gateway: FakeGateway, order: Task, clock: Clock) -> None:
    gateway.answers = [(200, task("running", actor="bill"))]
    with pytest.raises(NotEndedError, match="t1 has not ended after 10 s: running at bill"):
        order.wait(timeout=10)
    assert clock.seconds == pytest.approx(10)


def test_a_large_result_is_read_from_its_object(gateway: FakeGateway, order: Task) -> None:
    envelope = b'{"id":"t1","route":{"prev":["check"],"curr":"","next":[]},"payload":{"risk":"high"}}'
    gateway.answers = [(200, task("succeeded", result_uri=URI))]
    with pytest.raises(MeshError, match=f"its object is missing: {URI}"):
        order.result()
    gateway.objects = {URI: b"?"}
    with pytest.raises(MeshError, match="is not an envelope"):
        order.result()
    gateway.objects = {URI: envelope}
    assert order.result(Checked) == Checked("high")


def test_a_result_of_another_type_is_refused(gateway: FakeGateway, order: Task) -> None:
    gateway.answers = [(200, task("succeeded", result={"risk": 3}))]
    with pytest.raises(ContractError, match=r"^result\.risk"):
        order.result(Checked)


def test_events_come_once_across_connections(gateway: FakeGateway, order: Task, clock: Clock) -> None:
    gateway.answers = [
        (404, {}),
        (200, stream(("status", "1", {"status": "running"}))),
        UnreachableError("the gateway did not answer"),
        (200, b": keepalive\n\n"),
        (200, stream(("partial", "2", {"data": 1}), ("final", "3", {"status": "succeeded"}))),
    ]
    events = list(order.events())
    assert [(event.name, event.cursor) for event in events] == [("status", "1"), ("partial", "2"), ("final", "3")]
    assert [call.query.get("last_event_id") for call in gateway.calls] == [None, None, "1", "1", "1"]
    assert len(clock.pauses) == 3


def test_the_events_of_an_ended_stream_are_none(gateway: FakeGateway, order: Task) -> None:
    gateway.answers = [(204, b"")]
    assert list(order.events()) == []


def test_a_task_is_resumed_canceled_and_replayed(gateway: FakeGateway, order: Task) -> None:
    gateway.answers = [(202, {"id": "t1", "status": "running"})]
    order.resume({"approved": True})
    gateway.answers = [(204, b"")]
    order.cancel()
    gateway.answers = [(201, {"id": "t2", "replay_of": "t1", "source": "s3://bucket/key"})]
    assert order.replay().id == "t2"
    order.replay(2)
    order.replay(checkpoint=1)
    order.replay(failed_only=True)
    order.replay(force=True, key="k-1")
    assert order.dismiss("a test") is order
    assert [(call.method, call.path, call.body) for call in gateway.calls] == [
        ("POST", "/api/v1/mesh/t1/resume", {"input": {"approved": True}}),
        ("DELETE", "/api/v1/mesh/t1", None),
        ("POST", "/api/v1/mesh/t1/replay", {}),
        ("POST", "/api/v1/mesh/t1/replay", {"hop": 2}),
        ("POST", "/api/v1/mesh/t1/replay", {"checkpoint": 1}),
        ("POST", "/api/v1/mesh/t1/replay", {"failed_only": True}),
        ("POST", "/api/v1/mesh/t1/replay", {"force": True}),
        ("POST", "/api/v1/mesh/t1/dismiss", {"reason": "a test"}),
    ]


def test_invalid_answers_name_their_fields(gateway: FakeGateway, order: Task) -> None:
    problems = {"fields": [{"name": "approved", "message": "should be a boolean"}]}
    gateway.answers = [(422, {"error": problems})]
    with pytest.raises(InvalidAnswersError, match="stays paused") as caught:
        order.resume({"approved": "yes"})
    assert caught.value.fields == {"approved": "should be a boolean"}


def test_a_printed_task_is_its_id(order: Task) -> None:
    assert repr(order) == "Task(id='t1')"
