"""Declares the functions of fan-in."""

from asya.manifest import CREW_TIMEOUT, ActorFunction, Function, Queues, Schedule
from asya.protocol import names

FUNCTIONS = (
    ActorFunction(
        kind="fan_in", entry_point="asya.fan_in.lambdas.wiring.fan_in", timeout=CREW_TIMEOUT, queues=Queues()
    ),
    Function(
        name=names.FAN_IN_SWEEP,
        entry_point="asya.fan_in.lambdas.wiring.sweep",
        called_by=Schedule(
            minutes=5, rule="fan-in-sweep", checks="the open sets of slices", without="overdue sets may stay open"
        ),
        timeout=CREW_TIMEOUT,
    ),
)
