"""protocol §5: the sidecar of a light actor, from a Lambda event to its sends and reports."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol import ids
from tests.doubles.envelopes import message
from tests.doubles.light_actor import LAST, echo, run
from tests.doubles.mesh_world import MeshWorld, batch_failures, recorded


@pytest.mark.rule("5.4.one-call")
def test_a_recorded_batch_goes_on_to_the_next_actor(world: MeshWorld) -> None:
    actor = build_sidecar(world.light(lambda payload: payload | {"seen": True}))
    assert batch_failures(actor.process(recorded("sqs-batch"))) == []
    assert world.targets == ["post", "post", "post"]
    assert [envelope.id for envelope in world.sent("post")] == ["env-1", "env-2", "env-3"]
    first = world.sent("post")[0]
    assert msgspec.json.decode(first.payload) == {"text": "Hello from env-1", "cleaned": True, "seen": True}
    assert str(first.header("traceparent")).startswith("00-0af7651916cd43dd8448eb211c80319c-")
    assert world.gateway.reported("env-1") == ["received", "processing", "completed"]
    assert len(world.state_reads.asked) == 1  # one pre-flight call for the whole batch


@pytest.mark.rule("5.9")
def test_the_end_of_a_route_is_x_sink(world: MeshWorld) -> None:
    assert run(world, echo, message(route=LAST)) == []
    (ended,) = world.sent("x-sink")
    assert ended.status is not None
    assert (ended.status.phase, ended.status.reason) == ("succeeded", "Completed")
    assert ended.route.curr == ""


@pytest.mark.rule("14.new-shape-leaves")
def test_14_legacy_routes_leave_in_the_present_form(world: MeshWorld) -> None:
    actor = build_sidecar(world.light(echo))
    assert batch_failures(actor.process(recorded("sqs-legacy-envelopes"))) == []
    assert world.sent("post")[0].route.prev == ("prep", "infer")
    (step,) = world.sent("x-sink")
    assert step.id == ids.id_of_message("2e1424d4-f796-459a-8184-9c92662be6da")


@pytest.mark.rule("4.child-ids")
def test_4_a_fan_out_has_derived_children_and_a_redelivery_the_same_ones(world: MeshWorld) -> None:
    def split(payload: Any) -> Iterator[Any]:
        yield from ({"part": n} for n in range(13))

    for _ in range(2):
        assert run(world, split, message()) == []
    found = [envelope.id for envelope in world.sent("post")]
    assert found[:13] == found[13:] == ["env-1", *(ids.child_id("env-1", 0, 1, n) for n in range(1, 13))]
    assert world.gateway.reported("env-1").count("completed") == 2  # once per run, with its first frame


@pytest.mark.rule("5.10")
def test_5_10_no_frame_ends_well_and_is_reported_completed(world: MeshWorld) -> None:
    assert run(world, lambda _: None, message()) == []
    (ended,) = world.sent("x-sink")
    assert ended.route.curr == "infer"
    assert world.gateway.reported("env-1") == ["received", "processing", "completed"]


@pytest.mark.rule("5.8")
def test_5_8_a_frame_is_on_the_wire_while_the_handler_is_still_at_work(world: MeshWorld) -> None:
    on_the_wire = []

    def slow(_: Any) -> Iterator[Any]:
        yield {"part": 0}
        on_the_wire.append(world.sqs.wait_until_sent("asya-shop-post", 1))
        yield {"part": 1}
        on_the_wire.append(world.sqs.wait_until_sent("asya-shop-post", 2))

    assert run(world, slow, message(), timeout=20.0) == []
    assert on_the_wire == [True, True]


@pytest.mark.rule("5.8.completed")
def test_5_8_completed_is_told_once_however_many_frames_there_are(world: MeshWorld) -> None:
    assert run(world, lambda payload: (yield from (payload, payload, payload)), message()) == []
    assert len(world.sent("post")) == 3
    assert world.gateway.reported("env-1").count("completed") == 1


@pytest.mark.rule("5.8", "6.kinds")
def test_5_8_so_is_that_of_an_async_generator(world: MeshWorld) -> None:
    on_the_wire = []

    async def slow(_: Any) -> AsyncIterator[Any]:
        yield {"part": 0}
        on_the_wire.append(await asyncio.to_thread(world.sqs.wait_until_sent, "asya-shop-post"))
        yield {"part": 1}

    assert run(world, slow, message(), timeout=20.0) == []
    assert on_the_wire == [True]


@pytest.mark.rule("1.route.next")
def test_7_the_abi_rewrites_the_route_ahead(world: MeshWorld) -> None:
    def route(payload: Any) -> Iterator[Any]:
        envelope_id = yield ("GET", ".id")
        yield ("SET", ".route.next[:0]", ["rescue"])
        yield ("SET", ".headers.seen_by", envelope_id)
        yield payload
        yield ("DEL", ".route.next")
        yield payload

    assert run(world, route, message()) == []
    assert world.targets == ["rescue", "x-sink"]
    assert world.sent("rescue")[0].header("seen_by") == "env-1"
    assert world.sent("rescue")[0].route.next == ("post",)


def test_6_a_typed_handler_gets_its_type_and_a_mismatch_is_its_error(world: MeshWorld) -> None:
    def typed(payload: int) -> int:
        return payload

    import dataclasses

    @dataclasses.dataclass
    class Text:
        text: str

    def by_class(payload: Any) -> Any:
        return payload.text.upper()

    by_class.__annotations__ = {"payload": Text, "return": str}
    assert run(world, by_class, message(), message(id="env-2", payload={"text": 5})) == []
    assert msgspec.json.decode(world.sent("post")[0].payload) == "HELLO"
    (failed,) = world.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert "payload.text" in failed.status.error.message
