"""Declares the functions of pauses and waits."""

from asya.manifest import ActorFunction, Function, Queues, Schedule, unless_disabled
from asya.protocol import names

_TIMEOUT = 120

FUNCTIONS = (
    ActorFunction(kind="pause", entry_point="asya.pause.lambdas.wiring.pause", timeout=_TIMEOUT, queues=Queues()),
    ActorFunction(kind="wait", entry_point="asya.pause.lambdas.wiring.wait", timeout=_TIMEOUT, queues=Queues()),
    Function(
        name=names.RESUME,
        entry_point="asya.pause.lambdas.wiring.resume",
        called_by=Queues(),
        timeout=_TIMEOUT,
        exists=unless_disabled(names.RESUME),
    ),
    Function(
        name=names.PAUSE_SWEEP,
        entry_point="asya.pause.lambdas.wiring.sweep",
        called_by=Schedule(
            minutes=1,
            rule="pause-sweep",
            checks="the paused tasks",
            without="an unfinished resume is not repeated, and what waits for a time stays",
        ),
        timeout=_TIMEOUT,
    ),
)
