"""protocol §5.4: late copies of a message whose task has paused since."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from asya import fan_out
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol.mesh_table import Actor
from asya.tasks.task_state import TaskState
from tests.doubles.envelopes import message, status
from tests.doubles.large_payloads import LargePayloads
from tests.doubles.light_actor import LONG_AGO, echo, never, run
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

LATE = message(status=status(deadline_at=LONG_AGO))
SLICE = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2} | {
    "aggregation_key": "/results"
}
STATUSES = ("paused", "running", "succeeded", "failed")


def paused_at(epoch: int, state: str = "paused", **members: Any) -> TaskState:
    return TaskState(id="env-1", status=state, pause_epoch=epoch, **members)


def three(_: Any) -> Iterator[int]:
    """Yields three frames."""
    yield from (0, 1, 2)


def breaks_off(_: Any) -> Iterator[int]:
    """Yields two frames, then fails."""
    yield from (0, 1)
    raise ValueError("no more")


def payloads(world: MeshWorld, actor: str = "post") -> list[Any]:
    return [json.loads(bytes(sent.payload)) for sent in world.sent(actor)]


@pytest.mark.rule("5.4.late-copies")
@pytest.mark.parametrize("state", STATUSES)
@pytest.mark.parametrize("epoch", [1, 4])
def test_the_late_copy_of_a_handler_that_returns_is_acked_unrun(world: MeshWorld, state: str, epoch: int) -> None:
    world.states["env-1"] = paused_at(epoch, state)
    assert run(world, never, LATE, receive_counts={0: 2}, gives_one_frame=True) == []
    assert (world.targets, world.gateway.events) == ([], [])


@pytest.mark.rule("5.4.late-copies")
def test_a_canceled_tasks_late_copy_is_no_end_either(world: MeshWorld) -> None:
    world.states["env-1"] = paused_at(1, "canceled")
    assert run(world, three, LATE) == []
    assert world.targets == []


@pytest.mark.rule("5.4.late-copies")
@pytest.mark.parametrize("state", [paused_at(0), paused_at(1, generation=1), TaskState(id="env-1", status="paused")])
def test_a_hop_after_the_pause_and_one_of_another_generation_go_on(world: MeshWorld, state: TaskState) -> None:
    world.states["env-1"] = state
    assert run(world, echo, message()) == []
    assert world.targets == ["post"]


@pytest.mark.rule("5.4.late-copies")
@pytest.mark.parametrize("state", STATUSES)
def test_a_generator_runs_again_and_sends_its_children_only(world: MeshWorld, state: str) -> None:
    assert run(world, three, message()) == []
    first = world.sent("post")
    world.sqs.sent.clear()
    world.gateway.events.clear()
    world.states["env-1"] = paused_at(1, state)
    assert run(world, three, LATE, receive_counts={0: 2}) == []
    assert [sent.id for sent in world.sent("post")] == [sent.id for sent in first[1:]]
    assert payloads(world) == [1, 2]
    assert world.gateway.events == []


@pytest.mark.rule("5.4.late-copies", "4.claim-check.bad-reference")
@pytest.mark.parametrize("gives_one_frame", [True, False])
def test_a_late_copy_whose_payload_is_gone_fails_at_most_as_a_child(world: MeshWorld, gives_one_frame: bool) -> None:
    world.states["env-1"] = paused_at(1, "running")
    (gone,) = LargePayloads(size=10).messages(1, id="env-1", headers={"x-asya-fan-in": SLICE})
    assert run(world, never, gone, gives_one_frame=gives_one_frame) == []
    ends = [(end.parent_id, end.status and end.status.reason, end.route.curr) for end in world.sent("x-sump")]
    assert ends == ([] if gives_one_frame else [("env-1", "ParseError", "infer")])
    assert len(world.targets) == len(ends)
    assert world.gateway.events == []


@pytest.mark.rule("5.4.late-copies")
def test_a_generator_that_fails_again_fails_as_a_child(world: MeshWorld) -> None:
    world.states["env-1"] = paused_at(1)
    assert run(world, breaks_off, message()) == []
    assert payloads(world) == [1]
    (failed,) = world.sent("x-sink")
    assert (failed.parent_id, failed.id != "env-1") == ("env-1", True)


@pytest.mark.rule("5.4.late-copies")
@pytest.mark.parametrize("handler", [lambda _: None, echo])
def test_without_children_nothing_leaves(world: MeshWorld, handler: Callable[[Any], Any]) -> None:
    def generator(payload: Any) -> Iterator[Any]:
        result = handler(payload)
        if result is not None:
            yield result

    world.states["env-1"] = paused_at(1)
    assert run(world, generator, message()) == []
    assert [target for target in world.targets if target != "post"] == []
    assert world.sent("post") == []


@pytest.mark.rule("5.4.late-copies")
@pytest.mark.parametrize("handler", [three, lambda _: [0, 1, 2]])
def test_a_kept_list_is_sent_again_from_its_second_frame(world: MeshWorld, handler: Callable[[Any], Any]) -> None:
    spec = {"frames": "buffered", "fan_out_lists": True}
    assert run(world, handler, message(), **spec) == []
    world.sqs.sent.clear()
    world.states["env-1"] = paused_at(1, "running")
    assert run(world, never, LATE, **spec) == []
    assert payloads(world) == [1, 2]


@pytest.mark.rule("5.4.late-copies")
def test_a_handler_of_unknown_kind_runs_again(world: MeshWorld) -> None:
    world.states["env-1"] = paused_at(1)
    assert run(world, lambda _: [0, 1, 2], message(), fan_out_lists=True) == []
    assert payloads(world) == [1, 2]


@pytest.mark.rule("5.4.late-copies")
def test_a_buffered_list_that_was_not_stored_is_not_made(world: MeshWorld) -> None:
    world.states["env-1"] = paused_at(1)
    assert run(world, never, message(), frames="buffered") == []
    assert world.targets == []


@pytest.mark.rule("5.4.late-copies")
def test_a_fan_out_that_the_first_run_did_not_make_is_not_made(world: MeshWorld) -> None:
    def fans_out(_: Any) -> Iterator[Any]:
        yield from fan_out([1, 2], to=["post"])

    world.states["env-1"] = paused_at(1)
    assert run(world, fans_out, message(), others={"x-fan-in": Actor(kind="fan_in")}) == []
    assert world.targets == []


@pytest.mark.rule("5.4.late-copies")
def test_the_failed_child_of_a_slice_is_no_slice(world: MeshWorld) -> None:
    def fails(_: Any) -> Iterator[int]:
        yield 0
        raise ValueError("no more")

    world.states["env-1"] = paused_at(1)
    assert run(world, fails, message(headers={"x-asya-fan-in": SLICE})) == []
    (failed,) = world.sent("x-sink")
    assert "x-asya-fan-in" not in failed.headers


@pytest.mark.rule("5.4.late-copies")
def test_a_late_copy_on_the_wrong_queue_ends_nothing(world: MeshWorld) -> None:
    world.states["env-1"] = paused_at(1)
    assert run(world, three, message(route={"prev": ["prep"], "curr": "post", "next": []})) == []
    assert world.targets == []


@pytest.mark.rule("5.4.registered")
def test_a_redelivered_raw_envelope_is_looked_up(world: MeshWorld) -> None:
    world.states["env-1"] = paused_at(3)
    assert run(world, never, message(status=...), receive_counts={0: 2}, gives_one_frame=True) == []
    assert world.targets == []


@pytest.mark.rule("5.4.late-copies")
def test_under_deduplicate_a_late_copy_is_no_attempt(world: MeshWorld) -> None:
    world.states["env-1"] = paused_at(1)
    actor = build_sidecar(world.light(never, deduplicate=True, gives_one_frame=True))
    assert batch_failures(actor.process(sqs_event(LATE))) == []
    assert world.targets == []


@pytest.mark.rule("4.deduplicate")
def test_under_deduplicate_the_late_copy_of_a_completed_attempt_is_dropped(world: MeshWorld) -> None:
    """All of its frames have left: the mark follows the sends."""
    assert batch_failures(build_sidecar(world.light(three, deduplicate=True)).process(sqs_event(message()))) == []
    world.sqs.sent.clear()
    world.states["env-1"] = paused_at(1)
    assert batch_failures(build_sidecar(world.light(never, deduplicate=True)).process(sqs_event(LATE))) == []
    assert world.targets == []
