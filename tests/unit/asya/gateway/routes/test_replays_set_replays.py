"""Replays of origins whose set failed, over emulated tables, buckets and queues (`protocol §12`)."""

from collections.abc import Iterator
from typing import Any

import pytest

from asya.capabilities.fan_in.aws.sets import SetRepeats, SetTimes
from asya.capabilities.fan_in.sets import SetRepeat, record_id
from asya.function.aws import clients
from asya.protocol import ids
from asya.protocol.codec import decode
from tests.doubles.api_function import ALICE, BUCKET, NOW, RESULTS, emulated_shop
from tests.doubles.envelopes import message, raw, status
from tests.doubles.tasks import event
from tests.unit.asya.gateway.routes.test_replays import OPERATOR, Gateway
from tests.unit.memory_tables import memory_tables

FAILED = status(phase="failed", reason="SliceFailed", deadline_at="2026-11-20T12:04:00Z")
ROUTE = {"prev": ["prep", "split"], "curr": "x-fan-in", "next": ["post"]}
SET = ids.set_id("env-1", 0, 1)
FRAMES = "buffered/split/env-1/0/1.json"
HEADER = {
    "actor": "x-fan-in", "set_id": SET, "origin_id": "env-1", "slice_index": 0, "slice_count": 5, "aggregation_key": "/r",
}  # fmt: skip
OUTER = HEADER | {"origin_id": "outer-1", "slice_index": 1}


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    with memory_tables(), emulated_shop(monkeypatch, "x-fan-in"):
        yield Gateway()


def fail_set(gateway: Gateway, *, arrived: set[int] | None = None, frames: str | None = FRAMES, **members: Any) -> None:
    """The set of `env-1` of Alice has failed; of its slices 1 to 4 some have arrived."""
    gateway.report(event("env-1", "registered", owner="AIDAALICE"), event("env-1", "received", 2))
    gateway.report(event("env-1", "failed", 2, 9, reason="SliceFailed"))
    known = {"route": ROUTE, "status": FAILED, "headers": {"tenant": "acme"}}
    gateway.put(f"{RESULTS}failed/env-1.json", message(**known | members))
    if frames is not None:
        gateway.put(frames, b"[]")
    if arrived is not None:
        gateway.sets.count(SET, 5, arrived=arrived, actor="x-fan-in", times=SetTimes(NOW, 2e9))


def recorded(sent: Any) -> SetRepeat | None:
    records = SetRepeats(clients.dynamodb(), table="asya-shop-fan-in")
    return records.load(record_id(decode(bytes(raw(sent)))))


def forget_keys() -> None:
    """Remove the idempotency keys, as if they had expired."""
    table = "asya-shop-tasks"
    for item in clients.dynamodb().scan(TableName=table)["Items"]:
        if item["pk"]["S"].startswith("KEY#"):
            clients.dynamodb().delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})


@pytest.mark.rule("12.set")
def test_the_fan_in_actor_repeats_the_fan_out(gateway: Gateway) -> None:
    fail_set(gateway, arrived={0, 1, 3})
    code, body = gateway.post("env-1", "replay", iam=ALICE)
    assert (code, body["replay_of"], body["source"]) == (201, "env-1", f"s3://{BUCKET}/{FRAMES}")
    assert body["slices"] == {"total": 4, "copied": 0, "again": None}
    (sent,) = gateway.messages("x-fan-in")
    assert (sent["id"], sent["route"]) == (body["id"], ROUTE)
    assert sent["headers"]["x-asya-set-repeat"] is True
    assert (sent["headers"]["tenant"], sent["headers"]["x-asya-replay-of"]) == ("acme", "env-1")
    assert sent["status"]["deadline_at"] == "2026-11-20T12:05:00.000000Z"
    assert recorded(sent) == SetRepeat(origin_id="env-1", generation=0, position=1, keeps_results=False)
    new = gateway.tasks.read(body["id"], NOW)
    assert new is not None
    assert (new.status, new.owner) == ("pending", "AIDAALICE")


@pytest.mark.rule("12.set")
@pytest.mark.parametrize(
    ("frames", "members"),
    [
        # The set was repeated before, and the fan-in actor has stored its frames.
        ("buffered/x-fan-in/env-1/0/1.json", {}),
        ("buffered/free/env-1/0/1.json", {"headers": {"x-asya-route-override": {"split": "free"}}}),
    ],
)
def test_the_frames_are_found_where_their_writer_has_stored_them(
    gateway: Gateway, frames: str, members: dict[str, Any]
) -> None:
    fail_set(gateway, arrived={0, 1, 3}, frames=frames, **members)
    code, body = gateway.post("env-1", "replay", iam=ALICE)
    assert (code, body["source"]) == (201, f"s3://{BUCKET}/{frames}")


@pytest.mark.rule("12.failed-only")
def test_the_answer_names_the_slices_that_run_again(gateway: Gateway) -> None:
    fail_set(gateway, arrived={0, 1, 3})
    code, body = gateway.post("env-1", "replay", {"failed_only": True}, iam=ALICE)
    assert (code, body["slices"]) == (201, {"total": 4, "copied": 2, "again": [2, 4]})
    (sent,) = gateway.messages("x-fan-in")
    assert recorded(sent) == SetRepeat(origin_id="env-1", generation=0, position=1, keeps_results=True)


@pytest.mark.rule("12.set")
@pytest.mark.slow
def test_a_repeated_call_finds_the_task_of_the_first(gateway: Gateway) -> None:
    fail_set(gateway, arrived={0, 1})
    new_ids = {gateway.post("env-1", "replay", {"failed_only": True}, iam=ALICE)[1]["id"] for _ in range(3)}
    assert len(new_ids) == 1
    assert len(gateway.messages("x-fan-in")) == 1
    gateway.report(event(*new_ids, "failed", 2, 30, reason="SliceFailed"))
    code, body = gateway.post("env-1", "replay", {"failed_only": True}, iam=ALICE)
    assert (code, body["id"] in new_ids) == (201, False)
    code, refused = gateway.post("env-1", "replay", {}, iam=ALICE)  # all slices, while some of them run
    assert (code, refused["error"]["code"]) == (409, "replayed")
    assert gateway.post("env-1", "replay", {"force": True}, iam=ALICE)[1]["id"] not in {*new_ids, body["id"]}


@pytest.mark.rule("12.link", "13.resolution")
def test_the_set_and_its_slices_are_settled_with_the_replay(gateway: Gateway) -> None:
    fail_set(gateway, arrived={0, 1})
    lost = {"parent_id": "env-1", "root_id": "env-1", "reason": "RuntimeError"}
    gateway.report(event("slice-2", "failed", 2, 8, set_id=SET, **lost), event("other", "failed", 2, 8, **lost))
    assert _open(gateway) == {"env-1", "slice-2", "other"}
    new_id = gateway.post("env-1", "replay", {"failed_only": True})[1]["id"]
    assert _open(gateway) == {"other"}  # a child that is no slice
    code, body = gateway.post("slice-2", "dismiss", {"reason": "test"})
    assert (code, body["error"]["code"], new_id in body["error"]["message"]) == (409, "replayed", True)
    gateway.report(event(new_id, "failed", 2, 30, reason="SliceFailed"))
    assert _open(gateway) == {"other", new_id}
    assert gateway.post(new_id, "dismiss", {"reason": "a test"})[0] == 200
    assert _open(gateway) == {"other"}
    shown = gateway.tasks.read("slice-2", NOW)
    assert shown is not None
    assert shown.resolution is not None
    assert (shown.resolution.how, shown.resolution.reason) == ("dismissed", "a test")


@pytest.mark.rule("13.resolution")
def test_a_set_that_merged_without_a_slice_overtakes_its_failure(gateway: Gateway) -> None:
    gateway.report(event("env-1", "received", 2))
    lost = {"parent_id": "env-1", "root_id": "env-1", "reason": "RuntimeError"}
    gateway.report(event("slice-2", "failed", 2, 8, set_id=SET, **lost), event("other", "failed", 2, 8, **lost))
    assert _open(gateway) == {"slice-2", "other"}
    gateway.report(event("env-1", "succeeded", 2, 9))
    assert _open(gateway) == {"other"}
    shown = gateway.tasks.read("slice-2", NOW)
    assert shown is not None
    assert shown.resolution is not None
    assert (shown.resolution.how, shown.resolution.task) == ("overtaken", "env-1")


@pytest.mark.rule("12.replay.key")
def test_a_repeated_key_repeats_a_set_once(gateway: Gateway) -> None:
    fail_set(gateway, arrived={0, 1})
    key = {"headers": {"idempotency-key": "k-1"}}

    def replay() -> str:
        code, body = gateway.post_to("/api/v1/mesh/env-1/replay", {"id": "env-1"}, "{}", ALICE, key)
        assert code == 201, body
        return str(body["id"])

    new_id = replay()
    assert replay() == new_id
    gateway.report(event(new_id, "failed", 2, 30, reason="SliceFailed"))
    assert replay() == new_id
    assert len(gateway.messages("x-fan-in")) == 1


def _open(gateway: Gateway) -> set[str]:
    query = {"queryStringParameters": {"status": "failed"}}
    return {task["id"] for task in gateway.request("GET", "/api/v1/mesh", {}, "", OPERATOR, query)[1]["items"]}


@pytest.mark.rule("12.set.owner")
@pytest.mark.parametrize("is_sent", [True, False])
def test_another_caller_neither_joins_nor_disturbs_a_replay(gateway: Gateway, is_sent: bool) -> None:
    fail_set(gateway, arrived={0, 1})
    new_id = gateway.post("env-1", "replay")[1]["id"]
    if not is_sent:  # the call of the operator died before it marked its key
        forget_keys()
    code, body = gateway.post("env-1", "replay", iam=ALICE)
    assert (code, body["error"]["code"]) == (409, "replayed_by_another")
    assert len(gateway.messages("x-fan-in")) == 1
    task = gateway.tasks.read(new_id, NOW)
    assert task is not None
    assert task.owner == "AIDAOSCAR"


@pytest.mark.rule("12.set.owner")
def test_a_replay_that_runs_is_not_sent_again(gateway: Gateway) -> None:
    fail_set(gateway, arrived={0, 1})
    new_id = gateway.post("env-1", "replay")[1]["id"]
    forget_keys()
    gateway.report(event(new_id, "received", 2, 20))
    assert gateway.post("env-1", "replay")[1]["id"] == new_id
    assert len(gateway.messages("x-fan-in")) == 1


@pytest.mark.rule("12.set")
def test_a_provisional_failure_starts_no_second_replay(gateway: Gateway) -> None:
    fail_set(gateway, arrived={0, 1})
    new_id = gateway.post("env-1", "replay")[1]["id"]
    gateway.report(event(new_id, "failed", 2, 30, reason="Timeout", provisional=True))
    assert gateway.post("env-1", "replay")[1]["id"] == new_id
    assert len(gateway.messages("x-fan-in")) == 1


@pytest.mark.rule("12.failed-only")
def test_results_that_have_expired_are_named(gateway: Gateway) -> None:
    fail_set(gateway)
    code, body = gateway.post("env-1", "replay", {"failed_only": True})
    assert (code, body["error"]["code"]) == (409, "set_expired")
    assert "no longer stored" in body["error"]["message"]
    assert gateway.post("env-1", "replay")[1]["slices"] == {"total": None, "copied": 0, "again": None}


@pytest.mark.rule("12.set")
@pytest.mark.slow
def test_frames_that_are_not_stored_are_named(gateway: Gateway) -> None:
    fail_set(gateway, arrived={0}, frames=None)
    code, body = gateway.post("env-1", "replay")
    assert (code, body["error"]["code"]) == (409, "nothing_to_replay")
    assert "hop 1 ('split')" in body["error"]["message"]


def test_a_fan_out_before_a_redrive_is_found(gateway: Gateway) -> None:
    fail_set(gateway, arrived={0}, headers={"x-asya-generation": 3})
    code, body = gateway.post("env-1", "replay", {"failed_only": True})
    assert (code, body["source"]) == (201, f"s3://{BUCKET}/{FRAMES}")


def test_the_dead_letter_of_an_origin_is_replayed_as_its_set(gateway: Gateway) -> None:
    fail_set(gateway, arrived={1}, headers={"x-asya-fan-in": HEADER})
    assert gateway.post("env-1", "replay", {"failed_only": True})[0] == 201
    (sent,) = gateway.messages("x-fan-in")
    assert "x-asya-fan-in" not in sent["headers"]


@pytest.mark.rule("12.slice")
@pytest.mark.parametrize("header", [OUTER | {"slice_index": 2}, HEADER | {"outer": OUTER}])
@pytest.mark.parametrize("failed_only", [False, True])
def test_a_slice_is_refused_at_its_fan_in_actor_too(
    gateway: Gateway, header: dict[str, Any], failed_only: bool
) -> None:
    fail_set(gateway, arrived={1}, headers={"x-asya-fan-in": header})
    code, body = gateway.post("env-1", "replay", {"failed_only": failed_only})
    assert (code, body["error"]["code"]) == (409, "slice")
    assert "`asya replay outer-1 --failed-only`" in body["error"]["message"]


@pytest.mark.rule("12.failed-only")
def test_failed_only_needs_a_failed_set(gateway: Gateway) -> None:
    gateway.failed("RuntimeError")
    gateway.put(f"{RESULTS}failed/env-1.json", message(status=status(phase="failed", reason="RuntimeError")))
    code, body = gateway.post("env-1", "replay", {"failed_only": True})
    assert (code, body["error"]["code"]) == (409, "not_a_set")
    for other in ({"hop": 1}, {"checkpoint": 1}):
        assert gateway.post("env-1", "replay", {"failed_only": True} | other)[0] == 400
