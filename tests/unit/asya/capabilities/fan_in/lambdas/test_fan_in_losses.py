"""protocol §9: slices that end without a result."""

import json

import pytest

from asya.protocol.mesh_table import Actor, FanIn, Policy, Resiliency
from tests.doubles.fan_in_sets import PARTIAL, Start, child, failure
from tests.doubles.fan_mesh import HANDLERS, QueuedMessage, fan_table
from tests.doubles.mesh_world import MeshWorld


@pytest.mark.rule("9.on_failure.fail")
def test_a_failing_slice_fails_the_origin_with_its_error(start: Start) -> None:
    mesh = start()
    mesh.start({"items": [{"n": 1}, {"fail": "no such airport"}, {"n": 3}]})
    mesh.run()
    assert failure(mesh) == (
        "SliceFailed",
        "ValueError",
        f"slice 2 ({child(2)}) at score: no such airport",
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


@pytest.mark.rule("5.1.headers", "9.slice-ended")
def test_a_slice_that_became_unreadable_fails_the_origin_at_once(start: Start) -> None:
    mesh = start()

    def spoil(message: QueuedMessage) -> bool:
        envelope = json.loads(message.body)
        if (message.actor, envelope.get("id")) == ("score", child(2)):
            del envelope["payload"]
            message.body = json.dumps(envelope)
        return False

    mesh.is_lost = spoil
    mesh.start({"items": [{"n": 1}, {"n": 2}, {"n": 3}]})
    mesh.run()
    assert failure(mesh) == (
        "SliceFailed",
        "ParseError",
        f"slice 2 ({child(2)}) at x-sump: Failed to parse message: payload is missing",
    )
    assert mesh.open_sets() == 0


@pytest.mark.rule("9.on_failure.partial")
def test_partial_sets_have_null_in_the_lost_ones_place(start: Start) -> None:
    mesh = start(PARTIAL)
    mesh.start({"items": [{"n": 1}, {"fail": "x"}, {"n": 3}]})
    mesh.run()
    assert mesh.result()["payload"]["results"] == [{"scored": 10}, None, {"scored": 30}]


@pytest.mark.rule("9.on_failure.partial")
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
        "message": f"slice 1 ({child(1)}) at score ended without a result",
        "mro": [],
        "traceback": "",
    }


@pytest.mark.rule("9.one-frame")
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


@pytest.mark.rule("9.slice-ended")
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
    ends = [key for key in mesh.ends if "/env-" in key]
    assert ends == ["succeeded/env-1.json", "succeeded/env-2.json"]
    assert f"succeeded/{child(1)}.json" in mesh.ends
    assert len(mesh.ends) == 4  # two slices were archived; x-sink stores their ends
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
    assert "'post' is not a fan-in actor" in sunk.status.error.message


def test_a_failed_inner_set_is_a_failed_slice_of_the_outer_one(start: Start) -> None:
    mesh = start()
    inner = {"items": [{"n": 1}, {"fail": "deep inside"}]}
    mesh.start({"items": [{"n": 7}, inner]})
    mesh.run()
    status = mesh.result(phase="failed")["status"]
    assert status["reason"] == "SliceFailed"
    outer, inner_slice, message = status["error"]["message"].split(": ")
    assert outer == f"slice 2 ({child(2)}) at x-fan-in"
    assert inner_slice.startswith("slice 2 (")
    assert inner_slice.endswith(") at score")
    assert message == "deep inside"
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
    assert mesh.result(phase="failed")["status"]["error"]["message"] == f"slice 1 ({child(1)}) at score: always"
    assert len([m for m in mesh.world.messages("score") if "always" in m.body]) == 2
