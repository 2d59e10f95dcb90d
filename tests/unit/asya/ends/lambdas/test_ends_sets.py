"""protocol §9.slice-ended: how many messages the end of an envelope costs at x-sink and x-sump, whatever its header says."""

import json
import random

import pytest

from asya.ends.lambdas.wiring import build_sump
from asya.protocol.headers import MAX_ENCLOSING_SETS
from asya.protocol.mesh_table import Actor, FanIn
from tests.doubles.envelopes import mesh
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.nested_sets import DEPTHS, nested, notified
from tests.doubles.sink import ended, run_sink

FAN_IN = Actor(kind="fan_in", fan_in=FanIn())
ACTORS = {"x-fan-in": FAN_IN, "gather": FAN_IN}


@pytest.mark.rule("9.slice-ended", "9.nesting.depth")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("door", ["x-sink", "x-sump"])
@pytest.mark.usefixtures("sink_claims")
def test_an_end_sends_one_message_to_each_set_and_none_for_a_header_that_is_too_deep(
    world: MeshWorld, door: str, depth: int, seed: int
) -> None:
    header = nested(depth, random.Random(seed), tuple(ACTORS))
    body = ended("failed", headers={"x-asya-fan-in": header})
    if door == "x-sink":
        assert run_sink(world, body, actors=ACTORS) == []
    else:
        assert batch_failures(build_sump(world.services(door, mesh(ACTORS))).process(sqs_event(body))) == []
    told = [(actor, json.loads(each.body)["set_id"]) for actor in ACTORS for each in world.messages(actor)]
    assert len(told) <= MAX_ENCLOSING_SETS + 1
    assert sorted(told) == sorted(notified(header))


@pytest.mark.rule("9.slice-ended")
@pytest.mark.usefixtures("sink_claims")
def test_a_set_gets_the_end_that_is_stored_and_no_second_one(world: MeshWorld) -> None:
    """A redelivery may run into another error; the record has the first."""
    header = nested(0, random.Random(0), tuple(ACTORS))
    ends = (
        ended(
            "failed", headers={"x-asya-fan-in": header}, status=json.loads(ended("failed"))["status"] | {"reason": why}
        )
        for why in ("Timeout", "RuntimeCrash")
    )
    for body in ends:
        assert run_sink(world, body, actors=ACTORS) == []
    assert [json.loads(each.body)["reason"] for each in world.messages(header["actor"])] == ["Timeout", "Timeout"]
