"""Cancellation of tasks (`protocol §13`, DELETE)."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace as changed

from asya.capabilities.cancels.lambdas import task_cancels
from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.ends.aws.end_claims import Claim, EndClaims
from asya.function.aws import clients
from asya.heavy.aws.completion_messages import decode_cancel
from asya.protocol import names
from asya.protocol.codec import decode
from asya.protocol.mesh_table import Actor
from asya.tasks.aws import index as task_index
from tests.doubles.gateway_functions import (
    ADMIN,
    ALICE,
    BOB,
    MESH,
    QUEUES,
    Gateway,
    read_task_event,
    recorded_event,
    report,
    route_event,
    signed_by,
    with_body,
)
from tests.doubles.tasks import at

ROUTE = "DELETE /api/v1/mesh/{id}"


@pytest.fixture(autouse=True)
def with_operators(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))


def cancel(gateway: Gateway, task_id: str, iam: dict[str, str] = ALICE, seconds: float = 5.0) -> tuple[int, Any]:
    return gateway.api(route_event(ROUTE, iam, id=task_id), at(seconds))


def shown(gateway: Gateway, task_id: str, seconds: float = 5.0) -> Any:
    return gateway.api(read_task_event(task_id, ADMIN), at(seconds))[1]


def start(gateway: Gateway, iam: dict[str, str] = ALICE, **body: Any) -> str:
    return str(gateway.api(signed_by(with_body(recorded_event("start-task"), body), iam))[1]["id"])


@pytest.mark.rule("13.cancel", "13.cancel.by")
def test_a_task_is_canceled_and_stays_so(gateway: Gateway) -> None:
    task_id = start(gateway)
    report(gateway, task_id, "received", 1, data={"actor": "inspect-dataset"})
    assert cancel(gateway, task_id) == (204, None)
    found = shown(gateway, task_id)
    assert (found["status"], found["reason"], found["actor"]) == ("canceled", "Canceled", "inspect-dataset")
    assert found["canceled"] == {"at": "2026-11-20T09:00:05.000000Z", "by": ALICE["userId"]}
    report(gateway, task_id, "completed", 6)
    assert cancel(gateway, task_id, seconds=9) == (204, None)
    assert shown(gateway, task_id, 9)["updated_at"].startswith("2026-11-20T09:00:05")


def claims(_: Gateway) -> EndClaims:
    return EndClaims(clients.dynamodb(), "asya-flights-sink", 10**6)


def holder(gateway: Gateway, task_id: str) -> tuple[str, int]:
    found = claims(gateway).holder(task_id)
    assert found is not None
    return found.phase, found.generation


@pytest.mark.rule("13.cancel")
def test_a_cancellation_claims_the_end_for_the_owner_of_the_task(gateway: Gateway) -> None:
    task_id = start(gateway)
    report(gateway, f"child-of-{task_id}", "received", 2, parent_id=task_id, root_id=task_id)
    for _ in range(2):
        assert cancel(gateway, task_id, ADMIN) == (204, None)
    assert holder(gateway, task_id) == holder(gateway, f"child-of-{task_id}") == ("canceled", 0)
    late = Claim(task_id, 0, "succeeded", "succeeded/k", 3, owner=ALICE["userId"])
    assert claims(gateway).take(late, epoch_seconds=0).outcome == "refused"
    assert claims(gateway).take(changed(late, owner=BOB["userId"]), epoch_seconds=0).is_of_other_owner


@pytest.mark.rule("13.cancel.ended")
def test_a_task_whose_end_is_claimed_is_left_alone(gateway: Gateway) -> None:
    task_id = start(gateway)
    claims(gateway).take(Claim(task_id, 0, "succeeded", "succeeded/k", 2), epoch_seconds=0)
    assert cancel(gateway, task_id) == (202, {"id": task_id, "status": "succeeded"})
    assert shown(gateway, task_id)["status"] == "pending"
    report(gateway, task_id, "succeeded", 6)
    assert cancel(gateway, task_id) == (204, None)


@pytest.mark.rule("13.cancel", "11.sink.provisional")
def test_the_claim_of_a_dead_letter_that_is_not_on_record_gives_way(gateway: Gateway) -> None:
    task_id = start(gateway)
    claims(gateway).take(Claim(task_id, 0, "failed", "failed/k", 2, is_provisional=True), epoch_seconds=0)
    assert cancel(gateway, task_id) == (204, None)
    assert holder(gateway, task_id) == ("canceled", 0)


@pytest.mark.rule("13.cancel.undecided")
@pytest.mark.parametrize("action", ["get_item", "update_item"])
def test_without_the_table_of_claims_nothing_is_decided(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    task_id, real = start(gateway), getattr(clients.dynamodb(), action)

    def refuse(**request: Any) -> Any:
        if request["TableName"].endswith("-sink"):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, action)
        return real(**request)

    with monkeypatch.context() as patch:
        patch.setattr(clients.dynamodb(), action, refuse)
        status, answer = cancel(gateway, task_id)
    assert (status, answer["error"]["code"]) == (503, "unavailable")
    assert "it is not decided whether task" in answer["error"]["message"]
    assert cancel(gateway, task_id) == (204, None)
    assert (shown(gateway, task_id)["status"], holder(gateway, task_id)[0]) == ("canceled", "canceled")


@pytest.mark.rule("13.cancel")
def test_an_ended_task_stays_unchanged(gateway: Gateway) -> None:
    for end in ("succeeded", "failed"):
        task_id = start(gateway)
        report(gateway, task_id, end, 1)
        assert cancel(gateway, task_id) == (204, None)
        assert shown(gateway, task_id)["status"] == end


@pytest.mark.rule("13.backstop.read")
def test_an_overdue_task_has_failed(gateway: Gateway) -> None:
    task_id = start(gateway, timeout=3)
    assert cancel(gateway, task_id) == (204, None)
    assert (shown(gateway, task_id)["status"], shown(gateway, task_id)["reason"]) == ("failed", "Timeout")


def test_only_callers_who_see_a_task_cancel_it(gateway: Gateway) -> None:
    task_id = start(gateway)
    assert cancel(gateway, task_id, BOB)[0] == 404
    assert cancel(gateway, "unknown")[0] == 404
    assert shown(gateway, task_id)["status"] == "pending"
    assert cancel(gateway, task_id, ADMIN)[0] == 204
    assert gateway.api(signed_by(route_event(ROUTE, ALICE, id=task_id), None))[0] == 403


@pytest.mark.rule("13.cancel.children", "13.cancel.by")
def test_descendants_are_canceled_too(gateway: Gateway) -> None:
    task_id = start(gateway)
    report(gateway, task_id, "received", 1)
    for number in range(20):
        report(gateway, f"c{number}", "received", 2, parent_id=task_id, root_id=task_id)
    report(gateway, "grandchild", "received", 3, parent_id="c7", root_id=task_id, generation=2)
    report(gateway, "c3", "succeeded", 4, parent_id=task_id)
    report(gateway, "stranger", "received", 3, parent_id="other")
    assert cancel(gateway, task_id)[0] == 204
    assert {shown(gateway, f"c{number}")["status"] for number in range(20) if number != 3} == {"canceled"}
    assert shown(gateway, "grandchild")["status"] == "canceled"
    assert shown(gateway, "grandchild")["canceled"] == {"at": "2026-11-20T09:00:05.000000Z", "root": task_id}
    assert "canceled" not in shown(gateway, "c3")
    assert shown(gateway, "c3")["status"] == "succeeded"
    assert shown(gateway, "stranger")["status"] == "running"


@pytest.mark.rule("13.cancel.children")
def test_children_of_one_time_are_canceled_beyond_a_page(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_cancels, "PAGE_SIZE", 2)
    monkeypatch.setattr(task_index, "MIN_PAGE_SIZE", 2)
    task_id = start(gateway)
    children = [f"c{number}" for number in range(24)]
    for child in children:
        report(gateway, child, "received", 2, parent_id=task_id, root_id=task_id)
    assert cancel(gateway, task_id)[0] == 204
    assert {shown(gateway, child)["status"] for child in children} == {"canceled"}


@pytest.mark.rule("13.cancel.children")
def test_children_of_other_times_are_canceled_beyond_a_page(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_cancels, "PAGE_SIZE", 2)
    monkeypatch.setattr(task_index, "MIN_PAGE_SIZE", 2)
    task_id = start(gateway)
    children = [f"c{number}" for number in range(24)]
    for number, child in enumerate(children):
        report(gateway, child, "received", 2 + number, parent_id=task_id, root_id=task_id)
    assert cancel(gateway, task_id)[0] == 204
    assert {shown(gateway, child)["status"] for child in children} == {"canceled"}


@pytest.mark.rule("13.cancel.runs")
def test_job_runs_are_asked_to_stop(gateway: Gateway) -> None:
    gateway.mesh = changed(gateway.mesh, actors=MESH.actors | {"clean": Actor(kind="spark")})
    task_id = start(gateway)
    answer = cancel(gateway, task_id)
    assert (answer[0], answer[1]["error"]["code"]) == (503, "unavailable")  # there is no such queue
    assert shown(gateway, task_id)["status"] == "canceled"
    clients.sqs().create_queue(QueueName=names.queue_name("flights", names.COMPLETION))
    for _ in range(2):
        assert cancel(gateway, task_id) == (204, None)
    queue = QUEUES + names.queue_name("flights", names.COMPLETION)
    messages = clients.sqs().receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    assert [decode_cancel(json.loads(message["Body"])) for message in messages] == [task_id, task_id]


@pytest.mark.rule("13.cancel.paused")
def test_the_stored_envelope_of_a_paused_task_goes_to_x_sink(gateway: Gateway) -> None:
    clients.sqs().create_queue(QueueName=names.queue_name("flights", "x-sink"))
    task_id = start(gateway)
    [message] = gateway.messages()
    message["route"] = {"prev": ["inspect-dataset"], "curr": "x-pause", "next": ["publish-report"]}
    message["status"]["phase"] = "paused"
    kept = PausedEnvelopes(clients.s3(), gateway.environ["ASYA_BUCKET"])
    kept.save(PauseKey(task_id, 0, 1), decode(json.dumps(message).encode()))
    report(gateway, task_id, "paused", 1, position=1)
    assert cancel(gateway, task_id)[0] == 204
    assert shown(gateway, task_id)["status"] == "canceled"
    [handed] = gateway.messages("x-sink")
    assert (handed["id"], handed["status"]["phase"]) == (task_id, "canceled")
