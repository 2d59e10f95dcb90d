"""Declares the clock, which runs the steps that other manifests declare (`called_by=Clock`)."""

from asya.manifest import Capability, Function, Schedule
from asya.monitoring import KINDS, Graph, Metric, Of, lines
from asya.protocol import names

FUNCTIONS = (
    Function(
        name=names.CLOCK,
        entry_point="asya.capabilities.clock.lambdas.clock.clock",
        called_by=Schedule(minutes=1, rule="clock", checks="the due work", without="no step of the clock runs"),
        # For the start of the process. The registry adds the times of the steps, and what they need.
        timeout=15,
    ),
)

METRICS = (Metric("StepsFailed", split="reason"),)

GRAPHS = (Graph(section=KINDS, at=10, title="Failures of the step", lines=lines("StepsFailed", of=Of.PICKED)),)

CAPABILITY = Capability(name="clock", functions=FUNCTIONS, metrics=METRICS, graphs=GRAPHS)
