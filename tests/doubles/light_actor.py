"""A light actor's sidecar, given a batch; handlers and routes that tests of it share."""

from collections.abc import Callable
from typing import Any

from asya.crew.lambdas.wiring import build_end_actor
from asya.sidecar.lambdas.wiring import build_sidecar
from tests.doubles.mesh_world import MeshWorld, kept, sqs_event

LAST = {"prev": ["prep"], "curr": "infer", "next": []}
LONG_AGO = "2020-01-01T00:00:00Z"
FAR_AHEAD = "2126-01-01T00:00:00Z"


def echo(payload: Any) -> Any:
    """Gives back what it gets."""
    return payload


def never(_: Any) -> Any:
    """Is not to be called."""
    raise AssertionError("the handler must not be called")


def run(world: MeshWorld, handler: Callable[[Any], Any], *bodies: bytes | str, **options: Any) -> list[str]:
    """Work through one batch; the ids of the messages that stay."""
    counts = options.pop("receive_counts", None)
    build = build_end_actor if options.get("kind") == "end" else build_sidecar
    actor = build(world.light(handler, **options))
    return kept(actor.process(sqs_event(*bodies, receive_counts=counts)))
