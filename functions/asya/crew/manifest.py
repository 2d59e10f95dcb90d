"""Declares the functions of the actors that end envelopes or keep checkpoints."""

from asya.manifest import ActorFunction, Function, Queues, unless_disabled
from asya.protocol import names

_TIMEOUT = 120

FUNCTIONS = (
    ActorFunction(kind="end", entry_point="asya.crew.lambdas.wiring.end_actor"),
    Function(
        name=names.SINK,
        entry_point="asya.crew.lambdas.wiring.sink",
        called_by=Queues(),
        timeout=_TIMEOUT,
        exists=unless_disabled(names.SINK),
    ),
    Function(
        name=names.SUMP,
        entry_point="asya.crew.lambdas.wiring.sump",
        called_by=Queues(),
        timeout=_TIMEOUT,
        exists=unless_disabled(names.SUMP),
    ),
    Function(
        name=names.CHECKPOINT,
        entry_point="asya.crew.lambdas.wiring.checkpoint",
        called_by=Queues(),
        timeout=_TIMEOUT,
        exists=unless_disabled(names.CHECKPOINT),
    ),
)
