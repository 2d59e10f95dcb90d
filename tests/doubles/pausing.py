"""Runs pause actors and x-resume on an envelope, with EventBridge's bus."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from asya.capabilities.pauses.lambdas.wiring import build_pause, build_resume
from asya.capabilities.pauses.resuming import release_delivery
from asya.protocol import codec
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause, PauseField, PauseRelease
from asya.protocol.status import Status
from tests.doubles.envelopes import mesh, message
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

FIELDS = (PauseField(name="approved", type="boolean"),)
MESH = mesh(
    {
        "approve": Actor(kind="pause", pause=Pause(prompt="Send it?", fields=FIELDS)),
        "x-resume": Actor(kind="crew"),
    }
)
ROUTE = {"prev": ["prep"], "curr": "approve", "next": ["post"]}
KEY = "paused/env-1/0/1.json"


@dataclass
class FakeEvents:
    """EventBridge's buses. Of a pause whose event is on two, `details` has the one with the link."""

    by_bus: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    details: list[dict[str, Any]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    refuses: bool = False

    def put_events(self, *, Entries: list[dict[str, str]]) -> dict[str, Any]:  # noqa: N803
        if self.refuses:
            return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException", "ErrorMessage": "slow"}]}
        for entry in Entries:
            detail, bus = json.loads(entry["Detail"]), entry.get("EventBusName", "default")
            self.by_bus.setdefault(bus, []).append(detail)
            assert "callback" not in detail or bus != "default", "a link is on the bus of the whole account"
        self.details += [json.loads(Entries[-1]["Detail"])]
        self.sources += [f"{Entries[-1]['Source']}: {Entries[-1]['DetailType']}"]
        return {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}


def here(**members: object) -> bytes:
    """An envelope at the pause actor."""
    return message(**({"route": ROUTE} | members))


def run_pause(world: MeshWorld, *bodies: bytes, times: int = 1, reporting: bool = True) -> list[str]:
    """Run the pause actor on a batch; returns the ids of the messages that stay."""
    services = world.services("approve", MESH, reporting=reporting)
    counts = dict.fromkeys(range(len(bodies)), times)
    return batch_failures(build_pause(services).process(sqs_event(*bodies, receive_counts=counts)))


def stored(world: MeshWorld) -> dict[str, Any]:
    """The kept envelope."""
    found: dict[str, Any] = json.loads(world.s3.content(KEY))
    return found


def continued(world: MeshWorld, answers: bytes = b'{"approved":true}', times: int = 1) -> list[str]:
    """x-resume gets what the gateway sends."""
    found = codec.decode(world.s3.content(KEY))
    handover = PauseRelease(to="x-resume", epoch=1, at="2126-11-20T15:00:00.000000Z", input=msgspec.Raw(answers))
    return at_x_resume(world, release_delivery(found, handover).body, times)


def at_x_resume(world: MeshWorld, body: bytes, times: int = 1) -> list[str]:
    """Run x-resume on one message; returns its id if it stays."""
    event = sqs_event(body, receive_counts={0: times})
    return batch_failures(build_resume(world.services("x-resume", MESH)).process(event))


def status_of(envelope: Envelope) -> Status:
    """The status block, which must be there."""
    assert envelope.status is not None
    return envelope.status
