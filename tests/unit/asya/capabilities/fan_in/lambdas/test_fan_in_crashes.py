"""protocol §9: each set ends once, despite crashes, refused calls and messages in any order."""

import json
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asya import fan_out
from asya.protocol.errors import TaskProblem
from asya.protocol.mesh_table import FanIn
from asya.protocol.times import format_time
from asya.testing.services.queues import Refusal
from tests.doubles.fan_in_sets import PARTIAL, Start, child, hold_back, numbers, scored
from tests.doubles.fan_mesh import HANDLERS, CrashSchedule, FanMesh, fan_table
from tests.doubles.mesh_world import empty_table, mesh_world

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.mark.rule("5.must-arrive")
def test_a_report_that_is_not_taken_keeps_the_slice(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(2))
    first = child(1)
    mesh.world.gateway.item_status[first, "succeeded"] = 503
    mesh.run(until=timedelta(seconds=1))
    assert any(first in message.body for message in mesh.queued)
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


@pytest.mark.rule("13.problem.senders")
def test_a_queue_that_refuses_the_merged_envelope_is_a_problem_of_the_origin(start: Start) -> None:
    mesh = start()
    held = hold_back(mesh, child(2))
    mesh.start(numbers(2))
    mesh.run()
    mesh.world.sqs.refuse_always["asya-shop-post"] = Refusal("call", "AccessDenied")
    # The message at work is that of the last slice, not the origin's.
    assert mesh.process("x-fan-in", held[0].body) == ["message-0"]
    problems = {event.data.problem for event in mesh.world.gateway.events if event.id == "env-1"} - {None}
    words = "the queue of post (asya-shop-post) refuses messages of x-fan-in: AccessDenied"
    assert problems == {TaskProblem("AccessDenied", words)}


@pytest.mark.rule("9.merge.once")
@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", range(1, 9))
def test_whenever_the_process_dies_over_the_last_slice_one_envelope_leaves(start: Start, call: int, when: str) -> None:
    mesh = start()
    held = hold_back(mesh, child(2))
    mesh.start(numbers(2))
    mesh.run()
    mesh.queued += held
    mesh.crashes.calls, mesh.crashes.at = 0, {call: when}
    mesh.run(until=timedelta(minutes=10))
    assert mesh.crashes.calls > call
    assert len(mesh.merged()) == 1
    assert mesh.result()["payload"]["results"] == scored(2)
    assert mesh.world.gateway.reported(child(2))[-1] == "succeeded"
    assert mesh.open_sets() == 0
    # What comes once more finds everything done.
    sent = len(mesh.world.messages("post"))
    assert mesh.process("x-fan-in", held[0].body, held[0].body) == []
    assert len(mesh.world.messages("post")) == sent


@pytest.mark.rule("9.count")
@pytest.mark.parametrize("call", range(1, 6))
def test_an_origin_that_was_stored_in_time_closes_its_set(start: Start, call: int) -> None:
    """Its process dies before the set knows of it, it comes again after its deadline, and another copy has ended the task."""
    mesh = start()
    held = hold_back(mesh, "env-1")
    mesh.start(numbers(2), deadline_at=format_time(mesh.clock.moment + timedelta(seconds=4)))
    mesh.run()
    done = {"phase": "succeeded", "reason": "Completed", "actor": "split"}
    route = {"prev": ["split"], "curr": "", "next": []}
    mesh.send("x-sink", json.dumps({"id": "env-1", "route": route, "status": done, "payload": {}}))
    mesh.run()
    mesh.queued += held
    mesh.crashes.calls, mesh.crashes.at = 0, {call: "after"}
    mesh.run(until=timedelta(hours=2))
    assert [end for end in mesh.ends if end.endswith("/env-1.json")] == ["succeeded/env-1.json"]
    items = {item["sk"]["S"]: item for item in mesh.dynamodb.scan(TableName="asya-shop-fan-in")["Items"]}
    assert "slice#000000" in items
    assert "delivered" in items["set"]


def test_a_check_is_sent_while_another_process_finishes_the_set(start: Start) -> None:
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


@pytest.mark.rule("6.buffered.fan-out")
def test_a_handler_that_never_fans_out_the_same_twice_has_done_so_once(start: Start) -> None:
    mesh = start()
    runs: list[int] = []

    def never_the_same(_payload: Any) -> Any:
        runs.append(1)
        return fan_out([{"n": len(runs)}] * (2 + len(runs)), to=["score"])

    mesh.world.monkeypatch.setattr(f"{HANDLERS}.split", never_the_same)
    mesh.world.sqs.refuse["asya-shop-score"] = [Refusal(code="X", sender_fault=True)] * 2
    mesh.start({})
    body = mesh.queued[0].body
    mesh.run(until=timedelta(minutes=2))
    assert len(runs) == 1  # the redelivery found what had been kept
    mesh.send("split", body)  # its sender sends it twice: a first receive
    mesh.run(until=timedelta(minutes=2))
    assert len(runs) == 2
    assert mesh.result()["payload"]["results"] == [{"scored": 10}] * 3
    assert len(mesh.merged()) == 1
    assert {json.loads(message.body)["payload"]["n"] for message in mesh.world.messages("score")} == {1}


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


@pytest.mark.rule("9.stored-once")
@pytest.mark.slow
@given(
    payload=payloads(),
    rule=st.sampled_from([FanIn(), PARTIAL]),
    seed=st.integers(0, 2**32),
    crashes=st.dictionaries(st.integers(1, 120), st.sampled_from(["before", "after"]), max_size=4),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_in_any_order_with_duplicates_and_deaths_each_set_comes_to_one_end(
    dynamodb: "DynamoDBClient", payload: dict[str, Any], rule: FanIn, seed: int, crashes: dict[int, str]
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch, mesh_world(monkeypatch) as world:
        for kind in ("fan-in", "sink"):
            empty_table(dynamodb, kind)
        mesh = FanMesh(
            world,
            dynamodb,
            fan_table(rule),
            rng=random.Random(seed),
            duplicates=0.2,
            crashes=CrashSchedule(dict(crashes)),
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
