"""protocol §13, problem.senders: a queue that refuses the messages or the report of a pause actor."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asya.capabilities.pauses.lambdas.wiring import build_pause
from asya.function.aws import clients
from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause
from asya.protocol.times import format_time
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import mesh, message
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

MESH = mesh({"x-pause": Actor(kind="pause", pause=Pause(prompt="Send it?")), "x-resume": Actor(kind="crew")})
ROUTE = {"prev": ["prep"], "curr": "x-pause", "next": ["post"]}
SLICE = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2} | {
    "aggregation_key": "/all"
}
LATER = format_time(datetime.now(UTC) + timedelta(hours=20))


class Bus:
    """EventBridge's bus."""

    def put_events(self, **_: Any) -> dict[str, Any]:
        return {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}


@pytest.fixture(autouse=True)
def bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "events", Bus)


def run(world: MeshWorld, **members: Any) -> list[str]:
    """Process one envelope; returns the ids of the messages that stay on the queue."""
    event = sqs_event(message(**({"route": ROUTE} | members)))
    return batch_failures(build_pause(world.services("x-pause", MESH)).process(event))


def problems(world: MeshWorld) -> list[str]:
    """The messages of the reported problems."""
    return [event.data.problem.message for event in world.gateway.events if event.data.problem is not None]


@pytest.mark.rule("13.problem.senders")
@pytest.mark.parametrize(
    "refusal",
    [Refusal("call", "AccessDenied"), Refusal("entry", "AccessDenied"), Refusal("entry", "AccessDenied", True)],
    ids=["call", "entry", "fault"],
)
@pytest.mark.parametrize(
    ("queue", "members"),
    [
        ("x-ends", {}),
        ("x-pause", {"headers": {"x-asya-not-before": LATER}}),
        ("x-sink", {"headers": {"x-asya-fan-in": SLICE}}),
        ("x-sump", {"route": ROUTE | {"curr": "infer"}}),
    ],
    ids=["pause", "postponed", "cannot-pause", "misplaced"],
)
def test_a_refused_queue_is_a_problem(world: MeshWorld, queue: str, members: dict[str, Any], refusal: Refusal) -> None:
    world.sqs.refuse_always[f"asya-shop-{queue}"] = refusal
    assert run(world, **members) == ["message-0"]
    assert problems(world) == [f"the queue of {queue} (asya-shop-{queue}) refuses messages of x-pause: AccessDenied"]
    world.sqs.refuse_always.clear()
    assert run(world, **members) == []
