"""protocol §11: the ends that the DLQ function reports have the time of the claim that holds."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from asya.ends.aws.end_claims import Claim, EndClaims
from asya.protocol import ids
from asya.protocol.mesh_table import Actor
from asya.protocol.times import parse_time
from asya.testing.services.queues import Refusal
from tests.doubles.dead_letters import MESH, DlqWorld
from tests.doubles.envelopes import mesh, message
from tests.doubles.fan_mesh import Clock
from tests.doubles.mesh_world import MeshWorld

ENDS = "asya-shop-x-ends"
HOUR = timedelta(hours=1)
SLICE = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": 2, "slice_count": 3}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def dlq_world(world: MeshWorld, clock: Clock) -> DlqWorld:
    return DlqWorld(world, replace(world.services("x-dlq", MESH), environment=clock))


def claim(dlq_world: DlqWorld, phase: str, clock: Clock) -> datetime:
    """Another component claims the end of the envelope; returns when."""
    claims = EndClaims(dlq_world.world.dynamodb, "asya-shop-sink", keep_seconds=60)  # type: ignore[arg-type]
    claimed_at = clock.now()
    claims.take(Claim("env-1", 0, phase, f"{phase}/env-1.json", 1), epoch_seconds=claimed_at.timestamp())
    clock.moment += HOUR
    return claimed_at


def reported(dlq_world: DlqWorld) -> list[tuple[str, str, bool, datetime]]:
    """Id, status, whether it is provisional, and time of each report."""
    events = dlq_world.world.gateway.events
    return [(each.id, each.status, each.data.provisional, parse_time(each.at)) for each in events]


@pytest.mark.rule("11.sink.claimed-at")
def test_a_later_scan_reports_with_the_time_of_the_first_claim(dlq_world: DlqWorld, clock: Clock) -> None:
    dlq_world.put("infer", "m-1", message())
    dlq_world.world.sqs.refuse_always[ENDS] = Refusal("call")
    dlq_world.scan()
    first_scan_ended_at = clock.now()
    dlq_world.world.sqs.refuse_always.clear()
    clock.moment += HOUR
    dlq_world.scan()
    ((envelope_id, status, is_provisional, at),) = reported(dlq_world)
    assert (envelope_id, status, is_provisional) == ("env-1", "failed", True)
    assert at < first_scan_ended_at


@pytest.mark.rule("11.sink.claimed-at", "13.cancel")
def test_the_success_of_a_slice_has_the_time_at_which_its_fan_in_actor_claimed_it(
    dlq_world: DlqWorld, clock: Clock
) -> None:
    """A cancellation in between loses (§13.cancel)."""
    claimed_at = claim(dlq_world, "succeeded", clock)
    at_fan_in = {"prev": ["prep"], "curr": "x-fan-in", "next": []}
    dlq_world.put(
        "x-fan-in", "m-1", message(route=at_fan_in, headers={"x-asya-fan-in": SLICE | {"aggregation_key": "/r"}})
    )
    dlq_world.scan("x-fan-in")
    assert reported(dlq_world) == [("env-1", "succeeded", False, claimed_at)]


@pytest.mark.rule("11.sink.claimed-at")
def test_a_failed_child_has_the_time_of_its_own_claim(dlq_world: DlqWorld, clock: Clock) -> None:
    dlq_world.services = replace(
        dlq_world.world.services("x-dlq", mesh({"infer": Actor(kind="handler", handler="handlers.infer")})),
        environment=clock,
    )
    claimed_at = claim(dlq_world, "succeeded", clock)
    dlq_world.put("infer", "m-1", message())
    dlq_world.scan()
    ((envelope_id, status, is_provisional, at),) = reported(dlq_world)
    assert (envelope_id, status, is_provisional) == (ids.child_id("env-1", 0, 1, "error"), "failed", True)
    assert at >= claimed_at + HOUR
