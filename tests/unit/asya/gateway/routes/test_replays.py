"""Replay, over emulated tables, buckets and queues (`protocol §12`)."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.function.aws import clients
from asya.protocol.envelope import Route
from asya.protocol.mesh_table import Actor, MeshTable
from tests.doubles.api_function import ALICE, BUCKET, NOW, RESULTS, ApiFunction, emulated_shop
from tests.doubles.envelopes import mesh, message, raw, status
from tests.doubles.tasks import event
from tests.unit.memory_tables import memory_tables

OPERATOR = {"userArn": "arn:aws:iam::123456789012:user/oscar", "userId": "AIDAOSCAR"}
MESH = mesh({"x-fan-in": Actor(kind="fan_in")}, operators=(OPERATOR["userArn"],))


AT_INFER = {"route": Route(("prep",), "infer", ("post",)), "actor": "infer"}
"""Reports of the hop of `message()`."""


@dataclass
class Gateway(ApiFunction):
    """The API function, and the earlier state of the mesh."""

    table: MeshTable = MESH

    def post(self, task_id: str, call: str, body: object = None, iam: dict[str, str] = OPERATOR) -> tuple[int, Any]:
        return self.call(task_id, call, {} if body is None else body, iam)

    @property
    def sets(self) -> FanInSets:
        return FanInSets(clients.dynamodb(), table="asya-shop-fan-in")

    def report(self, *events: Any) -> None:
        self.tasks.report(list(events), NOW, may_create=True)

    def failed(self, reason: str = "DeliveryExhausted", **more: Any) -> None:
        """The task `env-1` of Alice has failed at hop 1."""
        self.report(event("env-1", "registered", owner="AIDAALICE"), event("env-1", "received", 1, **AT_INFER))
        self.report(event("env-1", "failed", 1, 9, reason=reason, **(AT_INFER | more)))

    def put(self, key: str, body: bytes) -> None:
        clients.s3().put_object(Bucket=BUCKET, Key=key, Body=body)


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    with memory_tables(), emulated_shop(monkeypatch, "infer", "post"):
        yield Gateway()


def later(generation: int, **members: Any) -> bytes:
    """An envelope of a later generation."""
    return message(headers={"x-asya-generation": generation}, **members)


FAILED = status(phase="failed", reason="RuntimeError", deadline_at="2026-11-20T12:04:00Z")


@pytest.mark.rule("12.old-task")
def test_a_failure_is_replayed_as_a_task_of_its_own(gateway: Gateway) -> None:
    uri = f"s3://{BUCKET}/{RESULTS}error-asya/t/infer/env-1.json"
    gateway.failed("RuntimeError", result_uri=uri)
    gateway.put(f"{RESULTS}error-asya/t/infer/env-1.json", message(status=FAILED))
    before = gateway.tasks.read("env-1", NOW)
    code, body = gateway.post("env-1", "replay", iam=ALICE)
    assert (code, body["replay_of"], body["source"]) == (201, "env-1", uri)
    (sent,) = gateway.messages("infer")
    assert (sent["id"], sent["headers"]["x-asya-replay-of"]) == (body["id"], "env-1")
    assert sent["status"]["deadline_at"] == "2026-11-20T12:05:00.000000Z"
    assert sent["payload"] == {"text": "hello"}
    new = gateway.tasks.read(body["id"], NOW)
    assert new is not None
    assert (new.status, new.owner, new.deadline_at) == ("pending", "AIDAALICE", "2026-11-20T12:05:00.000000Z")
    old = gateway.tasks.read("env-1", NOW)
    assert old is not None
    assert old.resolution is not None
    assert replace(old, resolution=None) == before


@pytest.mark.rule("12.replay.where")
def test_replays_start_from_kept_hops_checkpoints_and_dead_letters_too(gateway: Gateway) -> None:
    gateway.failed(generation=1)
    post = {"prev": ["prep", "infer"], "curr": "post", "next": []}
    at_post = status(actor="post")
    gateway.put("hops/env-1/0/2.post.json", message(route=post, status=at_post, payload="hop"))
    gateway.put("hops/env-1/1/2.post.json", later(1, route=post, status=at_post, payload="later hop"))
    gateway.put("hops/env-1/2/2.post.json", later(2, route=post, status=at_post, payload="of no generation"))
    gateway.put(f"{RESULTS}checkpoint/env-1/2.json", message(route=post, status=at_post, payload="checkpoint"))
    gateway.put("dlq/env-1/0/1.json", message(payload="dead letter"))
    assert gateway.post("env-1", "replay", {"hop": 2})[0] == 201
    assert [sent["payload"] for sent in gateway.messages("post")] == ["later hop"]
    assert gateway.post("env-1", "replay", {"checkpoint": 2, "force": True})[0] == 201
    assert [sent["payload"] for sent in gateway.messages("post")] == ["checkpoint"]
    assert gateway.post("env-1", "replay", {"force": True})[0] == 201
    assert [sent["payload"] for sent in gateway.messages("infer")] == ["dead letter"]


def test_a_missing_source_is_rejected_with_the_list_of_sources(gateway: Gateway) -> None:
    gateway.failed("RuntimeError")
    gateway.put(f"{RESULTS}sump/env-1.json", message(status=FAILED))
    code, body = gateway.post("env-1", "replay", {"hop": 0})
    assert (code, body["error"]["code"]) == (409, "nothing_to_replay")
    assert body["error"]["message"].endswith("it can be replayed from where it failed")


@pytest.mark.rule("4.claim-check.senders")
def test_a_large_payload_is_loaded_and_stored_again(gateway: Gateway) -> None:
    gateway.failed("RuntimeError")
    large = "x" * (1024 * 1024)
    gateway.put(f"{RESULTS}failed/env-1.json", message(status=FAILED, payload=large))
    assert gateway.post("env-1", "replay")[0] == 201
    (sent,) = gateway.messages("infer")
    reference = sent["headers"]["x-asya-payload-ref"]
    assert (sent["payload"], reference["key"].startswith("inbox/")) == (None, True)
    assert clients.s3().get_object(Bucket=BUCKET, Key=reference["key"])["Body"].read() == bytes(raw(large))
    gateway.put("dlq/env-1/0/1.json", json.dumps(sent | {"id": "env-1"}).encode())


@pytest.mark.rule("12.input.content", "12.input.counts")
def test_a_forged_input_starts_nothing(gateway: Gateway) -> None:
    """Neither one of another actor than the record names, nor one that says another actor or payload than its own."""
    gateway.failed()
    clients.s3().put_object(Bucket=BUCKET, Key="payloads/infer/a.json", Body=b"1")
    reference = {"key": "payloads/infer/a.json", "size": 1, "sha256": hashlib.sha256(b"1").hexdigest()}
    for name, members, code in (
        ("1.post", {"route": {"prev": ["prep"], "curr": "post", "next": []}}, "nothing_to_replay"),
        ("1.infer", {"route": {"prev": ["prep"], "curr": "post", "next": []}}, "input_mismatch"),
        ("1.infer", {"id": "env-2"}, "input_mismatch"),
        ("1.infer", {"headers": {"x-asya-payload-ref": reference}, "payload": None}, "input_mismatch"),
        ("1.infer", {"id": 5}, "unreadable"),
    ):
        gateway.put(f"hops/env-1/0/{name}.json", message(**members))
        status_code, body = gateway.post("env-1", "replay", {"hop": 1})
        assert (status_code, body["error"]["code"]) == (409, code), body
    assert (gateway.messages("infer"), gateway.messages("post")) == ([], [])
    gateway.put("hops/env-1/0/1.infer.json", message())
    assert gateway.post("env-1", "replay", {"hop": 1})[0] == 201


@pytest.mark.parametrize("body", [b"junk", b'{"id": "env-1"}'])
def test_unreadable_sources_are_rejected(gateway: Gateway, body: bytes) -> None:
    gateway.failed("RuntimeError")
    gateway.put(f"{RESULTS}failed/env-1.json", body)
    code, answered = gateway.post("env-1", "replay")
    assert (code, answered["error"]["code"]) == (409, "unreadable")


def test_a_record_cannot_lead_the_gateway_to_another_bucket(gateway: Gateway) -> None:
    clients.s3().create_bucket(Bucket="elsewhere")
    clients.s3().put_object(Bucket="elsewhere", Key="x.json", Body=message(status=FAILED))
    gateway.failed("RuntimeError", result_uri="s3://elsewhere/x.json")
    assert gateway.post("env-1", "replay")[0] == 409


def test_tasks_of_others_are_not_found_but_operators_replay_without_a_record(gateway: Gateway) -> None:
    gateway.put(f"{RESULTS}failed/env-1.json", message(status=FAILED))
    assert gateway.post("env-1", "replay", iam=ALICE)[0] == 404
    assert gateway.post("env-1", "replay", iam=OPERATOR)[0] == 201
    gateway.failed("RuntimeError")
    bob = {"userArn": "arn:aws:iam::123456789012:user/bob", "userId": "AIDABOB"}
    assert gateway.post("env-1", "replay", iam=bob)[0] == 404
