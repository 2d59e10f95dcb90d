"""Dead letters, for operators: what they show, and what a read leaves as it was (`protocol §13`, operations)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.capabilities.dead_letters.aws import letters as dead_letter_queue
from asya.capabilities.dead_letters.aws.letters import DeadLetterQueue
from asya.capabilities.dead_letters.letters import watched_actors
from asya.capabilities.operations.aws import letter_scan
from asya.function.aws import clients
from asya.function.hop import PROBLEM
from asya.gateway.operations.wiring import build_operations
from asya.protocol import names
from asya.protocol.envelope import Route
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.times import format_time
from asya.protocol.triggers import Trigger
from tests.doubles.envelopes import message, status
from tests.doubles.heavy import TABLE
from tests.doubles.operators import ALICE, NOW, OperatorCalls, operator_calls

LETTERS = "/api/v1/operations/dead-letters"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[OperatorCalls]:
    monkeypatch.setattr(dead_letter_queue, "WAIT_SECONDS", 0)  # moto has one server
    with operator_calls(monkeypatch, build_operations, names.OPERATIONS) as made:
        for actor in watched_actors(TABLE):
            clients.sqs().create_queue(QueueName=names.dlq_name("flights", actor))
        yield made


def url(actor: str) -> str:
    return clients.sqs().get_queue_url(QueueName=names.dlq_name("flights", actor))["QueueUrl"]


def put(actor: str, body: bytes) -> None:
    clients.sqs().send_message(QueueUrl=url(actor), MessageBody=body.decode())


def listed(calls: OperatorCalls, query: str = "") -> dict[str, Any]:
    code, body = calls.get(LETTERS + query)
    assert code == 200, body
    return dict(body)


@pytest.mark.rule("13.operations.dead-letters")
def test_letters_show_why_they_failed_and_stay_in_their_queues(calls: OperatorCalls) -> None:
    error = {"type": "KeyError", "message": "'price'", "mro": []}
    put("publish", message(id="order-7", status=status(phase="failed", error=error)))
    put("clean", b"no envelope")
    put("x-dispatch", b'{"actor": "clean"}')
    data = EventData(
        actor="publish", route=Route(("clean",), "publish", ()), reason="DeliveryExhausted",
        error=ErrorInfo(type="DeliveryExhausted", message="5 deliveries"),
    )  # fmt: skip
    at = format_time(NOW - timedelta(seconds=5))
    calls.report([TaskEvent(id="order-7", status="failed", at=at, position=1, data=data)])
    for _ in range(2):
        body = listed(calls)
        items = {item["actor"]: item for item in body["items"]}
        assert body["has_more"] is False
        assert [(queue["actor"], queue["visible"]) for queue in body["queues"]] == [
            ("clean", 1), ("publish", 1), ("x-dispatch", 1),
        ]  # fmt: skip
        order = items["publish"]
        assert (order["id"], order["hop"], order["task"], order["reason"]) == (
            "order-7",
            1,
            "failed",
            "DeliveryExhausted",
        )
        assert order["error"] == {"type": "KeyError", "message": "'price'"}
        assert items["clean"]["body"] == "no envelope"
        assert "hop" not in items["clean"]
        assert items["x-dispatch"]["id"] == items["x-dispatch"]["message_id"]
    assert [item["actor"] for item in listed(calls, "?actor=clean")["items"]] == ["clean"]


@pytest.mark.rule("13.operations.dead-letters.visible")
@pytest.mark.slow
def test_a_read_hides_no_letter_from_a_redrive_and_sees_none_that_is_redriven(calls: OperatorCalls) -> None:
    for number in range(25):
        put("clean", message(id=f"order-{number}"))
    body = listed(calls, "?limit=12")
    assert (len(body["items"]), body["has_more"]) == (12, True)
    queue = DeadLetterQueue(clients.sqs(), url("clean"))
    redriven = [each for batch in queue.scan(hide_seconds=300) for each in batch]
    assert len(redriven) == 25  # all are visible to the command at once
    during = listed(calls)
    assert (during["items"], during["queues"]) == ([], [{"actor": "clean", "visible": 0, "hidden": 25}])
    queue.delete(redriven[0])
    queue.release([message.receipt_handle for message in redriven[1:]])
    assert {item["id"] for item in listed(calls)["items"]} == {letter.arrival.envelope().id for letter in redriven[1:]}


def test_a_read_ends_before_its_bodies_fill_the_memory(calls: OperatorCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of an actor may fill the dead-letter queue of its actor, and a function of the mesh has 512 MB."""
    monkeypatch.setattr(letter_scan, "SCAN_BYTES", 50_000)
    for number in range(60):
        put("clean", message(id=f"order-{number}", payload="x" * 4_000))
    put("x-dispatch", message(id="behind"))
    body = listed(calls)
    assert body["has_more"]
    assert 12 < len(body["items"]) < 30
    assert [queue["visible"] for queue in listed(calls)["queues"]] == [60, 1]


def test_letters_are_released_also_after_an_error(calls: OperatorCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(25):
        put("clean", message(id=f"order-{number}"))
    receive, failures = clients.sqs().receive_message, iter([False, True])

    def failing(**request: Any) -> Any:
        if next(failures):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "x"}}, "ReceiveMessage")
        return receive(**request)

    with monkeypatch.context() as patch:
        patch.setattr(clients.sqs(), "receive_message", failing)
        assert calls.get(LETTERS)[0] == 503
    assert DeadLetterQueue(clients.sqs(), url("clean")).count().visible == 25


@pytest.mark.rule("13.operations.limits")
def test_a_large_body_is_cut(calls: OperatorCalls) -> None:
    put("clean", message(payload="x" * 100_000))
    (item,) = listed(calls)["items"]
    assert (item["truncated"], len(item["body"]), item["size"] > 100_000) == (True, 64 * 1024, True)


@pytest.mark.rule("13.operations")
def test_other_callers_are_refused(calls: OperatorCalls) -> None:
    put("clean", message())
    assert calls.get(LETTERS, ALICE)[0] == 403
    assert DeadLetterQueue(clients.sqs(), url("clean")).count().visible == 1


@pytest.mark.parametrize(("query", "status"), [("?actor=nobody", 404), ("?limit=0", 400), ("?limit=501", 400)])
def test_a_wrong_parameter_is_refused(calls: OperatorCalls, query: str, status: int) -> None:
    assert calls.get(LETTERS + query)[0] == status


@pytest.mark.rule("16.failures", "13.operations.dead-letters")
def test_16_a_letter_of_x_triggers_shows_its_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attribute of the message says why it starts nothing."""
    trigger = Trigger(route=("clean",), cron="0 2 * * *")
    table = replace(TABLE, triggers={"nightly": trigger})
    with operator_calls(monkeypatch, build_operations, names.OPERATIONS, table) as calls:
        for actor in watched_actors(table):
            clients.sqs().create_queue(QueueName=names.dlq_name("flights", actor))
        clients.sqs().send_message(
            QueueUrl=url(names.TRIGGERS),
            MessageBody='{"trigger": "nope"}',
            MessageAttributes={PROBLEM: {"DataType": "String", "StringValue": "the mesh has no trigger 'nope'"}},
        )
        (item,) = listed(calls)["items"]
    assert item["error"] == {"type": "NotStarted", "message": "the mesh has no trigger 'nope'"}
