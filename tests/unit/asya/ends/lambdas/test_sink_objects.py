"""protocol §11, x-sink: the object of an end, its key and its metadata."""

import json
from typing import TYPE_CHECKING

import pytest
from msgspec import Raw

from asya.protocol.mesh_table import Sink
from tests.doubles.envelopes import status
from tests.doubles.mesh_world import MeshWorld, empty_table
from tests.doubles.sink import FAN, ended, results, run_sink, written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.usefixtures("sink_claims")


@pytest.mark.rule("11.sink.first-object")
def test_the_object_of_an_end_stays_and_is_what_is_reported(world: MeshWorld) -> None:
    assert run_sink(world, ended(payload={"answer": 1})) == []
    assert run_sink(world, ended(payload={"answer": 2}), options=Sink(hooks=("many",)), actors=FAN) == []
    assert json.loads(world.s3.content("results/succeeded/env-1.json"))["payload"] == {"answer": 1}
    assert [event.data.result for event in world.gateway.events] == [Raw(b'{"answer":1}')] * 2
    assert bytes(world.sent("many")[0].payload) == b'{"answer":1}'


@pytest.mark.rule("11.sink.first-object")
def test_an_object_of_another_generation_is_replaced_or_stays(world: MeshWorld, client: "DynamoDBClient") -> None:
    assert run_sink(world, ended(payload=0), ended(payload=1, headers={"x-asya-generation": 1})) == []
    assert json.loads(world.s3.content("results/succeeded/env-1.json"))["payload"] == 1
    empty_table(client, "sink")  # the claim of the later generation has expired
    assert run_sink(world, ended(payload=0)) == []
    assert json.loads(world.s3.content("results/succeeded/env-1.json"))["payload"] == 1
    assert len(written(world)) == 2
    assert len(world.gateway.events) == 2


@pytest.mark.rule("11.sink.moved-object")
def test_a_redrive_that_ends_while_the_object_is_written_wins(world: MeshWorld, client: "DynamoDBClient") -> None:
    late = ended("failed", payload="late")

    def redrive(action: str, key: str) -> bool:
        if (action, key) == ("put", "results/failed/env-1.json"):
            world.s3.fails = lambda *_: False
            assert run_sink(world, ended(payload="redriven", headers={"x-asya-generation": 1})) == []
        return False

    world.s3.fails = redrive
    assert run_sink(world, late) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert [(event.status, event.generation) for event in world.gateway.events] == [("succeeded", 1)]
    (key,) = [key for key in written(world) if key.startswith("superseded/")]
    assert json.loads(world.s3.content(f"results/{key}"))["payload"] == "late"
    assert world.targets == []


@pytest.mark.rule("11.sink.moved-object")
def test_an_object_that_was_left_behind_moves_when_its_message_comes_again(world: MeshWorld) -> None:
    late = ended("failed", payload="late")

    def die(action: str, key: str) -> bool:
        if (action, key) == ("put", "results/failed/env-1.json"):
            world.s3.fails = lambda *_: False
            assert run_sink(world, ended(payload="redriven", headers={"x-asya-generation": 1})) == []
            world.s3.fails = lambda action, key: "superseded/" in key
        return False

    world.s3.fails = die
    assert run_sink(world, late) == ["message-0"]
    assert results(world) == ["failed/env-1.json", "succeeded/env-1.json"]
    world.s3.fails = lambda *_: False
    assert run_sink(world, late) == []
    assert results(world) == ["succeeded/env-1.json"]
    assert len(written(world)) == 2


@pytest.mark.rule("11.sink.failed-upload")
def test_an_upload_that_fails_three_times_is_reported_inline_and_the_message_kept(world: MeshWorld) -> None:
    world.s3.fails = lambda action, key: True
    assert run_sink(world, ended(payload={"answer": 42})) == ["message-0"]
    assert len(world.s3.calls) == 3
    (event,) = world.gateway.events
    assert event.data.result_uri is None
    assert event.data.result == Raw(b'{"answer":42}')
    world.s3.fails = lambda action, key: False
    assert run_sink(world, ended(payload={"answer": 42})) == []
    assert world.gateway.events[-1].data.result_uri is not None


@pytest.mark.rule("11.sink.persist")
def test_without_persistence_it_reports_and_acks(world: MeshWorld) -> None:
    assert run_sink(world, ended(payload=1), options=Sink(persist=False)) == []
    assert results(world) == []
    assert world.gateway.events[0].data.result == Raw(b"1")


LARGE_ONLY = Sink(large_only=True, index=True)
LARGE = "x" * 65 * 1024


@pytest.mark.rule("11.sink.large-only", "13.inline-results")
@pytest.mark.parametrize(
    ("body", "reporting", "has_object"),
    [
        (ended(payload=1), True, False),
        (ended(payload=1, parent_id="root-1", headers={"x-asya-root": "root-1"}), True, False),
        (ended(payload=LARGE), True, True),
        (ended(payload=1, headers={"x-asya-mesh-status": "off"}), True, True),
        (ended(payload=1), False, True),
        (ended("failed", payload=1), True, True),
    ],
    ids=["small", "slice", "large", "stealth", "without a gateway", "failed"],
)
def test_a_result_that_no_record_holds_has_an_object(
    world: MeshWorld, body: bytes, reporting: bool, has_object: bool
) -> None:
    assert run_sink(world, body, options=LARGE_ONLY, reporting=reporting) == []
    assert len([key for key in results(world) if not key.startswith("index/")]) == has_object
    assert has_object or [event.data.result for event in world.gateway.events] == [Raw(b"1")]
    assert has_object or not any(key.startswith("index/") for key in results(world))


@pytest.mark.rule("11.sink.large-only", "11.sink.claim")
def test_a_small_result_removes_the_object_of_an_earlier_generation(world: MeshWorld) -> None:
    assert run_sink(world, ended(payload=LARGE), options=LARGE_ONLY) == []
    assert results(world) == ["succeeded/env-1.json"]
    redriven = ended(payload=2, headers={"x-asya-generation": 1})
    world.s3.fails = lambda action, _: action == "delete"
    assert run_sink(world, redriven, options=LARGE_ONLY) == ["message-0"]
    world.s3.fails = lambda *_: False
    assert run_sink(world, redriven, options=LARGE_ONLY) == []
    assert results(world) == []
    assert world.gateway.events[-1].data.result == Raw(b"2")


@pytest.mark.rule("11.sink.large-only", "11.sink.moved-object")
def test_an_object_that_a_small_result_of_a_redrive_has_overtaken_moves(world: MeshWorld) -> None:
    def redrive(action: str, key: str) -> bool:
        if (action, key) == ("put", "results/succeeded/env-1.json"):
            world.s3.fails = lambda *_: False
            assert run_sink(world, ended(payload=2, headers={"x-asya-generation": 1}), options=LARGE_ONLY) == []
        return False

    world.s3.fails = redrive
    assert run_sink(world, ended(payload=LARGE), options=LARGE_ONLY) == []
    assert results(world) == []
    assert [key.partition("/")[0] for key in written(world)] == ["superseded"]
    assert [event.data.result for event in world.gateway.events] == [Raw(b"2")]


def test_by_time_writes_one_object_however_often_the_end_comes(world: MeshWorld) -> None:
    options = Sink(layout="by-time", succeeded_prefix="happy-asya/", failed_prefix="error-asya/")
    for second in ("45", "46"):
        when = f"2025-11-18T14:30:{second}.123456Z"
        assert run_sink(world, ended(status=status(phase="succeeded", updated_at=when)), options=options) == []
    assert results(world) == ["happy-asya/2025-11-18T14:30:45.123456Z/infer/env-1.json"]


@pytest.mark.rule("11.metadata")
def test_s3_alone_tells_whose_result_an_object_is(world: MeshWorld) -> None:
    run_sink(world, ended("failed", headers={"x-asya-root": "root-1"}, parent_id="root-1"))
    (metadata,) = [value for key, value in world.s3.metadata.items() if "failed/" in key]
    assert (metadata["id"], metadata["parent"], metadata["root"], metadata["phase"], metadata["last-actor"]) == (
        "env-1",
        "root-1",
        "root-1",
        "failed",
        "infer",
    )
