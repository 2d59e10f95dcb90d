"""protocol §11, x-sump: a failure that replaces the end of an earlier generation removes the object of that end."""

import pytest

from asya.ends.aws.end_claims import Claim, EndClaims
from asya.ends.lambdas.wiring import build_sump
from asya.protocol.codec import decode
from asya.protocol.mesh_table import Sink
from tests.doubles.envelopes import mesh, message, status
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.sink import ERROR, ended, results, run_sink

BY_TIME = Sink(layout="by-time", succeeded_prefix="happy-asya/", failed_prefix="error-asya/")


def fail(world: MeshWorld, generation: int = 1, options: Sink | None = None) -> list[str]:
    """An envelope fails straight to x-sump; returns the ids of the messages that stay."""
    failed = status(phase="failed", reason="RouteMismatch", updated_at="2025-11-18T14:31:00.000000Z", error=ERROR)
    body = message(status=failed, headers={"x-asya-generation": generation})
    actor = build_sump(world.services("x-sump", mesh(sink=options or Sink(index=False))))
    return batch_failures(actor.process(sqs_event(body)))


def end_provisionally(world: MeshWorld, generation: int) -> None:
    """The message of a generation becomes a dead letter."""
    claims = EndClaims(world.dynamodb, "asya-shop-sink", keep_seconds=60)  # type: ignore[arg-type]
    claim = Claim("env-1", generation, "failed", "failed/env-1.json", is_provisional=True)
    assert claims.take(claim, epoch_seconds=0).outcome == "taken"


@pytest.mark.rule("11.sump.replaced", "11.sink.claim", "12.newer-object")
@pytest.mark.parametrize("phase", ["succeeded", "failed", "canceled"])
def test_a_failure_of_a_higher_generation_removes_the_older_object(world: MeshWorld, phase: str) -> None:
    assert run_sink(world, ended(phase)) == []
    assert fail(world) == []
    assert results(world) == ["sump/env-1.json"]
    assert decode(world.s3.content("results/sump/env-1.json")).generation == 1


@pytest.mark.rule("11.sump.replaced", "11.sink.claim", "12.newer-object")
@pytest.mark.parametrize("phase", ["succeeded", "failed"])
def test_it_removes_the_older_object_in_every_layout(world: MeshWorld, phase: str) -> None:
    assert run_sink(world, ended(phase), options=BY_TIME) == []
    assert fail(world, options=BY_TIME) == []
    assert [key for key in results(world) if not key.startswith("index/")] == ["sump/env-1.json"]


@pytest.mark.rule("11.sump.replaced", "11.sink.claim", "12.newer-object")
@pytest.mark.parametrize("action", ["head", "delete"])
@pytest.mark.parametrize("phase", ["succeeded", "failed"])
def test_the_older_object_is_removed_though_the_process_dies_in_between(
    world: MeshWorld, phase: str, action: str
) -> None:
    assert run_sink(world, ended(phase)) == []
    world.s3.fails = lambda each, key: each == action
    assert fail(world) == ["message-0"]
    assert results(world) == [f"{phase}/env-1.json", "sump/env-1.json"]
    world.s3.fails = lambda *_: False
    assert fail(world) == []
    assert results(world) == ["sump/env-1.json"]
    assert [(each.status, each.generation) for each in world.gateway.events if each.generation] == [("failed", 1)] * 2


@pytest.mark.rule("11.sump.replaced", "11.sink.claim")
def test_the_older_object_stays_until_the_copy_is_written(world: MeshWorld) -> None:
    assert run_sink(world, ended()) == []
    world.s3.fails = lambda action, key: "sump/" in key
    assert fail(world) == ["message-0"]
    assert results(world) == ["succeeded/env-1.json"]


@pytest.mark.rule("11.sump.replaced", "11.sink.claim")
def test_the_object_of_a_failure_that_came_by_x_sink_stays(world: MeshWorld) -> None:
    assert run_sink(world, ended()) == []
    assert run_sink(world, ended("failed", headers={"x-asya-generation": 1})) == []
    assert fail(world) == []
    assert results(world) == ["failed/env-1.json", "sump/env-1.json"]


@pytest.mark.rule("11.sump.replaced", "11.sink.claim", "11.sink.provisional")
def test_a_provisional_end_in_between_does_not_hide_the_older_object(world: MeshWorld) -> None:
    assert run_sink(world, ended()) == []
    for generation in (1, 2):
        end_provisionally(world, generation)
    assert fail(world, generation=2) == []
    assert results(world) == ["sump/env-1.json"]


@pytest.mark.rule("11.sump.replaced", "11.sink.claim", "11.sink.provisional")
def test_a_provisional_end_hides_no_object_that_the_end_before_it_had_to_remove(world: MeshWorld) -> None:
    assert run_sink(world, ended("failed")) == []
    world.s3.fails = lambda action, key: action == "delete"
    assert run_sink(world, ended(headers={"x-asya-generation": 1})) == ["message-0"]
    world.s3.fails = lambda *_: False
    assert results(world) == ["failed/env-1.json", "succeeded/env-1.json"]
    end_provisionally(world, 2)
    assert fail(world, generation=2) == []
    assert results(world) == ["sump/env-1.json"]


@pytest.mark.rule("11.sump.replaced", "11.sink.claim", "12.newer-object")
@pytest.mark.parametrize("step", ["head", "delete"])
@pytest.mark.parametrize("phase", ["succeeded", "failed"])
def test_an_object_of_a_later_generation_stays(world: MeshWorld, phase: str, step: str) -> None:
    """The envelope is sent again, and ends, right before a step of the removal."""
    assert run_sink(world, ended(phase)) == []

    def redrive(action: str, key: str) -> bool:
        if (action, key) == (step, f"results/{phase}/env-1.json"):
            world.s3.fails = lambda *_: False
            assert run_sink(world, ended(phase, headers={"x-asya-generation": 2})) == []
        return False

    world.s3.fails = redrive
    assert fail(world) == []
    assert decode(world.s3.content(f"results/{phase}/env-1.json")).generation == 2
