"""protocol §9: a set that would fail while the gateway does not say whether its origin is canceled."""

import json

import pytest

from asya.protocol.mesh_table import QUEUE_RECEIVES, FanIn
from asya.tasks.task_state import TaskState
from tests.doubles.fan_in_sets import PARTIAL, SET, Start, child, failure, numbers, scored
from tests.doubles.fan_mesh import FanMesh
from tests.doubles.mesh_world import batch_failures, sqs_event
from tests.doubles.task_states import THROTTLED


def ended(index: int, phase: str = "canceled") -> str:
    """The message about a slice that ended without a result."""
    message = {"type": "slice-ended", "set_id": SET, "slice_index": index, "slice_count": 3, "phase": phase}
    return json.dumps(message | {"reason": "", "error": None, "deadline_at": None})


def waiting(start: Start, rule: FanIn | None = None) -> FanMesh:
    """A set whose origin is stored, and the messages of its slices, while the tasks table refuses calls."""
    mesh = start(rule)
    mesh.is_lost = lambda message: message.actor == "x-fan-in" and '"slice_index":0' not in message.body
    mesh.start(numbers(2))
    mesh.run()
    mesh.is_lost = lambda message: False
    mesh.world.state_reads.error = THROTTLED
    return mesh


def process(mesh: FanMesh, body: str, receive: int) -> list[str]:
    return batch_failures(mesh.function("x-fan-in")(sqs_event(body, receive_counts={0: receive})))


def slices(mesh: FanMesh) -> list[str]:
    """The messages of slices 1 and 2 at the fan-in actor."""
    bodies = [message.body for message in mesh.world.messages("x-fan-in")]
    return [next(body for body in bodies if child(index) in body) for index in (1, 2)]


def cancel(mesh: FanMesh) -> None:
    """Let the table answer that the origin is canceled."""
    mesh.world.state_reads.error = None
    mesh.world.states["env-1"] = TaskState(id="env-1", status="canceled")


@pytest.mark.rule("9.canceled.unknown")
@pytest.mark.parametrize("rule", [FanIn(), PARTIAL])
def test_a_canceled_slice_waits_for_the_state_of_its_origin(start: Start, rule: FanIn) -> None:
    mesh = waiting(start, rule)
    for receive in (1, 2, 3, 4):
        assert process(mesh, ended(1), receive) == ["message-0"]
    assert mesh.open_sets() == 1
    cancel(mesh)
    assert process(mesh, ended(1), QUEUE_RECEIVES) == []
    mesh.run()
    assert mesh.ends == ["canceled/env-1.json"]
    assert mesh.open_sets() == 0


@pytest.mark.rule("9.canceled.unknown")
def test_the_last_receive_decides_without_an_answer(start: Start) -> None:
    mesh = waiting(start)
    assert process(mesh, ended(1), QUEUE_RECEIVES) == []
    mesh.run()
    assert failure(mesh) == ("SliceFailed", "SliceFailed", "slice 1 was canceled")


@pytest.mark.rule("9.canceled.unknown")
def test_no_other_slice_fails_the_set_while_the_state_is_unknown(start: Start) -> None:
    mesh = waiting(start)
    first, second = slices(mesh)
    assert process(mesh, ended(1), 1) == ["message-0"]
    assert process(mesh, second, 1) == ["message-0"]
    assert mesh.open_sets() == 1
    cancel(mesh)
    mesh.send("x-fan-in", second)
    mesh.send("x-fan-in", ended(1))
    mesh.run()
    assert [key for key in mesh.ends if "env-1" in key] == ["canceled/env-1.json"]
    assert first


@pytest.mark.rule("9.canceled.unknown")
def test_a_set_that_can_still_merge_waits_for_no_answer(start: Start) -> None:
    mesh = waiting(start)
    first, second = slices(mesh)
    assert mesh.process("x-fan-in", first, second) == []
    mesh.run()
    assert mesh.result()["payload"]["results"] == scored(2)


@pytest.mark.rule("9.canceled.unknown")
def test_a_set_out_of_time_waits_for_the_state_of_its_origin(start: Start) -> None:
    mesh = waiting(start, FanIn(timeout=60.0))
    (check,) = [message.body for message in mesh.world.messages("x-fan-in") if "set-due" in message.body]
    mesh.clock.moment = mesh.clock.moment.replace(minute=30)
    assert process(mesh, check, 1) == ["message-0"]
    assert process(mesh, check, QUEUE_RECEIVES) == []
    mesh.run()
    assert failure(mesh)[0] == "FanInTimeout"


@pytest.mark.rule("9.canceled.unknown")
def test_the_ends_of_a_batch_come_again_and_ask_again(start: Start) -> None:
    """The fan-in actor counts a batch at once; a slice that comes again would not ask for a canceled origin."""
    mesh = waiting(start, PARTIAL)
    _, second = slices(mesh)
    assert mesh.process("x-fan-in", ended(1), second) == ["message-0"]
    cancel(mesh)
    assert process(mesh, ended(1), 2) == []
    mesh.run()
    assert [key for key in mesh.ends if "env-1" in key] == ["canceled/env-1.json"]


@pytest.mark.rule("9.canceled.unknown")
def test_a_set_without_reports_has_no_state_to_ask_for(start: Start) -> None:
    mesh = start()
    mesh.is_lost = lambda message: message.actor == "x-fan-in" and '"slice_index":0' not in message.body
    route = {"prev": [], "curr": "split", "next": ["x-fan-in", "post"]}
    envelope = {"id": "env-1", "route": route, "headers": {"x-asya-mesh-status": "off"}, "payload": numbers(2)}
    mesh.send("split", json.dumps(envelope))
    mesh.run()
    mesh.world.state_reads.error = THROTTLED
    assert process(mesh, ended(1), 1) == []
    assert mesh.world.state_reads.asked == []
