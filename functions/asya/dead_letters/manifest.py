"""Declares the function of dead letters."""

from asya.manifest import Function, Schedule
from asya.protocol import names

FUNCTIONS = (
    Function(
        name=names.DLQ,
        entry_point="asya.dead_letters.lambdas.wiring.dlq",
        # An alarm fires for the first message only, and minutes later. The schedule finds each message within two minutes.
        called_by=Schedule(
            minutes=1, rule="dlq-sweep", checks="the dead letters", without="dead letters are not reported"
        ),
        timeout=120,
    ),
)
