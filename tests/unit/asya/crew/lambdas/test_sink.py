"""protocol §11, x-sink: every end is persisted, then reported, once per id and generation."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from msgspec import Raw

from asya.crew.aws.end_claims import EndClaims
from asya.crew.lambdas.wiring import build_sink
from asya.messaging.aws import clients
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.mesh_table import Actor, Sink
from asya.protocol.times import format_time
from tests.doubles.emf import metric_values, metrics
from tests.doubles.envelopes import mesh, message, status
from tests.doubles.mesh_world import MeshWorld, batch_failures, empty_table, emulated_table, sqs_event
from tests.doubles.sqs import Refusal

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ERROR = {"type": "ValueError", "message": "bad", "mro": [], "traceback": ""}
DONE = {"prev": ["prep", "infer"], "curr": "", "next": []}


@pytest.fixture(scope="module")
def client() -> "Iterator[DynamoDBClient]":
    with emulated_table("sink") as made:
        yield made


@pytest.fixture(autouse=True)
def claims(world: MeshWorld, client: "DynamoDBClient", monkeypatch: pytest.MonkeyPatch) -> None:
    empty_table(client, "sink")
    monkeypatch.setattr(clients, "dynamodb", lambda: client)


def ended(phase: str = "succeeded", **members: Any) -> bytes:
    reason = {"succeeded": "Completed", "failed": "RuntimeError", "canceled": "Canceled", "paused": "Paused"}[phase]
    block = status(phase=phase, reason=reason) | ({"error": ERROR} if phase == "failed" else {})
    return message(**({"status": block, "route": DONE} | members))


def run(
    world: MeshWorld,
    *bodies: bytes,
    options: Sink | None = None,
    reporting: bool = True,
    actors: dict[str, Actor] | None = None,
) -> list[str]:
    actor = build_sink(world.services("x-sink", mesh(actors, sink=options or Sink()), reporting=reporting))
    return batch_failures(actor.process(sqs_event(*bodies)))


def results(world: MeshWorld) -> list[str]:
    return [key for key in written(world) if not key.startswith("superseded/")]


def written(world: MeshWorld) -> list[str]:
    return [key.removeprefix("results/") for key in world.s3.keys("results/")]


@pytest.mark.rule("11.sink.order")
def test_a_success_is_written_whole_then_reported_with_its_address(world: MeshWorld) -> None:
    seen: list[list[str]] = []
    world.gateway.watch = lambda path, body: seen.append(results(world))
    assert run(world, ended(payload={"answer": 42})) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert json.loads(world.s3.content("results/succeeded/env-1.json"))["payload"] == {"answer": 42}
    (event,) = world.gateway.events
    assert (event.status, event.data.result_uri) == (
        "succeeded",
        "s3://asya-shop-123456789012-eu-west-1/results/succeeded/env-1.json",
    )
    assert seen == [["succeeded/env-1.json"]]  # it was there before it was told
    assert world.targets == []


def test_a_failure_is_written_reported_and_handed_to_x_sump(world: MeshWorld) -> None:
    assert run(world, ended("failed")) == []
    assert results(world) == ["failed/env-1.json"]
    assert world.gateway.reported("env-1") == ["failed"]
    assert world.targets == ["x-sump"]


@pytest.mark.rule("11.sink.at-rest")
@pytest.mark.parametrize("phase", ["canceled", "paused"])
def test_canceled_and_paused_are_written_but_not_reported_again(world: MeshWorld, phase: str) -> None:
    assert run(world, ended(phase)) == []
    assert results(world) == [f"{phase}/env-1.json"]
    assert world.gateway.events == []
    assert world.targets == []


def test_what_was_paused_may_still_end(world: MeshWorld) -> None:
    assert run(world, ended("paused"), ended("succeeded")) == []
    assert results(world) == ["paused/env-1.json", "succeeded/env-1.json"]
    assert world.gateway.reported("env-1") == ["succeeded"]


@pytest.mark.rule("11.sink.claim", "11.sink.superseded")
@pytest.mark.parametrize(
    ("first", "later"), [("failed", "succeeded"), ("succeeded", "canceled"), ("canceled", "succeeded")]
)
def test_another_end_of_the_same_id_is_kept_and_not_reported(world: MeshWorld, first: str, later: str) -> None:
    for _ in range(2):
        assert run(world, ended(first, payload=1)) == []
        assert run(world, ended(later, payload=2)) == []
    assert results(world) == [f"{first}/env-1.json"]
    (key,) = [key for key in written(world) if key.startswith("superseded/")]
    assert key.startswith(f"superseded/env-1/0/2-{later}-")
    assert json.loads(world.s3.content(f"results/{key}"))["payload"] == 2
    assert set(world.gateway.reported("env-1")) <= {first}


@pytest.mark.rule("11.sink.superseded")
def test_refused_ends_with_other_contents_have_other_keys(world: MeshWorld) -> None:
    run(world, ended("failed"), ended(payload=1), ended(payload=2), ended(payload=2, headers={"note": "b"}))
    assert len([key for key in written(world) if key.startswith("superseded/")]) == 3


def failure_at(actor: str, **members: Any) -> bytes:
    block = status(phase="failed", reason="RuntimeError", actor=actor, error=ERROR)
    return ended("failed", status=block, route={"prev": ["prep"], "curr": actor, "next": []}, **members)


FAN = {
    "many": Actor(kind="handler", handler="h.many"),
    "one": Actor(kind="handler", handler="h.one", gives_one_frame=True),
    "job": Actor(kind="spark"),
    "merge": Actor(kind="fan_in"),
}


@pytest.mark.rule("11.sink.failed-child")
@pytest.mark.parametrize("actor", ["many", "job", "unknown"])
def test_a_refused_failure_leaves_as_a_failed_child(world: MeshWorld, actor: str) -> None:
    fan_in = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2}
    options = Sink(hooks=("many",))
    assert run(world, ended(), actors=FAN) == []
    late = failure_at(actor, payload="input", headers={"x-asya-fan-in": fan_in | {"aggregation_key": "/r"}, "note": 1})
    for _ in range(2):
        assert run(world, late, options=options, actors=FAN) == []
    assert {decode(sent.body.encode()).id for sent in world.messages("x-sump")} == {
        ids.child_id("env-1", 0, 1, "error")
    }
    child = decode(world.messages("x-sump")[0].body.encode())
    assert (child.parent_id, child.root_id, sorted(child.headers)) == ("env-1", "env-1", ["note", "x-asya-root"])
    assert (child.status and child.status.reason, bytes(child.payload)) == ("RuntimeError", b'"input"')
    assert set(world.targets) == {"x-sump"}
    assert written(world) == ["succeeded/env-1.json"]
    assert world.gateway.reported("env-1") == ["succeeded"]


@pytest.mark.rule("11.sink.failed-child")
@pytest.mark.parametrize("actor", ["one", "merge", "x-sump"])
def test_a_refused_failure_of_a_hop_with_one_frame_is_no_failure(world: MeshWorld, actor: str) -> None:
    assert run(world, ended(), failure_at(actor), actors=FAN) == []
    assert world.targets == []
    assert [key.partition("-failed-")[0] for key in written(world)] == ["succeeded/env-1.json", "superseded/env-1/0/1"]


@pytest.mark.rule("11.sink.superseded")
def test_an_end_that_cannot_be_kept_stays_on_the_queue(world: MeshWorld) -> None:
    assert run(world, ended("failed")) == []
    world.s3.fails = lambda operation, key: "superseded/" in key
    assert run(world, ended()) == ["message-0"]


@pytest.mark.rule("11.sink.stale")
@pytest.mark.parametrize("phase", ["succeeded", "failed", "canceled"])
def test_a_stale_end_is_kept_and_ends_nothing(world: MeshWorld, client: "DynamoDBClient", phase: str) -> None:
    client.update_item(
        TableName="asya-shop-sink",
        Key={"pk": {"S": "env-1"}, "sk": {"S": "claim"}},
        UpdateExpression="SET pause_generation = :zero, pause_epoch = :two",
        ExpressionAttributeValues={":zero": {"N": "0"}, ":two": {"N": "2"}},
    )
    assert run(world, ended(phase), actors=FAN | {"infer": FAN["one"]}) == []
    assert [key.partition(f"-{phase}-")[0] for key in written(world)] == ["superseded/env-1/0/2"]
    assert world.gateway.events == []
    assert world.targets == []


@pytest.mark.rule("11.sink.failed-child")
@pytest.mark.parametrize(
    ("actor", "pause_generation", "is_child"), [("many", 0, True), ("one", 0, False), ("many", 1, False)]
)
def test_a_stale_failure_leaves_as_a_failed_child_if_frames_may_be_missing(
    world: MeshWorld, client: "DynamoDBClient", actor: str, pause_generation: int, is_child: bool
) -> None:
    claims = EndClaims(client, "asya-shop-sink", keep_seconds=60)
    assert claims.note_pause("env-1", pause_generation, 2, epoch_seconds=0)
    for _ in range(2):
        assert run(world, failure_at(actor), actors=FAN) == []
    sent = {decode(each.body.encode()).id for each in world.messages("x-sump")}
    assert sent == ({ids.child_id("env-1", 0, 1, "error")} if is_child else set())
    assert len(written(world)) == (0 if is_child else 1)
    assert world.gateway.events == []


@pytest.mark.rule("11.sink.first-object")
def test_the_object_of_an_end_stays_and_is_what_is_reported(world: MeshWorld) -> None:
    assert run(world, ended(payload={"answer": 1})) == []
    assert run(world, ended(payload={"answer": 2}), options=Sink(hooks=("many",)), actors=FAN) == []
    assert json.loads(world.s3.content("results/succeeded/env-1.json"))["payload"] == {"answer": 1}
    assert [event.data.result for event in world.gateway.events] == [Raw(b'{"answer":1}')] * 2
    assert bytes(world.sent("many")[0].payload) == b'{"answer":1}'


@pytest.mark.rule("11.sink.first-object")
def test_an_object_of_another_generation_is_replaced_or_stays(world: MeshWorld, client: "DynamoDBClient") -> None:
    assert run(world, ended(payload=0), ended(payload=1, headers={"x-asya-generation": 1})) == []
    assert json.loads(world.s3.content("results/succeeded/env-1.json"))["payload"] == 1
    empty_table(client, "sink")  # the claim of the later generation has expired
    assert run(world, ended(payload=0)) == []
    assert json.loads(world.s3.content("results/succeeded/env-1.json"))["payload"] == 1
    assert len(written(world)) == 2
    assert len(world.gateway.events) == 2


@pytest.mark.rule("11.sink.moved-object")
def test_a_redrive_that_ends_while_the_object_is_written_wins(world: MeshWorld, client: "DynamoDBClient") -> None:
    late = ended("failed", payload="late")

    def redrive(operation: str, key: str) -> bool:
        if (operation, key) == ("put", "results/failed/env-1.json"):
            world.s3.fails = lambda *_: False
            assert run(world, ended(payload="redriven", headers={"x-asya-generation": 1})) == []
        return False

    world.s3.fails = redrive
    assert run(world, late) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert [(event.status, event.generation) for event in world.gateway.events] == [("succeeded", 1)]
    (key,) = [key for key in written(world) if key.startswith("superseded/")]
    assert json.loads(world.s3.content(f"results/{key}"))["payload"] == "late"
    assert world.targets == []


@pytest.mark.rule("11.sink.moved-object")
def test_an_object_that_was_left_behind_moves_when_its_message_comes_again(world: MeshWorld) -> None:
    late = ended("failed", payload="late")

    def die(operation: str, key: str) -> bool:
        if (operation, key) == ("put", "results/failed/env-1.json"):
            world.s3.fails = lambda *_: False
            assert run(world, ended(payload="redriven", headers={"x-asya-generation": 1})) == []
            world.s3.fails = lambda operation, key: "superseded/" in key
        return False

    world.s3.fails = die
    assert run(world, late) == ["message-0"]
    assert results(world) == ["failed/env-1.json", "succeeded/env-1.json"]
    world.s3.fails = lambda *_: False
    assert run(world, late) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert len(written(world)) == 2


@pytest.mark.rule("11.sink.claim")
def test_a_redelivery_finishes_what_is_missing(world: MeshWorld) -> None:
    world.gateway.item_status["env-1", "succeeded"] = 503
    assert run(world, ended()) == ["message-0"]
    world.gateway.item_status.clear()
    assert run(world, ended()) == []
    assert world.gateway.reported("env-1") == ["succeeded", "succeeded"]


@pytest.mark.rule("5.must-arrive")
@pytest.mark.parametrize(
    ("fault", "is_kept"),
    [(Refusal(), False), (Refusal("call"), True), (Refusal(sender_fault=True), True), (Refusal("silence"), True)],
)
def test_the_report_must_arrive(world: MeshWorld, fault: Refusal, is_kept: bool) -> None:
    if is_kept:
        world.sqs.refuse_always["asya-shop-x-ends"] = fault
    assert run(world, ended(), ended(id="env-2")) == (["message-0", "message-1"] if is_kept else [])


def test_a_batch_is_one_report_message(world: MeshWorld) -> None:
    run(world, *(ended(id=f"env-{n}") for n in range(5)))
    assert world.gateway.messages == [("asya-shop-x-ends", 5)]


@pytest.mark.rule("5.gateway-down")
def test_a_gateway_that_is_down_holds_no_end_up(world: MeshWorld) -> None:
    world.gateway.status = 500
    assert run(world, ended()) == []
    assert world.gateway.reported("env-1") == ["succeeded"]


@pytest.mark.rule("11.sink.claim", "12.newer-object")
def test_a_higher_generation_replaces_and_removes_the_older_object_even_if_it_dies_in_between(world: MeshWorld) -> None:
    redriven = ended("succeeded", headers={"x-asya-generation": 1})
    assert run(world, ended("failed")) == []
    world.s3.fails = lambda operation, key: operation == "delete"
    assert run(world, redriven) == ["message-0"]
    world.s3.fails = lambda operation, key: False
    assert run(world, redriven) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert run(world, ended("failed")) == []
    assert [(event.status, event.generation) for event in world.gateway.events] == [
        ("failed", 0),
        ("succeeded", 1),
        ("succeeded", 1),
    ]


@pytest.mark.rule("11.sink.failed-upload")
def test_an_upload_that_fails_three_times_is_reported_inline_and_the_message_kept(world: MeshWorld) -> None:
    world.s3.fails = lambda operation, key: True
    assert run(world, ended(payload={"answer": 42})) == ["message-0"]
    assert len(world.s3.calls) == 3
    (event,) = world.gateway.events
    assert event.data.result_uri is None
    assert event.data.result == Raw(b'{"answer":42}')
    world.s3.fails = lambda operation, key: False
    assert run(world, ended(payload={"answer": 42})) == []
    assert world.gateway.events[-1].data.result_uri is not None


def test_a_table_that_refuses_keeps_the_message_and_reports_nothing(
    world: MeshWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def update_item(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "UpdateItem")

    monkeypatch.setattr(clients, "dynamodb", Refusing)
    assert run(world, ended()) == ["message-0"]
    assert world.gateway.events == []
    assert results(world) == []


@pytest.mark.rule("11.sink.persist")
def test_without_persistence_it_reports_and_acks(world: MeshWorld) -> None:
    assert run(world, ended(payload=1), options=Sink(persist=False)) == []
    assert results(world) == []
    assert world.gateway.events[0].data.result == Raw(b"1")


def test_a_stealth_envelope_is_persisted_and_claimed_but_not_reported(world: MeshWorld) -> None:
    stealth = {"x-asya-mesh-status": "off"}
    assert run(world, ended(headers=stealth), ended("failed", headers=stealth)) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert world.gateway.events == []


@pytest.mark.rule("9.children", "11.sink.children")
def test_children_are_persisted_and_reported_as_their_own_tasks(world: MeshWorld) -> None:
    child = ended(id="child-1", parent_id="env-1", headers={"x-asya-root": "env-0"})
    assert run(world, child, options=Sink(hooks=("post",))) == []
    (event,) = world.gateway.events
    assert (event.id, event.parent_id, event.root_id) == ("child-1", "env-1", "env-0")
    assert world.targets == []


@pytest.mark.rule("11.hooks")
def test_hooks_get_copies_and_a_hooks_own_end_is_silent(world: MeshWorld) -> None:
    options = Sink(hooks=("post",))
    assert run(world, ended(), options=options) == []
    (copy,) = world.messages("post")
    world.s3.objects.clear()
    world.gateway.events.clear()
    run_of_hook = message(
        **(
            json.loads(copy.body)
            | {"route": {"prev": ["post"], "curr": "", "next": []}, "status": status(phase="succeeded")}
        )
    )
    assert run(world, run_of_hook, options=options) == []
    assert world.gateway.events == []
    assert results(world) == []
    assert world.targets == ["post"]


def test_a_hook_that_cannot_be_told_keeps_the_message(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal()
    assert run(world, ended(), options=Sink(hooks=("post",))) == ["message-0"]


def test_by_time_writes_one_object_however_often_the_end_comes(world: MeshWorld) -> None:
    options = Sink(layout="by-time", succeeded_prefix="happy-asya/", failed_prefix="error-asya/")
    for second in ("45", "46"):
        when = f"2025-11-18T14:30:{second}.123456Z"
        assert run(world, ended(status=status(phase="succeeded", updated_at=when)), options=options) == []
    assert results(world) == ["happy-asya/2025-11-18T14:30:45.123456Z/infer/env-1.json"]


@pytest.mark.rule("5.end-actors")
def test_a_deadline_a_route_or_a_cancellation_is_not_looked_at(world: MeshWorld) -> None:
    late = status(phase="succeeded", deadline_at="2020-01-01T00:00:00Z")
    body = ended(route={"prev": [], "curr": "infer", "next": []}, status=late)
    assert run(world, body) == []
    assert world.gateway.queries == []
    assert world.gateway.reported("env-1") == ["succeeded"]


def test_what_cannot_be_parsed_goes_to_x_sump(world: MeshWorld) -> None:
    assert run(world, b"junk") == []
    assert world.targets == ["x-sump"]


@pytest.mark.rule("4.claim-check.bad-reference", "11.sump.payload")
@pytest.mark.parametrize(("phase", "reason"), [("succeeded", "ParseError"), ("failed", "RuntimeError")])
def test_an_end_whose_payload_is_gone_fails_at_its_position(world: MeshWorld, phase: str, reason: str) -> None:
    reference = {"key": "payloads/ab/gone.json", "size": 2, "sha256": "0" * 64}
    assert run(world, ended(phase, payload=None, headers={"x-asya-payload-ref": reference})) == []
    (failed,) = world.sent("x-sump")
    assert (failed.status and failed.status.reason, failed.route.position) == (reason, 2)
    assert failed.header("x-asya-payload-ref") == reference
    assert (world.targets, written(world)) == (["x-sump"], [])


# --- the index of results ---


def rows(world: MeshWorld) -> list[dict[str, Any]]:
    keys = sorted(key for key in world.s3.keys("results/index/"))
    return [json.loads(line) for key in keys for line in world.s3.content(key).splitlines()]


@pytest.mark.rule("11.index")
def test_the_ends_of_a_batch_are_rows_of_one_object(world: MeshWorld) -> None:
    assert run(world, *(ended(id=f"env-{n}") for n in range(10)), options=Sink(index=True)) == []
    assert len(world.s3.keys("results/index/recent/")) == 1
    assert {row["id"] for row in rows(world)} == {f"env-{n}" for n in range(10)}
    (row, *_) = rows(world)
    assert (row["phase"], row["last_actor"], row["recorded_by"], row["namespace"]) == (
        "succeeded",
        "infer",
        "x-sink",
        "shop",
    )
    assert row["result_uri"].endswith(f"/results/succeeded/{row['id']}.json")


@pytest.mark.rule("11.index.at-least-once")
def test_a_batch_that_comes_again_writes_the_same_object(world: MeshWorld) -> None:
    batch = [ended(id=f"env-{n}") for n in range(3)]
    run(world, *batch, options=Sink(index=True))
    first = dict(world.s3.objects)
    run(world, *batch, options=Sink(index=True))
    assert world.s3.objects == first


@pytest.mark.rule("11.index.at-least-once")
def test_a_message_stays_until_its_row_is_written(world: MeshWorld) -> None:
    world.s3.fails = lambda _operation, key: "index/" in key
    assert run(world, ended(), ended(id="env-2"), options=Sink(index=True)) == ["message-0", "message-1"]
    assert results(world) == ["succeeded/env-1.json", "succeeded/env-2.json"]
    world.s3.fails = lambda _operation, _key: False
    assert run(world, ended(), ended(id="env-2"), options=Sink(index=True)) == []
    assert {row["id"] for row in rows(world)} == {"env-1", "env-2"}


@pytest.mark.rule("11.index")
def test_what_is_not_written_has_not_ended_or_goes_on_to_x_sump_has_no_row_here(world: MeshWorld) -> None:
    run(world, ended("paused"), options=Sink(index=True))
    run(world, ended("failed", id="env-5"), options=Sink(index=True))
    run(world, ended(id="env-2"), options=Sink(index=True, persist=False))
    run(world, ended(id="env-3"))
    world.s3.fails = lambda _operation, key: key.endswith("/env-4.json")
    run(world, ended(id="env-4"), options=Sink(index=True))
    assert rows(world) == []


@pytest.mark.rule("11.metadata")
def test_s3_alone_tells_whose_result_an_object_is(world: MeshWorld) -> None:
    run(world, ended("failed", headers={"x-asya-root": "root-1"}, parent_id="root-1"))
    ((_, told),) = [(key, value) for key, value in world.s3.metadata.items() if "failed/" in key[1]]
    assert (told["id"], told["parent"], told["root"], told["phase"], told["last-actor"]) == (
        "env-1",
        "root-1",
        "root-1",
        "failed",
        "infer",
    )


@pytest.mark.rule("15.TimeToResult")
def test_15_the_time_from_the_creation_to_the_end_of_a_task(
    world: MeshWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    created_at = format_time(world.services("x-sink").now() - timedelta(seconds=90))
    block = status(phase="succeeded", reason="Completed", created_at=created_at)
    run(world, message(status=block, route=DONE))
    (elapsed,) = metric_values(metrics(capsys), "TimeToResult", actor="x-sink")
    assert elapsed >= 90_000
    run(world, message(id="child", parent_id="env-1", status=block, route=DONE))
    run(world, ended("paused", id="waits"))
    run(world, message(status=block, route=DONE))  # a duplicate
    assert len(metric_values(metrics(capsys), "TimeToResult")) <= 1
