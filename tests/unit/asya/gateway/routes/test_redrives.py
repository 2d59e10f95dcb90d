"""Redrives of dead letters, over emulated tables, buckets and queues (`protocol §12`)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.capabilities.fan_in.aws.sets import SetTimes
from asya.capabilities.fan_in.sets import Decision
from asya.function.aws import clients
from asya.function.aws.submission_sender import MaybeSentError, NotSentError, SubmissionSender
from asya.protocol.envelope import GENERATION_LIMIT
from asya.protocol.mesh_table import Actor
from asya.protocol.slices import SetDue, encode_message
from asya.protocol.task import Resolution
from asya.protocol.times import format_time
from tests.doubles.api_function import ALICE, BUCKET, NOW, ApiFunction, emulated_shop
from tests.doubles.envelopes import message, status
from tests.doubles.tasks import event
from tests.doubles.times import TIME_ENDS
from tests.unit.asya.gateway.routes.test_replays import MESH, OPERATOR, Gateway
from tests.unit.memory_tables import memory_tables

SLICE = {"actor": "f", "set_id": "set-1", "origin_id": "origin", "slice_index": 1, "slice_count": 3}
SLICE_HEADER = {"x-asya-fan-in": SLICE | {"aggregation_key": ""}}


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    with memory_tables(), emulated_shop(monkeypatch, "infer", "x-sink", "x-ends"):
        yield Gateway()


def redrive(gateway: ApiFunction, body: bytes, actor: str = "infer", **query: str) -> tuple[int, Any]:
    """Redrive a dead letter as an operator."""
    return gateway.redrive(actor, body, OPERATOR, **query)


@pytest.mark.rule("12.redrive")
def test_a_dead_letter_is_sent_in_the_generation_that_its_task_is_reopened_in(gateway: Gateway) -> None:
    gateway.failed()
    body = message(status=status(phase="retrying", attempt=2))
    # The second time stands for a redrive that died before it deleted the dead letter.
    for _ in range(2):
        assert redrive(gateway, body) == (200, {"id": "env-1", "generation": 1})
        (sent,) = gateway.messages("infer")
        assert (sent["id"], sent["headers"]["x-asya-generation"]) == ("env-1", 1)
        assert (sent["status"]["phase"], sent["status"]["attempt"]) == ("pending", 1)
    task = gateway.tasks.read("env-1", NOW)
    assert task is not None
    assert (task.status, task.generation, task.owner) == ("pending", 1, "AIDAALICE")
    assert [(each.generation, each.reason) for each in task.earlier] == [(0, "DeliveryExhausted")]
    redriven = Resolution(how="redriven", at=format_time(NOW), by="AIDAOSCAR")
    assert task.earlier[0].resolution == redriven
    # The true end of the generation comes late.
    gateway.report(event("env-1", "failed", 1, 11, reason="RuntimeError"))
    shown = gateway.tasks.read("env-1", NOW)
    assert shown is not None
    assert shown.earlier[0].resolution == redriven


@pytest.mark.rule("12.redrive.settled")
@pytest.mark.parametrize("how", ["replayed", "dismissed"])
def test_a_dead_letter_of_a_settled_task_stays_in_its_queue(gateway: Gateway, how: str) -> None:
    gateway.failed()
    gateway.put("dlq/env-1/0/1.json", message())
    call, wish = ("replay", {}) if how == "replayed" else ("dismiss", {"reason": "a test"})
    assert gateway.post("env-1", call, wish)[0] in (200, 201)
    gateway.messages("infer")
    code, body = redrive(gateway, message())
    assert (code, body["error"]["code"]) == (409, how)
    assert gateway.messages("infer") == []
    assert redrive(gateway, message(), force="true") == (200, {"id": "env-1", "generation": 1})
    task = gateway.tasks.read("env-1", NOW)
    assert task is not None
    assert (task.status, task.resolution) == ("pending", None)
    code, body = gateway.post("env-1", "dismiss", {"undo": True})
    assert (code, body["error"]["code"]) == (409, "not_dismissed")


@pytest.mark.rule("13.resolution.once")
def test_a_failed_replay_of_a_task_that_was_redriven_is_settled(gateway: Gateway) -> None:
    gateway.failed()
    gateway.put("dlq/env-1/0/1.json", message())
    new_id = gateway.post("env-1", "replay")[1]["id"]
    gateway.report(event(new_id, "failed", 1, 20, reason="RuntimeError"))
    assert redrive(gateway, message())[0] == 200
    failed = gateway.tasks.read(new_id, NOW)
    assert failed is not None
    assert failed.resolution == Resolution(how="overtaken", task="env-1", status="pending")


@pytest.mark.rule("12.older-reports")
def test_a_late_report_of_an_earlier_generation_changes_only_that_one(gateway: Gateway) -> None:
    gateway.report(event("env-1", "received", 1))
    redrive(gateway, message())
    gateway.report(event("env-1", "failed", 1, 9, reason="DeliveryExhausted"))
    task = gateway.tasks.read("env-1", NOW)
    assert task is not None
    assert (task.status, task.generation, task.reason) == ("pending", 1, None)
    assert [each.reason for each in task.earlier] == ["DeliveryExhausted"]


def test_the_new_generations_own_reports_count(gateway: Gateway) -> None:
    gateway.failed()
    redrive(gateway, message())
    gateway.report(event("env-1", "received", 1, 20, generation=1), event("env-1", "succeeded", 3, 30, generation=1))
    task = gateway.tasks.read("env-1", NOW)
    assert task is not None
    assert (task.status, task.generation, task.progress_percent) == ("succeeded", 1, 100)


@pytest.mark.rule("12.redrive")
def test_only_operators_redrive_not_even_the_owner(gateway: Gateway) -> None:
    gateway.failed()
    code, body = gateway.redrive("infer", message(), ALICE)
    assert (code, body["error"]["code"]) == (403, "forbidden")
    assert gateway.messages("infer") == []


@pytest.mark.rule("12.refused")
def test_a_task_that_went_on_is_reopened_only_with_force(gateway: Gateway) -> None:
    gateway.report(event("env-1", "received", 2))
    assert redrive(gateway, message())[0] == 409
    assert gateway.messages("infer") == []
    assert redrive(gateway, message(), force="true")[0] == 200


@pytest.mark.rule("12.refused")
@pytest.mark.parametrize("headers", [{}, {"x-asya-mesh-status": "off"}])
def test_after_the_deadline_a_redrive_is_refused_with_or_without_reports(
    gateway: Gateway, headers: dict[str, str]
) -> None:
    late = message(id="env 1", headers=headers, status=status(deadline_at="2026-01-01T00:00:00Z"))
    code, body = redrive(gateway, late, force="true")
    assert (code, body["error"]["code"]) == (409, "deadline_passed")
    assert "`asya replay 'env 1'`" in body["error"]["message"]
    assert gateway.messages("infer") == []


@pytest.mark.rule("12.refused")
def test_a_slice_of_a_closed_set_is_refused_and_one_of_an_open_set_is_not(gateway: Gateway) -> None:
    gateway.failed()
    times = SetTimes(NOW, NOW.timestamp() + 1000)
    gateway.sets.count("set-1", 3, arrived={0}, actor="x-fan-in", times=times)
    assert redrive(gateway, message(headers=SLICE_HEADER))[0] == 200
    gateway.sets.save_decision("set-1", Decision(how="failed", at=format_time(NOW), reason="SliceFailed"))
    code, body = redrive(gateway, message(headers=SLICE_HEADER), force="true")
    assert (code, body["error"]["code"]) == (409, "set_closed")
    assert "origin" in body["error"]["message"]


def test_a_mesh_without_fan_in_needs_no_table_of_sets(gateway: Gateway) -> None:
    gateway.table = replace(MESH, actors={"infer": Actor(kind="handler")})
    gateway.failed()
    assert redrive(gateway, message(headers=SLICE_HEADER))[0] == 200


@pytest.mark.parametrize("headers", [{}, {"x-asya-mesh-status": "off"}])
def test_without_a_record_the_generation_grows_by_one(gateway: Gateway, headers: dict[str, str]) -> None:
    body = message(headers={"x-asya-generation": 4, **headers})
    assert redrive(gateway, body) == (200, {"id": "env-1", "generation": 5})
    assert [sent["headers"]["x-asya-generation"] for sent in gateway.messages("infer")] == [5]


def test_the_last_generation_stays_the_last(gateway: Gateway) -> None:
    body = message(headers={"x-asya-generation": GENERATION_LIMIT, "x-asya-mesh-status": "off"})
    assert redrive(gateway, body)[1]["generation"] == GENERATION_LIMIT


@pytest.mark.rule("12.redrive")
def test_an_ended_envelope_is_sent_unchanged(gateway: Gateway) -> None:
    body = message(status=status(phase="succeeded"), headers={"x-asya-generation": 1})
    assert redrive(gateway, body, "x-sink") == (200, {"id": "env-1", "generation": None})
    (sent,) = gateway.messages("x-sink")
    assert sent["headers"].pop("x-asya-key")
    assert sent == json.loads(body)


@pytest.mark.parametrize("body", [b'["junk"]', encode_message(SetDue(set_id="s")), b'{"id": 7}'])
def test_other_messages_are_sent_unchanged(gateway: Gateway, body: bytes) -> None:
    code, answer = redrive(gateway, body)
    assert (code, answer["generation"]) == (200, None)
    assert gateway.messages("infer") == [json.loads(body)]


@pytest.mark.rule("12.redrive.sender")
def test_an_envelope_that_no_sidecar_has_seen_belongs_to_the_sender_of_the_dead_letter(gateway: Gateway) -> None:
    redrive(gateway, message(status=...), sender="AIDABOB", sent_at="2026-11-20T11:00:00Z")
    (sent,) = gateway.messages("infer")
    assert sent["headers"]["x-asya-owner"] == "AIDABOB"
    assert sent["status"]["created_at"] == "2026-11-20T11:00:00.000000Z"


@pytest.mark.parametrize("sent_at", TIME_ENDS)
@pytest.mark.parametrize("deadline_at", TIME_ENDS)
def test_a_dead_letter_of_any_times_has_an_answer(gateway: Gateway, sent_at: str, deadline_at: str) -> None:
    for times in ({"deadline_at": deadline_at}, status(created_at=sent_at, deadline_at=deadline_at)):
        code, _ = redrive(gateway, message(status=times), sender="AIDABOB", sent_at=sent_at)
        assert code in {200, 409}


def test_an_envelope_that_grew_too_large_gets_a_claim_check(gateway: Gateway) -> None:
    body = message(payload={"text": "x" * 1_032_100})
    assert redrive(gateway, body)[0] == 200
    (sent,) = gateway.messages("infer")
    assert sent["payload"] is None
    assert clients.s3().head_object(Bucket=BUCKET, Key=sent["headers"]["x-asya-payload-ref"]["key"])


def test_the_claim_check_of_a_dead_letter_stays(gateway: Gateway) -> None:
    reference = {"key": f"payloads/ab/{'ab' * 32}.json", "size": 2_000_000, "sha256": "ab" * 32}
    assert redrive(gateway, message(headers={"x-asya-payload-ref": reference}, payload=None))[0] == 200
    assert gateway.messages("infer")[0]["headers"]["x-asya-payload-ref"] == reference


def test_an_oversized_envelope_is_refused_before_its_task_is_reopened(gateway: Gateway) -> None:
    gateway.failed()
    body = message(headers={"long": "x" * 1_040_000})
    assert redrive(gateway, body)[0] == 413
    task = gateway.tasks.read("env-1", NOW)
    assert task is not None
    assert (task.status, gateway.messages("infer")) == ("failed", [])


@pytest.mark.parametrize(
    ("actor", "query", "code", "field"),
    [
        ("", {}, 400, "actor"),
        ("nobody", {}, 404, "actor"),
        ("x-reports", {"sender": ""}, 400, "sender"),
        ("infer", {"sender": ""}, 400, "sender"),
        ("infer", {"message_id": ""}, 400, "message_id"),
        ("infer", {"sent_at": "yesterday"}, 400, "sent_at"),
    ],
)
def test_requests_that_are_refused_name_the_parameter(
    gateway: Gateway, actor: str, query: dict[str, str], code: int, field: str
) -> None:
    refused, body = redrive(gateway, message(), actor, **query)
    assert (refused, body["error"]["field"]) == (code, field)
    assert gateway.messages("infer") == []


@pytest.mark.parametrize(("error", "code"), [(NotSentError("no"), "not_sent"), (MaybeSentError("?"), "maybe_sent")])
def test_a_queue_that_does_not_take_the_message_is_told(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    def send(*_: object, **_more: object) -> None:
        raise error

    monkeypatch.setattr(SubmissionSender, "send", send)
    gateway.failed()
    status_code, body = redrive(gateway, message())
    assert (status_code, body["error"]["code"]) == (503, code)


def test_a_payload_that_cannot_be_stored_reopens_nothing(gateway: Gateway) -> None:
    gateway.failed()
    clients.s3().delete_bucket(Bucket=BUCKET)
    assert redrive(gateway, message(payload={"text": "x" * 1_032_100}))[0] == 503
    task = gateway.tasks.read("env-1", NOW)
    assert task is not None
    assert task.status == "failed"
    with pytest.raises(ClientError):
        clients.s3().head_bucket(Bucket=BUCKET)


@pytest.mark.rule("12.redrive.reports")
def test_a_dead_letter_of_reports_goes_back_with_its_first_sender(gateway: Gateway) -> None:
    body = b'[{"id": "env-1", "status": "succeeded"}]'
    assert redrive(gateway, body, "x-ends", sender="AROASINK") == (200, {"id": None, "generation": None})
    received = clients.sqs().receive_message(
        QueueUrl=clients.sqs().get_queue_url(QueueName="asya-shop-x-ends")["QueueUrl"], MessageAttributeNames=["All"]
    )
    (sent,) = received["Messages"]
    assert sent["Body"].encode() == body
    assert sent["MessageAttributes"]["asya-first-sender"]["StringValue"] == "AROASINK"
