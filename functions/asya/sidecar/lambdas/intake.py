"""The first half of every sidecar, light or heavy: from a batch of messages to started hops (`protocol §5`, 1 to 6)."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from asya.messaging.delivery import Diversion
from asya.messaging.hop import Hop
from asya.messaging.lambdas.batch import Record
from asya.protocol.codec import ParseError
from asya.protocol.events import TaskState
from asya.sidecar import arrival
from asya.sidecar.lambdas import preflight
from asya.sidecar.lambdas.services import Services


class NotRegisteredError(RuntimeError):
    """A task could not be registered; its envelope may cause no message before it is."""


@dataclass(frozen=True, slots=True)
class Intake:
    """A received batch, with its registrations and task states, before its first handler runs."""

    services: Services
    received: dict[str, Hop | Diversion | Exception]
    unregistered: set[str]
    states: dict[str, TaskState]

    def start(self, record: Record) -> Hop | Diversion:
        """Run steps 4 to 6 for one message. Every error keeps the message on the queue.

        Raises:
            NotRegisteredError: its task could not be registered.
            Exception: its payload could not be read, or its input could not be stored.
        """
        received = self.received[record.message_id]
        if isinstance(received, Exception):
            raise received
        if isinstance(received, Diversion):
            return received
        if record.message_id in self.unregistered:
            raise NotRegisteredError(f"task {received.envelope.id} could not be registered at the gateway")
        state = self.states.get(received.envelope.id)
        started = arrival.start(received, state, now=self.services.now(), new_span=self.services.environment.new_span)
        if isinstance(started, Hop) and started.spec.keep_input:
            self.services.input_archive.save(started.envelope)
        return started


def receive_batch(services: Services, items: Sequence[Record], *, asks_states: bool = True) -> Intake:
    """Parse a batch, register new tasks and ask for the tasks' states, with one call each for the whole batch.

    A payload that cannot be read keeps its message, because a later read would miss registration and pre-flight.
    """
    received: dict[str, Hop | Diversion | Exception] = {}
    for record in items:
        try:
            received[record.message_id] = receive(services, record)
        except Exception as error:  # noqa: BLE001 - `Intake.start` raises it for this message
            received[record.message_id] = error
    hops = [outcome for outcome in received.values() if isinstance(outcome, Hop)]
    unregistered = preflight.register(services, hops)
    return Intake(services, received, unregistered, preflight.task_states(services, hops) if asks_states else {})


def receive(services: Services, record: Record) -> Hop | Diversion:
    """Redeem the claim check of one message and run steps 1 to 3.

    Raises:
        botocore.exceptions.ClientError: the payload cannot be read.
    """
    settings = services.settings
    message = record.arrival
    try:
        body = services.claim_check.redeem(message.body)
    except ParseError as error:
        return arrival.parse_failure(message, error, now=services.now())
    if body is not message.body:
        message = replace(message, body=body)
    return arrival.receive(message, actor=settings.actor, mesh=settings.table, now=services.now())
