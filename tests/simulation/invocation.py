"""What the checks note about an invocation."""

from dataclasses import dataclass, field

from asya.testing.services.process import Invocation
from tests.simulation.inputs.programs import HandlerCall


@dataclass
class ObservedInvocation(Invocation):
    """One invocation: its messages and its effects so far.

    Attributes:
        effects: message id → the number of messages sent because of it.
        unreadable: ids of messages that are not envelopes.
        acked: ids of the messages that were acknowledged.
        departures: message id → how the envelope left the hop.
        ended_slices: set ids and indexes of the slices whose end was sent to their set.
        states_queried_at: when the tasks table answered a pre-flight, in virtual seconds; None if it did not.
        states_first_read_at: when the tasks table first answered one.
        states_asked_at: when a pre-flight last asked, in virtual seconds; None if none did.
        last_call: the last call of a handler.
        to_register: message id → the id of a task that the message registers.
    """

    effects: dict[str, int] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    acked: set[str] = field(default_factory=set)
    departures: dict[str, str] = field(default_factory=dict)
    ended_slices: set[tuple[str, int]] = field(default_factory=set)
    states_queried_at: float | None = None
    states_first_read_at: float | None = None
    states_asked_at: float | None = None
    last_call: HandlerCall | None = None
    to_register: dict[str, str] = field(default_factory=dict)
