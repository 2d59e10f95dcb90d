"""Declares the functions of pauses and waits."""

from asya.manifest import CREW_TIMEOUT, ActorFunction, Function, Queues, Schedule, crew_actor
from asya.protocol import names

FUNCTIONS = (
    ActorFunction(kind="pause", entry_point="asya.pause.lambdas.wiring.pause", timeout=CREW_TIMEOUT, queues=Queues()),
    ActorFunction(kind="wait", entry_point="asya.pause.lambdas.wiring.wait", timeout=CREW_TIMEOUT, queues=Queues()),
    crew_actor(names.RESUME, "asya.pause.lambdas.wiring.resume"),
    Function(
        name=names.PAUSE_SWEEP,
        entry_point="asya.pause.lambdas.wiring.sweep",
        called_by=Schedule(
            minutes=1,
            rule="pause-sweep",
            checks="the paused tasks",
            without="an unfinished resume is not repeated, and what waits for a time stays",
        ),
        timeout=CREW_TIMEOUT,
    ),
)
