"""Declares the functions of the actors that end envelopes or keep checkpoints."""

from asya.manifest import ActorFunction, crew_actor
from asya.protocol import names

FUNCTIONS = (
    ActorFunction(kind="end", entry_point="asya.crew.lambdas.wiring.end_actor"),
    crew_actor(names.SINK, "asya.crew.lambdas.wiring.sink"),
    crew_actor(names.SUMP, "asya.crew.lambdas.wiring.sump"),
    crew_actor(names.CHECKPOINT, "asya.crew.lambdas.wiring.checkpoint"),
)
