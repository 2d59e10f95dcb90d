"""protocol §9 as a whole: handlers that fan out, fan-in actors, x-sink and x-sump, over real conditions of DynamoDB."""

import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from asya import fan_out
from asya.protocol import ids
from asya.protocol.events import TaskState
from asya.protocol.mesh_table import Actor, FanIn, Policy, Resiliency
from tests.doubles.dynamo import create_fan_in_table, create_tasks_table
from tests.doubles.fan_mesh import HANDLERS, Deaths, FanMesh, Waiting, fan_table
from tests.doubles.mesh_world import MeshWorld, empty_table, mesh_world
from tests.doubles.sqs import Refusal

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PARTIAL = FanIn(on_failure="partial")
SET = ids.set_id("env-1", 0, 0)


@pytest.fixture(scope="module")
def dynamodb() -> "Iterator[DynamoDBClient]":
    with mock_aws():
        client = boto3.Session("testing", "testing", region_name="eu-west-1").client("dynamodb")
        create_fan_in_table(client, "asya-shop-fan-in")
        create_tasks_table(client, "asya-shop-sink")
        yield client


Start = Callable[..., FanMesh]


@pytest.fixture
def start(world: MeshWorld, dynamodb: "DynamoDBClient") -> Start:
    """Makes the mesh of a test."""

    def made(rule: FanIn | None = None, **more: Any) -> FanMesh:
        for kind in ("fan-in", "sink"):
            empty_table(dynamodb, kind)
        return FanMesh(world, dynamodb, fan_table(rule), **more)

    return made


def numbers(count: int) -> dict[str, Any]:
    return {"items": [{"n": n} for n in range(1, count + 1)], "kept": "as it was"}


def scored(count: int) -> list[Any]:
    return [{"scored": n * 10} for n in range(1, count + 1)]


def child(index: int, position: int = 0) -> str:
    return ids.child_id("env-1", 0, position, index)


# --- the ordinary way


@pytest.mark.parametrize("count", [0, 1, 2, 12])
def test_items_come_back_in_one_envelope_in_their_order(start: Start, count: int) -> None:
    mesh = start(chance=random.Random(count))
    mesh.start(numbers(count))
    mesh.run()
    assert mesh.result()["payload"] == numbers(count) | {"results": scored(count)}
    assert mesh.result()["route"] == {"prev": ["split", "x-fan-in", "post"], "curr": "", "next": []}
    assert "x-asya-fan-in" not in mesh.result().get("headers", {})
    assert mesh.ends == ["succeeded/env-1.json"]
    assert len(mesh.world.messages("post")) == 1
    assert mesh.open_sets() == 0


def test_each_items_own_task_is_reported_and_nothing_of_the_origin_while_it_waits(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(2))
    waited_for = child(2)
    mesh.lost = lambda message: message.actor == "x-fan-in" and waited_for in message.body
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


def test_a_merged_envelope_may_be_larger_than_a_message(start: Start) -> None:
    mesh = start()
    mesh.start({"items": [{"text": str(n) * 500_000} for n in range(4)]})
    mesh.run()
    assert [len(item["text"]) for item in mesh.result()["payload"]["results"]] == [500_000] * 4


def test_two_sets_of_one_origin_one_after_the_other(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(3), ahead=("x-fan-in", "split", "x-fan-in", "post"))
    mesh.run()
    assert mesh.result()["payload"]["results"] == scored(3)
    assert mesh.result()["route"]["prev"] == ["split", "x-fan-in", "split", "x-fan-in", "post"]
    assert len(mesh.world.messages("post")) == 1


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


# --- slices that end without a result


def test_a_failing_slice_fails_the_origin_with_its_error(start: Start) -> None:
    mesh = start()
    mesh.start({"items": [{"n": 1}, {"fail": "no such airport"}, {"n": 3}]})
    mesh.run()
    status = mesh.result(phase="failed")["status"]
    assert (status["reason"], status["error"]["type"], status["error"]["message"]) == (
        "SliceFailed",
        "ValueError",
        "no such airport",
    )
    assert mesh.result(phase="failed")["payload"]["items"][0] == {"n": 1}
    assert mesh.ends == ["failed/" + child(2) + ".json", "failed/env-1.json"] or mesh.ends == [
        "failed/env-1.json",
        "failed/" + child(2) + ".json",
    ]
    assert mesh.world.messages("post") == []
    assert mesh.open_sets() == 0
    # Its siblings' own work is done all the same.
    assert mesh.world.gateway.reported(child(3))[-1] == "succeeded"


def test_a_slice_that_became_unreadable_fails_the_origin_at_once(start: Start) -> None:
    mesh = start()

    def spoil(message: Waiting) -> bool:
        envelope = json.loads(message.body)
        if (message.actor, envelope.get("id")) == ("score", child(2)):
            del envelope["payload"]
            message.body = json.dumps(envelope)
        return False

    mesh.lost = spoil
    mesh.start({"items": [{"n": 1}, {"n": 2}, {"n": 3}]})
    mesh.run()
    status = mesh.result(phase="failed")["status"]
    assert (status["reason"], status["error"]["type"], status["error"]["message"]) == (
        "SliceFailed",
        "ParseError",
        "Failed to parse message: payload is missing",
    )
    assert mesh.open_sets() == 0


def test_partial_sets_have_null_in_the_lost_ones_place(start: Start) -> None:
    mesh = start(PARTIAL)
    mesh.start({"items": [{"n": 1}, {"fail": "x"}, {"n": 3}]})
    mesh.run()
    assert mesh.result()["payload"]["results"] == [{"scored": 10}, None, {"scored": 30}]


def test_below_the_quorum_a_partial_set_fails(start: Start) -> None:
    mesh = start(FanIn(on_failure="partial", quorum=2))
    mesh.start({"items": [{"n": 1}, {"fail": "x"}, {"fail": "y"}]})
    mesh.run()
    assert mesh.result(phase="failed")["status"]["reason"] == "SliceFailed"


def test_a_slice_that_gave_nothing_has_no_result(start: Start) -> None:
    mesh = start()
    mesh.start({"items": [{"nothing": True}]})
    mesh.run()
    error = mesh.result(phase="failed")["status"]["error"]
    assert error == {
        "type": "SliceFailed",
        "message": "slice 1 of 2 ended without a result",
        "mro": [],
        "traceback": "",
    }


def test_a_second_frame_of_a_slice_fails_it_before_the_first_has_left(start: Start) -> None:
    mesh = start()
    mesh.start({"items": [{"twice": 1}]})
    mesh.run()
    error = mesh.result(phase="failed")["status"]["error"]
    assert error["type"] == "processing_error"
    assert "more than one frame for a slice" in error["message"]
    assert mesh.world.gateway.reported(child(1))[-1] == "failed"


def test_a_slice_at_a_missing_actor_ends_its_set(start: Start) -> None:
    mesh = start()
    mesh.start({"items": [{"n": 1}], "to": ["score", "nobody"]})
    mesh.run()
    status = mesh.result(phase="failed")["status"]
    assert (status["reason"], status["error"]["type"]) == ("SliceFailed", "RouteMismatch")


def test_a_slice_that_ends_at_an_end_actor_of_ones_own_is_lost_to_its_set(start: Start) -> None:
    mesh = start(PARTIAL)
    archive = Actor(kind="end", handler=f"{HANDLERS}.post", handler_mode="envelope", validate=False, timeout=5.0)
    mesh.table = fan_table(PARTIAL, archive=archive)
    mesh.start({"items": [{"n": 1}], "to": ["score", "archive"]})
    mesh.start({"items": [{"n": 2}, {"items": [{"n": 3}], "to": ["archive"]}]}, envelope_id="env-2")
    mesh.run()
    assert mesh.result()["payload"]["results"] == [None]
    inner = {"items": [{"n": 3}], "to": ["archive"], "results": [None]}
    assert mesh.result("env-2")["payload"]["results"] == [{"scored": 20}, inner]
    assert mesh.ends == ["succeeded/env-1.json", "succeeded/env-2.json"]
    assert mesh.open_sets() == 0


def test_a_fan_out_to_a_missing_actor_sends_nothing_at_all(start: Start) -> None:
    mesh = start()
    mesh.start({"items": [{"n": 1}], "to": ["nobody"]})
    mesh.run()
    assert mesh.world.targets == ["x-sump"]
    assert mesh.world.gateway.reported("env-1")[-1] == "failed"


def test_a_fan_out_at_what_is_no_fan_in_actor_is_a_mismatch(start: Start) -> None:
    mesh = start()
    mesh.start({"items": [{"n": 1}], "at": "post"})
    mesh.run()
    (sunk,) = mesh.world.sent("x-sump")
    assert sunk.status is not None
    assert sunk.status.error is not None
    assert "'post' is no fan-in actor" in sunk.status.error.message


def test_a_failed_inner_set_is_a_failed_slice_of_the_outer_one(start: Start) -> None:
    mesh = start()
    inner = {"items": [{"n": 1}, {"fail": "deep inside"}]}
    mesh.start({"items": [{"n": 7}, inner]})
    mesh.run()
    status = mesh.result(phase="failed")["status"]
    assert (status["reason"], status["error"]["message"]) == ("SliceFailed", "deep inside")
    # The inner origin is the outer set's slice 2, and ended by itself.
    assert mesh.result(child(2), "failed")["status"]["reason"] == "SliceFailed"
    assert mesh.open_sets() == 0


def test_a_partial_outer_set_bears_a_failed_inner_one(start: Start, world: MeshWorld) -> None:
    mesh = start(PARTIAL)
    mesh.table = fan_table(PARTIAL, gather=Actor(kind="fan_in", fan_in=FanIn()))
    inner = {"items": [{"n": 1}, {"fail": "deep inside"}], "at": "gather"}
    mesh.start({"items": [{"n": 7}, inner]})
    mesh.run()
    assert mesh.result()["payload"]["results"] == [{"scored": 70}, None]


def test_a_retried_slice_succeeds_in_the_end(start: Start) -> None:
    mesh = start()
    retried = Resiliency(policies={"default": Policy(max_attempts=2, initial_delay=0.0)})
    mesh.table = fan_table(score=Actor(kind="handler", handler=f"{HANDLERS}.score", resiliency=retried))
    mesh.start({"items": [{"fail": "always"}, {"n": 1}]})
    mesh.run()
    assert mesh.result(phase="failed")["status"]["error"]["message"] == "always"
    assert len([m for m in mesh.world.messages("score") if "always" in m.body]) == 2


# --- time


def test_a_set_out_of_time_fails_and_a_late_slice_changes_nothing(start: Start) -> None:
    mesh = start(FanIn(timeout=3000.0))
    held: list[Waiting] = []

    def hold(message: Waiting) -> bool:
        if message.actor == "x-fan-in" and child(2) in message.body and not held:
            held.append(message)
            return True
        return False

    mesh.lost = hold
    mesh.start(numbers(2))
    mesh.run(until=timedelta(seconds=2990))
    assert mesh.ends == []
    looks = [message.delay for message in mesh.world.messages("x-fan-in") if "set-due" in message.body]
    assert looks[:3] == [900, 900, 900]
    assert len(looks) == 4
    mesh.run(until=timedelta(seconds=20))
    status = mesh.result(phase="failed")["status"]
    assert (status["reason"], status["error"]["message"]) == (
        "FanInTimeout",
        "1 of 3 slices did not arrive in time: 2",
    )
    mesh.waiting += held
    mesh.run(until=timedelta(hours=1))
    assert mesh.ends == ["failed/env-1.json"]
    assert mesh.world.gateway.reported(child(2))[-1] == "succeeded"


def test_a_partial_set_is_merged_when_its_time_is_up(start: Start) -> None:
    mesh = start(FanIn(timeout=60.0, on_failure="partial", quorum=1))
    mesh.lost = lambda message: message.actor == "score" and child(2) in message.body
    mesh.start(numbers(3))
    mesh.run(until=timedelta(seconds=59))
    assert mesh.ends == []
    mesh.run(until=timedelta(seconds=5))
    assert mesh.result()["payload"]["results"] == [{"scored": 10}, None, {"scored": 30}]


def test_a_late_origin_ends_with_its_sets_failure(start: Start) -> None:
    mesh = start(FanIn(timeout=60.0))
    held: list[Waiting] = []

    def hold(message: Waiting) -> bool:
        if message.actor == "x-fan-in" and '"slice_index":0' in message.body and not held:
            held.append(message)
            return True
        return False

    mesh.lost = hold
    mesh.start({"items": [{"n": 1}, {"fail": "early"}]})
    mesh.run(until=timedelta(seconds=120))
    assert mesh.ends == [f"failed/{child(2)}.json"]
    assert mesh.open_sets() == 0
    mesh.waiting += held
    mesh.run()
    assert mesh.result(phase="failed")["status"]["error"]["message"] == "early"


def test_the_sweep_finds_a_set_whose_look_was_lost(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    mesh = start(FanIn(timeout=60.0))
    mesh.lost = lambda message: (message.actor == "score" and child(2) in message.body) or "set-due" in message.body
    mesh.start(numbers(2))
    mesh.run(until=timedelta(minutes=10))
    mesh.sweep()
    metric = next(line for line in capsys.readouterr().out.splitlines() if "FanInOpen" in line and "x-fan-in" in line)
    assert json.loads(metric)["FanInOpen"] == [1]
    mesh.clock.moment += timedelta(minutes=10)
    mesh.lost = lambda message: False
    mesh.sweep()
    mesh.run()
    assert mesh.result(phase="failed")["status"]["reason"] == "FanInTimeout"
    mesh.sweep()
    assert '"FanInOpen":[0' in capsys.readouterr().out.replace(" ", "").replace(".0", "")


def test_the_sweep_leaves_sets_alone_that_still_have_time(start: Start) -> None:
    mesh = start()
    mesh.lost = lambda message: message.actor == "score"
    mesh.start(numbers(2))
    mesh.run()
    before = len(mesh.world.messages("x-fan-in"))
    mesh.sweep()
    assert len(mesh.world.messages("x-fan-in")) == before


# --- cancellation


def test_a_canceled_slice_closes_nothing(start: Start) -> None:
    mesh = start(PARTIAL)
    mesh.world.gateway.states[child(1)] = TaskState(id=child(1), status="canceled")
    mesh.start(numbers(2))
    mesh.run()
    assert mesh.open_sets() == 1
    assert mesh.ends == [f"canceled/{child(1)}.json"]


def test_a_canceled_origin_leaves_its_set_at_once(start: Start) -> None:
    mesh = start()
    mesh.lost = lambda message: message.actor == "score"
    mesh.start(numbers(2))
    mesh.run()
    for name in ("env-1", child(1), child(2)):
        mesh.world.gateway.states[name] = TaskState(id=name, status="running" if name != "env-1" else "canceled",
                                                    root_status="canceled")  # fmt: skip
    for message in mesh.world.messages("score"):
        mesh.send("score", message.body)
    mesh.run()
    assert mesh.result(phase="canceled")["status"]["reason"] == "Canceled"
    assert mesh.open_sets() == 0
    assert [end for end in mesh.ends if end.startswith("failed")] == []


def test_an_origin_that_ended_elsewhere_closes_its_set(start: Start) -> None:
    mesh = start()
    mesh.lost = lambda message: message.actor == "score"
    mesh.start(numbers(2))
    # The origin meets its cancellation at the fan-in actor's door.
    original, mesh.lost = mesh.lost, lambda message: message.actor in ("score", "x-fan-in")
    mesh.run()
    mesh.world.gateway.states["env-1"] = TaskState(id="env-1", status="canceled")
    mesh.lost = original
    for message in mesh.world.messages("x-fan-in"):
        mesh.send("x-fan-in", message.body)
    mesh.run()
    assert mesh.ends == ["canceled/env-1.json"]
    assert mesh.open_sets() == 0
    for message in mesh.world.messages("score"):
        mesh.send("score", message.body)
    mesh.run(until=timedelta(hours=2))
    assert mesh.ends == ["canceled/env-1.json"]
    assert mesh.world.gateway.reported(child(1))[-1] == "succeeded"


# --- what may not come here


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
    assert sunk.status.error.message == "set s has 3 slices; slice 1 says 4"


def test_messages_about_sets_that_are_not_known_are_acked(start: Start) -> None:
    mesh = start()
    look = '{"type":"set-due","set_id":"nobody"}'
    canceled = (
        '{"type":"slice-ended","set_id":"n","slice_index":1,"slice_count":2,"phase":"canceled","reason":"Canceled"}'
    )
    assert mesh.process("x-fan-in", look, canceled, "no JSON at all") == []
    assert mesh.world.targets == ["x-sump"]


def test_a_user_fan_in_actor_works_like_x_fan_in(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(2) | {"at": "gather", "into": "/a/b"}, ahead=("gather", "post"))
    mesh.run()
    assert mesh.result()["payload"]["a"] == {"b": scored(2)}
    assert mesh.result()["route"]["prev"] == ["split", "gather", "post"]


# --- things go wrong


def test_a_report_that_is_not_taken_keeps_the_slice(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(2))
    first = child(1)
    mesh.world.gateway.item_status[first, "succeeded"] = 503
    mesh.run(until=timedelta(seconds=1))
    assert any(first in message.body for message in mesh.waiting)
    assert len(mesh.merged()) == 1  # the set does not wait for the report
    del mesh.world.gateway.item_status[first, "succeeded"]
    mesh.run(until=timedelta(minutes=2))
    assert mesh.world.gateway.reported(first)[-1] == "succeeded"
    assert len(mesh.world.messages("post")) == 1


def test_a_merged_envelope_that_could_not_be_sent_is_sent_again_the_same(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(2))
    mesh.world.sqs.refuse["asya-shop-post"] = [Refusal(code="X", sender_fault=True)] * 2
    mesh.run(until=timedelta(minutes=2))
    assert mesh.result()["payload"]["results"] == scored(2)
    assert len(mesh.world.messages("post")) == 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", range(1, 9))
def test_whenever_the_process_dies_over_the_last_slice_one_envelope_leaves(start: Start, call: int, when: str) -> None:
    mesh = start()
    held: list[Waiting] = []

    def hold(message: Waiting) -> bool:
        if message.actor == "x-fan-in" and child(2) in message.body and not held:
            held.append(message)
            return True
        return False

    mesh.lost = hold
    mesh.start(numbers(2))
    mesh.run()
    mesh.waiting += held
    mesh.deaths.calls, mesh.deaths.at = 0, {call: when}
    mesh.run(until=timedelta(minutes=10))
    assert mesh.deaths.calls > call
    assert len(mesh.merged()) == 1
    assert mesh.result()["payload"]["results"] == scored(2)
    assert mesh.world.gateway.reported(child(2))[-1] == "succeeded"
    assert mesh.open_sets() == 0
    # What comes once more finds everything done.
    sent = len(mesh.world.messages("post"))
    assert mesh.process("x-fan-in", held[0].body, held[0].body) == []
    assert len(mesh.world.messages("post")) == sent


def test_while_another_finishes_a_set_a_look_is_left_behind(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(1))
    sent = mesh.world.sqs.send_message_batch
    others: list[list[str]] = []

    def send(**request: Any) -> Any:
        if request["QueueUrl"].endswith("-post") and not others:
            others.append([])
            slices = [message.body for message in mesh.world.messages("x-fan-in") if "set-due" not in message.body]
            others[0] = mesh.process("x-fan-in", slices[-1])
        return sent(**request)

    mesh.world.monkeypatch.setattr(mesh.world.sqs, "send_message_batch", send)
    mesh.run()
    assert others == [[]]
    assert len(mesh.world.messages("post")) == 1
    looks = [message for message in mesh.world.messages("x-fan-in") if "set-due" in message.body]
    assert 61 in [look.delay for look in looks]
    mesh.run(until=timedelta(hours=2))
    assert len(mesh.world.messages("post")) == 1


def test_a_handler_that_never_fans_out_the_same_twice_has_done_so_once(start: Start) -> None:
    mesh = start()
    runs: list[int] = []

    def never_the_same(_payload: Any) -> Any:
        runs.append(1)
        return fan_out([{"n": len(runs)}] * (2 + len(runs)), to=["score"])

    mesh.world.monkeypatch.setattr(f"{HANDLERS}.split", never_the_same)
    mesh.world.sqs.refuse["asya-shop-score"] = [Refusal(code="X", sender_fault=True)] * 2
    mesh.start({})
    body = mesh.waiting[0].body
    mesh.run(until=timedelta(minutes=2))
    assert len(runs) == 1  # the redelivery found what had been kept
    mesh.send("split", body)  # sent twice by whoever sent it: a first receive
    mesh.run(until=timedelta(minutes=2))
    assert len(runs) == 2
    assert mesh.result()["payload"]["results"] == [{"scored": 10}] * 3
    assert len(mesh.merged()) == 1
    assert {json.loads(message.body)["payload"]["n"] for message in mesh.world.messages("score")} == {1}


# --- any order, duplicates, deaths

fates = st.sampled_from(["n", "n", "n", "fail", "nothing", "nest"])


@st.composite
def payloads(draw: st.DrawFn) -> dict[str, Any]:
    return {"items": [_item(draw, n, depth=0) for n in range(draw(st.integers(0, 3)))]}


def _item(draw: st.DrawFn, n: int, depth: int) -> Any:
    match draw(fates):
        case "fail":
            return {"fail": f"item {n}"}
        case "nothing":
            return {"nothing": True}
        case "nest" if depth == 0:
            return {"items": [_item(draw, inner, depth=1) for inner in range(draw(st.integers(0, 2)))]}
    return {"n": n}


def expected(item: Any, rule: FanIn) -> Any:
    """What becomes of an item; None if it is lost."""
    if "n" in item:
        return {"scored": item["n"] * 10}
    if "items" not in item:
        return None
    results = [expected(inner, rule) for inner in item["items"]]
    if rule.on_failure == "fail" and None in results:
        return None
    return item | {"results": results}


@given(
    payload=payloads(),
    rule=st.sampled_from([FanIn(), PARTIAL]),
    seed=st.integers(0, 2**32),
    deaths=st.dictionaries(st.integers(1, 120), st.sampled_from(["before", "after"]), max_size=4),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_in_any_order_with_duplicates_and_deaths_each_set_comes_to_one_end(
    dynamodb: "DynamoDBClient", payload: dict[str, Any], rule: FanIn, seed: int, deaths: dict[int, str]
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch, mesh_world(monkeypatch) as world:
        for kind in ("fan-in", "sink"):
            empty_table(dynamodb, kind)
        mesh = FanMesh(
            world, dynamodb, fan_table(rule), chance=random.Random(seed), duplicates=0.2, deaths=Deaths(dict(deaths))
        )
        mesh.start(payload)
        mesh.run(until=timedelta(hours=2))
        whole = expected(payload, rule)
        if whole is None:
            assert mesh.result(phase="failed")["status"]["reason"] == "SliceFailed"
            assert mesh.merged() == set()
        else:
            assert mesh.result()["payload"] == whole
            assert len(mesh.merged()) == 1
        assert len([end for end in mesh.ends if end.endswith("/env-1.json")]) == 1
        assert mesh.open_sets() == 0
