"""Runs x-sink on ended envelopes, and lists what it wrote."""

from typing import Any

from asya.ends.lambdas.wiring import build_sink
from asya.protocol.mesh_table import Actor, Sink
from tests.doubles.envelopes import mesh, message, status
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

ERROR = {"type": "ValueError", "message": "bad", "mro": [], "traceback": ""}
DONE = {"prev": ["prep", "infer"], "curr": "", "next": []}


def ended(phase: str = "succeeded", **members: Any) -> bytes:
    """An envelope at the end of its route, in a terminal phase or paused."""
    reason = {"succeeded": "Completed", "failed": "RuntimeError", "canceled": "Canceled", "paused": "Paused"}[phase]
    block = status(phase=phase, reason=reason) | ({"error": ERROR} if phase == "failed" else {})
    return message(**({"status": block, "route": DONE} | members))


def run_sink(
    world: MeshWorld,
    *bodies: bytes,
    options: Sink | None = None,
    reporting: bool = True,
    actors: dict[str, Actor] | None = None,
) -> list[str]:
    """Run x-sink on a batch; returns the ids of the messages that stay."""
    actor = build_sink(world.services("x-sink", mesh(actors, sink=options or Sink()), reporting=reporting))
    return batch_failures(actor.process(sqs_event(*bodies)))


def results(world: MeshWorld) -> list[str]:
    """The keys of the results of envelopes, without refused ones."""
    return [key for key in written(world) if not key.startswith("superseded/")]


def written(world: MeshWorld) -> list[str]:
    """The keys of all objects of results."""
    return [key.removeprefix("results/") for key in world.s3.keys("results/")]


FAN = {
    "many": Actor(kind="handler", handler="h.many"),
    "one": Actor(kind="handler", handler="h.one", gives_one_frame=True),
    "job": Actor(kind="spark"),
    "merge": Actor(kind="fan_in"),
}
