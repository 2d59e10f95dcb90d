"""protocol §9: fan-out and fan-in with handlers, fan-in actors, x-sink and x-sump, on emulated tables."""

import json
import random

import pytest

from tests.doubles.fan_in_sets import Start, child, numbers, scored


@pytest.mark.parametrize("count", [0, 1, 2, 12])
def test_items_come_back_in_one_envelope_in_their_order(start: Start, count: int) -> None:
    mesh = start(rng=random.Random(count))
    mesh.start(numbers(count))
    mesh.run()
    assert mesh.result()["payload"] == numbers(count) | {"results": scored(count)}
    assert mesh.result()["route"] == {"prev": ["split", "x-fan-in", "post"], "curr": "", "next": []}
    assert "x-asya-fan-in" not in mesh.result().get("headers", {})
    assert mesh.ends == ["succeeded/env-1.json"]
    assert len(mesh.world.messages("post")) == 1
    assert mesh.open_sets() == 0


@pytest.mark.rule("5.10.fan-in", "9.children", "9.incomplete")
def test_each_items_own_task_is_reported_and_nothing_of_the_origin_while_it_waits(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(2))
    waited_for = child(2)
    mesh.is_lost = lambda message: message.actor == "x-fan-in" and waited_for in message.body
    mesh.run()
    events = [event for event in mesh.world.gateway.events if event.id == "env-1" and event.data.actor == "x-fan-in"]
    assert events == []
    assert mesh.world.gateway.reported(child(1)) == ["received", "processing", "completed", "succeeded"]
    (done,) = [event for event in mesh.world.gateway.events if event.id == child(1) and event.status == "succeeded"]
    assert (done.parent_id, done.data.actor) == ("env-1", "x-fan-in")
    assert json.loads(bytes(done.data.result or b"")) == {"scored": 10}
    assert mesh.world.gateway.reported(waited_for) == ["received", "processing", "completed"]
    assert mesh.ends == []


def test_the_merge_is_the_origins_hop(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(1))
    mesh.run()
    events = [event for event in mesh.world.gateway.events if event.id == "env-1"]
    assert [(event.status, event.position) for event in events if event.data.actor == "x-fan-in"] == [("completed", 1)]


def test_stealth_sets_are_merged_without_a_word(start: Start) -> None:
    mesh = start()
    route = {"prev": [], "curr": "split", "next": ["x-fan-in"]}
    mesh.send(
        "split",
        json.dumps({"id": "env-1", "route": route, "headers": {"x-asya-mesh-status": "off"}, "payload": numbers(2)}),
    )
    mesh.run()
    assert mesh.result()["payload"]["results"] == scored(2)
    assert mesh.world.gateway.events == []


@pytest.mark.rule("9.size")
def test_large_slices_lie_in_s3_and_their_reports_say_where(start: Start) -> None:
    mesh = start()
    large = {"text": "x" * 300_000}
    mesh.start({"items": [large, large | {"n": 2}]})
    mesh.run()
    assert mesh.result()["payload"]["results"] == [large, {"scored": 20}]
    (done,) = [event for event in mesh.world.gateway.events if event.id == child(1) and event.status == "succeeded"]
    assert done.data.result_uri is not None
    key = done.data.result_uri.removeprefix("s3://asya-shop-123456789012-eu-west-1/")
    assert json.loads(mesh.world.s3.content(key))["payload"] == large


@pytest.mark.rule("9.size")
def test_a_merged_envelope_may_be_larger_than_a_message(start: Start) -> None:
    mesh = start()
    mesh.start({"items": [{"text": str(n) * 500_000} for n in range(4)]})
    mesh.run()
    assert [len(item["text"]) for item in mesh.result()["payload"]["results"]] == [500_000] * 4


@pytest.mark.rule("9.set-id")
def test_two_sets_of_one_origin_one_after_the_other(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(3), ahead=("x-fan-in", "split", "x-fan-in", "post"))
    mesh.run()
    assert mesh.result()["payload"]["results"] == scored(3)
    assert mesh.result()["route"]["prev"] == ["split", "x-fan-in", "split", "x-fan-in", "post"]
    assert len(mesh.world.messages("post")) == 1


@pytest.mark.rule("9.nesting")
def test_sets_nest(start: Start) -> None:
    mesh = start()
    inner = {"items": [{"n": 1}, {"n": 2}], "into": "/inner"}
    mesh.start({"items": [{"n": 7}, inner, inner | {"at": "gather"}], "into": "/outer"})
    mesh.run()
    results = mesh.result()["payload"]["outer"]
    assert results[0] == {"scored": 70}
    assert [results[1]["inner"], results[2]["inner"]] == [scored(2), scored(2)]
    assert mesh.ends == ["succeeded/env-1.json"]
    assert mesh.open_sets() == 0


@pytest.mark.rule("9.only-slices")
def test_an_ordinary_envelope_at_a_fan_in_actor_is_a_mismatch(start: Start) -> None:
    mesh = start()
    mesh.send("x-fan-in", json.dumps({"id": "e", "route": {"prev": [], "curr": "x-fan-in", "next": []}, "payload": 1}))
    mesh.run()
    (sunk,) = mesh.world.sent("x-sump")
    assert sunk.status is not None
    assert sunk.status.reason == "RouteMismatch"
    assert sunk.status.error is not None
    assert "fan_out" in sunk.status.error.message


def test_slices_that_disagree_on_their_number_are_a_mismatch(start: Start) -> None:
    mesh = start()
    header = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 3,
              "aggregation_key": "/r"}  # fmt: skip
    for count in (3, 4):
        route = {"prev": [], "curr": "x-fan-in", "next": []}
        body = {"id": f"e{count}", "route": route, "headers": {"x-asya-fan-in": header | {"slice_count": count}}}
        mesh.send("x-fan-in", json.dumps(body | {"payload": 1}))
        mesh.run()
    (sunk,) = mesh.world.sent("x-sump")
    assert sunk.id == "e4"
    assert sunk.status is not None
    assert sunk.status.error is not None
    assert sunk.status.error.message == "set s has 3 slices, but slice 1 states 4"


def test_messages_about_sets_that_are_not_known_are_acked(start: Start) -> None:
    mesh = start()
    look = '{"type":"set-due","set_id":"nobody"}'
    assert mesh.process("x-fan-in", look, "no JSON at all") == []
    assert mesh.world.targets == ["x-sump"]


@pytest.mark.rule("9.user-actors")
def test_a_user_fan_in_actor_works_like_x_fan_in(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(2) | {"at": "gather", "into": "/a/b"}, ahead=("gather", "post"))
    mesh.run()
    assert mesh.result()["payload"]["a"] == {"b": scored(2)}
    assert mesh.result()["route"]["prev"] == ["split", "gather", "post"]
