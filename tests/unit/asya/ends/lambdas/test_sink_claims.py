"""protocol §11, x-sink: which end of an id counts, and what becomes of the others."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from asya.ends.aws.end_claims import Claim, EndClaims
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.events import COUNT_LIMIT
from asya.protocol.mesh_table import Sink
from asya.protocol.task_key import without_key
from tests.doubles.envelopes import status
from tests.doubles.mesh_world import MeshWorld
from tests.doubles.sink import ERROR, FAN, ended, results, run_sink, written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.usefixtures("sink_claims")


@pytest.mark.rule("11.sink.claim", "11.sink.superseded")
@pytest.mark.parametrize(
    ("first", "later"), [("failed", "succeeded"), ("succeeded", "canceled"), ("canceled", "succeeded")]
)
def test_another_end_of_the_same_id_is_kept_and_not_reported(world: MeshWorld, first: str, later: str) -> None:
    for _ in range(2):
        assert run_sink(world, ended(first, payload=1)) == []
        assert run_sink(world, ended(later, payload=2)) == []
    assert results(world) == [f"{first}/env-1.json"]
    (key,) = [key for key in written(world) if key.startswith("superseded/")]
    assert key.startswith(f"superseded/env-1/0/2-{later}-")
    assert json.loads(world.s3.content(f"results/{key}"))["payload"] == 2
    assert set(world.gateway.reported("env-1")) <= {first}


def cancel(client: "DynamoDBClient", owner: str | None = None) -> None:
    """The claim of `DELETE`."""
    claim = Claim("env-1", 0, "canceled", "canceled/env-1.json", COUNT_LIMIT, owner=owner, is_by_call=True)
    EndClaims(client, "asya-shop-sink", 60).take(claim, epoch_seconds=1_795_000_000)


@pytest.mark.rule("11.sink.canceled")
@pytest.mark.parametrize("phase", ["succeeded", "failed"])
@pytest.mark.parametrize("large_only", [False, True])
def test_an_end_that_meets_a_cancellation_ends_as_canceled(
    world: MeshWorld, client: "DynamoDBClient", phase: str, large_only: bool
) -> None:
    cancel(client)
    options = Sink(hooks=("many",), large_only=large_only)
    for _ in range(2):
        assert run_sink(world, ended(phase, payload="done"), options=options, actors=FAN) == []
    assert written(world) == ["canceled/env-1.json"]
    stored = json.loads(world.s3.content("results/canceled/env-1.json"))
    assert (stored["payload"], stored["status"]["phase"]) == ("done", "canceled")
    assert (stored["status"]["reason"], stored["status"]["updated_at"][:10]) == ("Canceled", "2026-11-18")
    assert (world.targets, world.gateway.events) == ([], [])  # the gateway has made it


@pytest.mark.rule("11.sink.canceled", "11.sink.superseded")
def test_a_second_end_that_meets_a_cancellation_is_kept(world: MeshWorld, client: "DynamoDBClient") -> None:
    cancel(client)
    assert run_sink(world, ended(payload=1)) == []
    assert run_sink(world, ended(payload=2)) == []
    assert results(world) == ["canceled/env-1.json"]
    (key,) = [key for key in written(world) if key.startswith("superseded/")]
    assert key.startswith("superseded/env-1/0/2-succeeded-")
    assert json.loads(world.s3.content(f"results/{key}"))["payload"] == 2


@pytest.mark.rule("11.sink.canceled")
@pytest.mark.parametrize("options", [Sink(), Sink(persist=False)])
def test_the_set_of_a_canceled_slice_learns_of_it(world: MeshWorld, client: "DynamoDBClient", options: Sink) -> None:
    fan_in = {"actor": "merge", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2}
    cancel(client)
    body = failure_at("many", headers={"x-asya-fan-in": fan_in | {"aggregation_key": "/r"}, "x-asya-root": "o"})
    assert run_sink(world, body, options=options, actors=FAN) == []
    (told,) = world.messages("merge")
    assert json.loads(told.body)["phase"] == "canceled"
    assert world.targets == ["merge"]


@pytest.mark.rule("11.sink.canceled", "11.sink.claim.owner")
def test_a_stranger_does_not_end_a_canceled_task(world: MeshWorld, client: "DynamoDBClient") -> None:
    cancel(client, owner="AIDAALICE")
    assert run_sink(world, ended(payload="forged", headers={"x-asya-owner": "AIDAEVE"})) == []
    assert results(world) == []


@pytest.mark.rule("11.sink.claim.owner")
@pytest.mark.parametrize("generation", [0, 9999])
def test_an_end_of_another_owner_leaves_the_result(world: MeshWorld, generation: int) -> None:
    assert run_sink(world, ended(payload="mine", headers={"x-asya-owner": "AIDAALICE"})) == []
    forged = {"x-asya-owner": "AIDAEVE", "x-asya-generation": generation}
    for _ in range(2):
        assert run_sink(world, ended(payload="forged", headers=forged)) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert json.loads(world.s3.content("results/succeeded/env-1.json"))["payload"] == "mine"
    assert world.gateway.reported("env-1") == ["succeeded"]


@pytest.mark.rule("11.sink.superseded")
def test_refused_ends_with_other_contents_have_other_keys(world: MeshWorld) -> None:
    run_sink(world, ended("failed"), ended(payload=1), ended(payload=2), ended(payload=2, headers={"note": "b"}))
    assert len([key for key in written(world) if key.startswith("superseded/")]) == 3


def failure_at(actor: str, **members: Any) -> bytes:
    block = status(phase="failed", reason="RuntimeError", actor=actor, error=ERROR)
    return ended("failed", status=block, route={"prev": ["prep"], "curr": actor, "next": []}, **members)


@pytest.mark.rule("11.sink.failed-child")
@pytest.mark.parametrize("actor", ["many", "job", "unknown"])
def test_a_refused_failure_leaves_as_a_failed_child(world: MeshWorld, actor: str) -> None:
    fan_in = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2}
    options = Sink(hooks=("many",))
    assert run_sink(world, ended(), actors=FAN) == []
    late = failure_at(actor, payload="input", headers={"x-asya-fan-in": fan_in | {"aggregation_key": "/r"}, "note": 1})
    for _ in range(2):
        assert run_sink(world, late, options=options, actors=FAN) == []
    assert {decode(sent.body.encode()).id for sent in world.messages("x-sump")} == {
        ids.child_id("env-1", 0, 1, "error")
    }
    child = decode(world.messages("x-sump")[0].body.encode())
    assert (child.parent_id, child.root_id, sorted(without_key(child).headers)) == (
        "env-1",
        "env-1",
        ["note", "x-asya-root"],
    )
    assert (child.status and child.status.reason, bytes(child.payload)) == ("RuntimeError", b'"input"')
    assert set(world.targets) == {"x-sump"}
    assert written(world) == ["succeeded/env-1.json"]
    assert world.gateway.reported("env-1") == ["succeeded"]


@pytest.mark.rule("11.sink.failed-child")
@pytest.mark.parametrize("actor", ["one", "merge", "x-sump"])
def test_a_refused_failure_of_a_hop_with_one_frame_is_no_failure(world: MeshWorld, actor: str) -> None:
    assert run_sink(world, ended(), failure_at(actor), actors=FAN) == []
    assert world.targets == []
    assert [key.partition("-failed-")[0] for key in written(world)] == ["succeeded/env-1.json", "superseded/env-1/0/1"]


@pytest.mark.rule("11.sink.superseded")
def test_an_end_that_cannot_be_kept_stays_on_the_queue(world: MeshWorld) -> None:
    assert run_sink(world, ended("failed")) == []
    world.s3.fails = lambda action, key: "superseded/" in key
    assert run_sink(world, ended()) == ["message-0"]


@pytest.mark.rule("11.sink.stale")
@pytest.mark.parametrize("phase", ["succeeded", "failed", "canceled"])
def test_a_stale_end_is_kept_and_ends_nothing(world: MeshWorld, client: "DynamoDBClient", phase: str) -> None:
    client.update_item(
        TableName="asya-shop-sink",
        Key={"pk": {"S": "env-1"}, "sk": {"S": "claim"}},
        UpdateExpression="SET pause_generation = :zero, pause_epoch = :two",
        ExpressionAttributeValues={":zero": {"N": "0"}, ":two": {"N": "2"}},
    )
    assert run_sink(world, ended(phase), actors=FAN | {"infer": FAN["one"]}) == []
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
    assert claims.note_pause("env-1", pause_generation, 2, epoch_seconds=0) is None
    for _ in range(2):
        assert run_sink(world, failure_at(actor), actors=FAN) == []
    sent = {decode(each.body.encode()).id for each in world.messages("x-sump")}
    assert sent == ({ids.child_id("env-1", 0, 1, "error")} if is_child else set())
    assert len(written(world)) == (0 if is_child else 1)
    assert world.gateway.events == []


@pytest.mark.rule("11.sink.claim")
def test_a_redelivery_finishes_what_is_missing(world: MeshWorld) -> None:
    world.gateway.item_status["env-1", "succeeded"] = 503
    assert run_sink(world, ended()) == ["message-0"]
    world.gateway.item_status.clear()
    assert run_sink(world, ended()) == []
    assert world.gateway.reported("env-1") == ["succeeded", "succeeded"]


@pytest.mark.rule("11.sink.claim", "12.newer-object")
def test_a_higher_generation_replaces_and_removes_the_older_object_even_if_it_dies_in_between(world: MeshWorld) -> None:
    redriven = ended("succeeded", headers={"x-asya-generation": 1})
    assert run_sink(world, ended("failed")) == []
    world.s3.fails = lambda action, key: action == "delete"
    assert run_sink(world, redriven) == ["message-0"]
    world.s3.fails = lambda action, key: False
    assert run_sink(world, redriven) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert run_sink(world, ended("failed")) == []
    assert [(event.status, event.generation) for event in world.gateway.events] == [
        ("failed", 0),
        ("succeeded", 1),
        ("succeeded", 1),
    ]
