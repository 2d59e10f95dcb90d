"""Runs a batch through a light actor's sidecar; the handlers and routes that its tests share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from asya.ends.lambdas.wiring import build_end_actor
from asya.light.lambdas.sidecar import build_sidecar
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

LAST = {"prev": ["prep"], "curr": "infer", "next": []}
LONG_AGO = "2020-01-01T00:00:00Z"
FAR_AHEAD = "2126-01-01T00:00:00Z"


def echo(payload: Any) -> Any:
    """Returns its payload."""
    return payload


def never(_: Any) -> Any:
    """Fails the test if it is called."""
    raise AssertionError("the handler must not be called")


def run(world: MeshWorld, handler: Callable[[Any], Any], *bodies: bytes | str, **options: Any) -> list[str]:
    """Process one batch, at the time of `clock` if it is given; returns the ids of the messages that stay on the queue."""
    counts, clock = options.pop("receive_counts", None), options.pop("clock", None)
    build = build_end_actor if options.get("kind") == "end" else build_sidecar
    services = world.light(handler, **options)
    actor = build(services if clock is None else replace(services, environment=clock))
    return batch_failures(actor.process(sqs_event(*bodies, receive_counts=counts)))
