"""The kept payloads of a task's hops, over emulated tables and buckets (`protocol §13`, payloads)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from asya.capabilities.operations import payloads
from asya.function.aws import clients
from asya.protocol.envelope import Route
from tests.doubles.api_function import ALICE, BUCKET, NOW, RESULTS, ApiFunction, emulated_shop
from tests.doubles.envelopes import mesh, message, status
from tests.doubles.tasks import event
from tests.unit.memory_tables import memory_tables

OPERATOR = {"userArn": "arn:aws:iam::123456789012:user/oscar", "userId": "AIDAOSCAR"}
BOB = {"userArn": "arn:aws:iam::123456789012:user/bob", "userId": "AIDABOB"}
MESH = mesh(operators=(OPERATOR["userArn"],))
LAST = {"prev": ["prep", "infer"], "curr": "post", "next": []}
ENDED = {"prev": ["prep", "infer", "post"], "curr": "", "next": []}


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiFunction]:
    with memory_tables(), emulated_shop(monkeypatch):
        yield ApiFunction(MESH)


def put(key: str, body: bytes) -> None:
    clients.s3().put_object(Bucket=BUCKET, Key=key, Body=body)


def report(gateway: ApiFunction, *events: Any) -> None:
    gateway.tasks.report(list(events), NOW, may_create=True)


def kept(gateway: ApiFunction, hop: str = "", iam: dict[str, str] = ALICE) -> tuple[int, Any]:
    return gateway.get("/api/v1/mesh/env-1/payloads" + (f"/{hop}" if hop else ""), iam)


def succeeded(gateway: ApiFunction) -> None:
    report(gateway, event("env-1", "registered", owner="AIDAALICE"))
    route = Route(("prep", "infer", "post"), "", ())
    report(
        gateway,
        event(
            "env-1",
            "succeeded",
            3,
            9,
            route=route,
            actor="post",
            result_uri=f"s3://{BUCKET}/{RESULTS}succeeded/env-1.json",
        ),
    )
    put(f"{RESULTS}succeeded/env-1.json", message(route=ENDED, payload={"total": 3}))


@pytest.mark.rule("13.payloads")
def test_the_owner_reads_payloads_before_and_after_hops(gateway: ApiFunction) -> None:
    succeeded(gateway)
    put("hops/env-1/0/1.infer.json", message(payload={"total": 1}))
    put("hops/env-1/0/2.post.json", message(route=LAST, payload={"total": 2}))
    code, listed = kept(gateway)
    assert (code, [(hop["hop"], hop["before"], hop["after"]) for hop in listed["items"]]) == (
        200, [(0, False, True), (1, True, True), (2, True, True)],
    )  # fmt: skip
    code, hop = kept(gateway, "2")
    assert (code, json.loads(hop["before"]["text"]), json.loads(hop["after"]["text"])) == (
        200,
        {"total": 2},
        {"total": 3},
    )
    assert hop["before"]["uri"] == f"s3://{BUCKET}/hops/env-1/0/2.post.json"
    assert kept(gateway, "0")[1]["before"] is None
    assert kept(gateway, "4")[0] == 404


@pytest.mark.rule("13.payloads.access")
def test_payloads_of_others_are_not_found_and_operators_need_no_record(gateway: ApiFunction) -> None:
    put("dlq/env-1/0/1.json", message())
    assert kept(gateway)[0] == 404
    code, listed = kept(gateway, iam=OPERATOR)
    assert (code, [(hop["hop"], hop["actor"]) for hop in listed["items"]]) == (200, [(0, "prep"), (1, "infer")])
    succeeded(gateway)
    assert (kept(gateway, iam=BOB)[0], kept(gateway, "1", BOB)[0], kept(gateway)[0]) == (404, 404, 200)
    assert gateway.get("/api/v1/mesh/nobody/payloads", OPERATOR)[0] == 404


@pytest.mark.rule("13.payloads.actors", "12.input.counts")
def test_an_input_is_shown_as_that_of_the_actor_in_its_key(gateway: ApiFunction) -> None:
    forged = {"prev": ["prep"], "curr": "infer", "next": ["nowhere"]}
    put("hops/env-1/0/1.eve.json", message(route=forged, payload="forged"))
    _, listed = kept(gateway, iam=OPERATOR)  # without a record nothing else tells
    assert [(hop["hop"], hop["actor"], hop["before"]) for hop in listed["items"]] == [
        (0, "prep", False),
        (1, "eve", True),
    ]
    before = kept(gateway, "1", OPERATOR)[1]["before"]
    assert (before["text"], "is not the input that its key names" in before["problem"]) == ("", True)
    put("hops/env-1/0/1.infer.json", message())
    assert kept(gateway, iam=OPERATOR)[0] == 404  # which of both had the hop is unknown
    put("dlq/env-1/0/1.json", message())
    assert [hop["actor"] for hop in kept(gateway, iam=OPERATOR)[1]["items"]] == ["prep", "infer"]
    succeeded(gateway)
    put("hops/env-1/9/1.infer.json", message(headers={"x-asya-generation": 9}, payload="of no generation"))
    code, hop = kept(gateway, "1")
    assert (code, hop["actor"], hop["generation"], json.loads(hop["before"]["text"])) == (
        200,
        "infer",
        0,
        {"text": "hello"},
    )
    put("hops/env-1/0/1.infer.json", message(headers={"x-asya-payload-ref": {"key": "payloads/post/a"}}, payload=None))
    assert "refers to a payload" in kept(gateway, "1")[1]["before"]["problem"]


def test_the_payload_before_a_failure_is_that_of_its_result(gateway: ApiFunction) -> None:
    uri = f"s3://{BUCKET}/{RESULTS}failed/env-1.json"
    put(f"{RESULTS}failed/env-1.json", message(status=status(phase="failed")))
    report(gateway, event("env-1", "failed", 1, 9, owner="AIDAALICE", reason="KeyError", result_uri=uri))
    assert json.loads(kept(gateway, "1")[1]["before"]["text"]) == {"text": "hello"}


@pytest.mark.rule("13.payloads.limits")
def test_a_large_payload_is_cut_and_a_larger_one_is_named_only(
    gateway: ApiFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeeded(gateway)
    put("hops/env-1/0/1.infer.json", message(payload="x" * payloads.TEXT_LIMIT))
    before = kept(gateway, "1")[1]["before"]
    assert (before["truncated"], len(before["text"])) == (True, payloads.TEXT_LIMIT)
    monkeypatch.setattr("asya.capabilities.operations.aws.kept_payloads.READ_LIMIT", 1000)
    before = kept(gateway, "1")[1]["before"]
    assert (before["truncated"], before["text"], before["size"] > payloads.TEXT_LIMIT) == (True, "", True)


def test_a_claim_check_is_redeemed_and_a_lost_one_is_a_problem(gateway: ApiFunction) -> None:
    succeeded(gateway)
    body = b'{"large": true}'
    digest = "6f1ab0b1d0c5f4a1c0c3b0f2d8a9e7c6b5a4d3e2f1a0b9c8d7e6f5a4b3c2d1e0"
    headers = {"x-asya-payload-ref": {"key": f"payloads/infer/6f/{digest}.json", "size": len(body), "sha256": digest}}
    put("dlq/env-1/0/1.json", message(headers=headers, payload=None))
    assert "does not exist" in kept(gateway, "1")[1]["before"]["problem"]
    put("hops/env-1/0/2.post.json", b"no envelope")
    assert kept(gateway, "2")[1]["before"]["text"] == ""


def test_a_record_cannot_lead_to_another_bucket(gateway: ApiFunction) -> None:
    clients.s3().create_bucket(Bucket="elsewhere")
    clients.s3().put_object(Bucket="elsewhere", Key="x.json", Body=message(route=ENDED))
    report(gateway, event("env-1", "succeeded", 3, 9, owner="AIDAALICE", result_uri="s3://elsewhere/x.json"))
    assert kept(gateway) == (200, {"items": []})
