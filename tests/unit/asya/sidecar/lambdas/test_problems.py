"""protocol §13, problem: a queue that refuses messages shows in the record while it does."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asya.protocol.errors import TaskProblem
from asya.protocol.times import format_time
from asya.tasks.task_state import TaskState
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import message, status
from tests.doubles.light_actor import LONG_AGO, echo, never, run
from tests.doubles.mesh_world import MeshWorld


def problems(world: MeshWorld, task_id: str = "env-1") -> list[tuple[str, TaskProblem]]:
    """The reported problems of a task, each with the status of its report."""
    events = [event for event in world.gateway.events if event.id == task_id and event.data.problem is not None]
    return [(event.status, event.data.problem) for event in events if event.data.problem is not None]


@pytest.mark.rule("13.problem")
@pytest.mark.parametrize("code", ["AccessDenied", "QueueDoesNotExist", "KmsAccessDenied"])
def test_a_refused_frame_keeps_the_message_and_reports_queue_and_actor(world: MeshWorld, code: str) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal("call", code)
    assert run(world, echo, message()) == ["message-0"]
    words = f"the queue of post (asya-shop-post) refuses messages of infer: {code}"
    assert problems(world) == [("completed", TaskProblem(code, words))]
    assert world.gateway.events[-1].data.problem is not None
    assert world.targets == []


@pytest.mark.rule("13.problem")
@pytest.mark.parametrize("is_fault", [True, False])
def test_the_refusal_of_a_single_entry_is_a_problem_too(world: MeshWorld, is_fault: bool) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal("entry", "AccessDenied", is_fault)
    assert run(world, echo, message()) == ["message-0"]
    words = "the queue of post (asya-shop-post) refuses messages of infer: AccessDenied"
    assert problems(world) == [("completed", TaskProblem("AccessDenied", words))]


LATER = format_time(datetime.now(UTC) + timedelta(hours=20))


@pytest.mark.rule("13.problem.before-the-hop")
@pytest.mark.parametrize("receives", [1, 2])
@pytest.mark.parametrize(
    ("members", "target"),
    [
        ({"headers": {"x-asya-not-before": LATER}}, "infer"),
        ({"headers": {"x-asya-not-before": LATER}, "status": ...}, "infer"),
        ({"status": status(deadline_at=LONG_AGO)}, "x-sink"),
        ({"route": {"prev": [], "curr": "post", "next": []}}, "x-sump"),
        ({"payload": ...}, "x-sump"),
    ],
    ids=["postponed", "postponed-new", "late", "misplaced", "unreadable"],
)
def test_an_envelope_that_is_refused_before_its_hop_has_a_problem(
    world: MeshWorld, members: dict[str, Any], target: str, receives: int
) -> None:
    world.sqs.refuse_always[f"asya-shop-{target}"] = Refusal("call", "AccessDenied")
    assert run(world, never, message(**members), receive_counts={0: receives}) == ["message-0"]
    words = f"the queue of {target} (asya-shop-{target}) refuses messages of infer: AccessDenied"
    assert problems(world) == [("processing", TaskProblem("AccessDenied", words))]


@pytest.mark.rule("13.problem.before-the-hop")
def test_a_child_that_ends_with_its_root_has_a_problem(world: MeshWorld) -> None:
    world.states["root"] = TaskState(id="root", status="canceled")
    world.sqs.refuse_always["asya-shop-x-sink"] = Refusal("entry", "AccessDenied", sender_fault=True)
    assert run(world, never, message(parent_id="root")) == ["message-0"]
    assert [status for status, _ in problems(world)] == ["processing"]


@pytest.mark.rule("13.problem")
def test_a_refused_retry_is_a_problem_of_a_hop_at_work(world: MeshWorld) -> None:
    def fail(_: Any) -> Any:
        raise ValueError

    world.sqs.refuse_always["asya-shop-x-sink"] = Refusal("call", "AccessDenied")
    assert run(world, fail, message()) == ["message-0"]
    assert [status for status, _ in problems(world)] == ["processing"]


@pytest.mark.rule("13.problem")
@pytest.mark.parametrize(
    "refusal", [Refusal(), Refusal("call", "ThrottlingException"), Refusal("call", "KmsThrottled")]
)
def test_what_passes_by_itself_is_no_problem(world: MeshWorld, refusal: Refusal) -> None:
    world.sqs.refuse_always["asya-shop-post"] = refusal
    assert run(world, echo, message()) == ["message-0"]
    assert problems(world) == []


def test_a_stealth_envelope_reports_no_problem(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal("call", "AccessDenied")
    assert run(world, echo, message(headers={"x-asya-mesh-status": "off"})) == ["message-0"]
    assert world.gateway.events == []


def test_only_the_kept_message_of_a_batch_has_a_problem(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal("call", "AccessDenied")
    last = {"prev": [], "curr": "infer", "next": []}
    assert run(world, echo, message(), message(id="env-2", route=last)) == ["message-0"]
    assert len(problems(world)) == 1
    assert problems(world, "env-2") == []
