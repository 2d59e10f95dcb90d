"""protocol §13, problem.senders: a queue that refuses the report of an end, or what x-sink and x-sump send."""

from typing import Any

import pytest

from asya.ends.lambdas.wiring import build_sink, build_sump
from asya.protocol.mesh_table import Sink
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import mesh, message, status
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

DONE = {"route": {"prev": ["prep", "infer"], "curr": "", "next": []}, "status": status(phase="succeeded")}
ERROR = {"type": "ValueError", "message": "bad"}
FAILED = {"status": status(phase="failed", reason="RuntimeError", error=ERROR)}
BUILD = {"x-sink": build_sink, "x-sump": build_sump}


def run(world: MeshWorld, actor: str, body: bytes) -> list[str]:
    """Process one message; returns the ids of the messages that stay on the queue."""
    services = world.services(actor, mesh(sink=Sink()))
    return batch_failures(BUILD[actor](services).process(sqs_event(body)))


def problems(world: MeshWorld) -> list[tuple[str, str]]:
    """The reported problems: the id of the task, and the message."""
    return [(event.id, event.data.problem.message) for event in world.gateway.events if event.data.problem is not None]


@pytest.mark.rule("13.problem.senders")
@pytest.mark.parametrize("refusal", [Refusal("call", "AccessDenied"), Refusal("entry", "AccessDenied", True)])
@pytest.mark.parametrize(
    ("actor", "members"), [("x-sink", DONE), ("x-sink", FAILED), ("x-sump", FAILED), ("x-sump", {"status": ...})]
)
def test_a_refused_end_is_a_problem(world: MeshWorld, actor: str, members: dict[str, Any], refusal: Refusal) -> None:
    world.sqs.refuse_always["asya-shop-x-ends"] = refusal
    body = message(**members)
    assert run(world, actor, body) == ["message-0"]
    words = f"the queue of x-ends (asya-shop-x-ends) refuses messages of {actor}: AccessDenied"
    assert problems(world) == [("env-1", words)]
    world.sqs.refuse_always.clear()
    assert run(world, actor, body) == []
    assert world.gateway.reported("env-1")[-1] in ("succeeded", "failed")


@pytest.mark.rule("13.problem.senders")
def test_an_end_that_cannot_reach_x_sump_is_a_problem(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-x-sump"] = Refusal("entry", "AccessDenied")
    missing = message(**DONE, headers={"x-asya-payload-ref": {"key": "payloads/env-1/gone", "size": 5}})
    assert run(world, "x-sink", missing) == ["message-0"]
    assert problems(world) == [
        ("env-1", "the queue of x-sump (asya-shop-x-sump) refuses messages of x-sink: AccessDenied")
    ]


@pytest.mark.rule("13.problem.senders")
@pytest.mark.parametrize("members", [{"headers": {"x-asya-mesh-status": "off"}}, {"id": 5}])
def test_without_a_task_there_is_no_problem(world: MeshWorld, members: dict[str, Any]) -> None:
    world.sqs.refuse_always["asya-shop-x-sump"] = Refusal("call", "AccessDenied")
    assert run(world, "x-sink", message(**(FAILED | members))) == ["message-0"]
    assert problems(world) == []


@pytest.mark.rule("13.problem.senders")
def test_what_passes_by_itself_is_no_problem(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-x-ends"] = Refusal("call", "ThrottlingException")
    assert run(world, "x-sink", message(**DONE)) == ["message-0"]
    assert problems(world) == []
