"""protocol §5.4: a task that is canceled while the batch of its message is at work."""

from dataclasses import replace
from typing import Any

import pytest

from asya.function.lambdas.environment import RealEnvironment
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol.mesh_table import Actor
from asya.tasks.task_state import TaskState
from tests.doubles.envelopes import message
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.task_states import SILENT

COUNT = 6


class Clock(RealEnvironment):
    """A clock that only the handlers of a test advance."""

    is_threaded = False

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


def batch(*, statuses: Any = None, receives: int = 1) -> dict[str, Any]:
    """Messages of tasks `env-0` to `env-5`, in this order also when their messages were received before."""
    more = {} if statuses is None else {"status": statuses}
    bodies = [message(id=f"env-{number}", payload=number, **more) for number in range(COUNT)]
    return sqs_event(*bodies, receive_counts=dict.fromkeys(range(COUNT), receives))


def cancel_after(world: MeshWorld, seconds: float, canceled: str, **spec: Any) -> tuple[Any, list[int]]:
    """A sidecar whose handler takes some seconds; the first call cancels a task when it has ended."""
    clock, called = Clock(), list[int]()

    def handler(payload: int) -> int:
        clock.seconds += seconds
        called.append(payload)
        if len(called) == 1:
            world.states[canceled] = TaskState(id=canceled, status="canceled")
        return payload

    services = replace(world.light(handler, **spec), environment=clock)
    return build_sidecar(services), called


@pytest.mark.rule("5.4.fresh", "5.4")
@pytest.mark.parametrize("receives", [1, 3])
def test_a_task_canceled_while_its_batch_is_at_work_is_not_started(world: MeshWorld, receives: int) -> None:
    actor, called = cancel_after(world, 20, "env-4")
    assert batch_failures(actor.process(batch(receives=receives))) == []
    assert called == [0, 1, 2, 3, 5]
    assert [ended.id for ended in world.sent("x-sink")] == ["env-4"]


@pytest.mark.rule("5.4.fresh", "9.cancel-root")
def test_the_root_of_a_child_is_read_again_too(world: MeshWorld) -> None:
    actor, called = cancel_after(world, 20, "env-0")
    children = [message(id=f"child-{number}", payload=number, headers={"x-asya-root": "env-0"}) for number in range(4)]
    assert batch_failures(actor.process(sqs_event(*children))) == []
    assert called == [0]
    assert len(world.sent("x-sink")) == 3


@pytest.mark.rule("5.4.fresh", "5.4.registered")
def test_so_is_the_state_of_a_task_that_the_batch_has_registered(world: MeshWorld) -> None:
    actor, called = cancel_after(world, 20, "env-5")
    assert batch_failures(actor.process(batch(statuses=...))) == []
    assert called == [0, 1, 2, 3, 4]


@pytest.mark.rule("5.4.fresh")
@pytest.mark.parametrize(
    ("seconds", "asked"), [(0.5, [6]), (1.0, [6]), (2.0, [6, 3]), (5.0, [6, 4, 2]), (5.1, [6, 5, 4, 3, 2, 1])]
)
def test_a_call_asks_for_all_that_is_left_and_a_fast_batch_makes_one(
    world: MeshWorld, seconds: float, asked: list[int]
) -> None:
    actor, called = cancel_after(world, seconds, "other")
    assert batch_failures(actor.process(batch())) == []
    assert called == list(range(COUNT))
    assert [len(ids) for ids in world.state_reads.asked] == asked


@pytest.mark.rule("5.4.fresh", "5.4.go-on")
def test_a_second_read_without_an_answer_forgets_nothing(world: MeshWorld) -> None:
    actor, called = cancel_after(world, 20, "other")
    world.states["env-3"] = TaskState(id="env-3", status="canceled")
    world.state_reads.watch = lambda: setattr(world.state_reads, "error", None if not called else SILENT)
    assert batch_failures(actor.process(batch())) == []
    assert called == [0, 1, 2, 4, 5]
    # Silence pauses the queries: a batch does not wait for each of its messages.
    assert len(world.state_reads.asked) <= 4


@pytest.mark.rule("5.4.fresh", "5.4.late-copies")
def test_a_pause_that_began_meanwhile_makes_a_late_copy(world: MeshWorld) -> None:
    clock, called = Clock(), list[int]()

    def handler(payload: int) -> int:
        clock.seconds += 20
        called.append(payload)
        world.states["env-2"] = TaskState(id="env-2", status="paused", pause_epoch=3)
        return payload

    services = world.light(handler, gives_one_frame=True, others={"post": Actor(kind="handler", handler="m.f")})
    actor = build_sidecar(replace(services, environment=clock))
    assert batch_failures(actor.process(batch(receives=3))) == []
    assert called == [0, 1, 3, 4, 5]
    assert len(world.sent("post")) == 5
