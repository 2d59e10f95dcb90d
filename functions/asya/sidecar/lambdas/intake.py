"""The first half of every sidecar, light or heavy: from a batch of messages to hops that may start (`protocol §5`, 1 to 6)."""

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
    """A task could not be made known; nothing that its envelope causes may leave before it is."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What is known about a batch before its first handler runs."""

    services: Services
    received: dict[str, Hop | Diversion | Exception]
    unregistered: set[str]
    states: dict[str, TaskState]

    def start(self, record: Record) -> Hop | Diversion:
        """Complete steps 4 to 6 for one message, at the moment its turn comes.

        Raises:
            NotRegisteredError: the message is to be kept.
            Exception: its payload could not be fetched, or its input not be kept; the same.
        """
        found = self.received[record.message_id]
        if isinstance(found, Exception):
            raise found
        if isinstance(found, Diversion):
            return found
        if record.message_id in self.unregistered:
            raise NotRegisteredError(f"task {found.envelope.id} could not be registered at the gateway")
        state = self.states.get(found.envelope.id)
        started = arrival.start(found, state, now=self.services.now(), new_span=self.services.environment.new_span)
        if isinstance(started, Hop) and started.spec.keep_input:
            self.services.input_archive.save(started.envelope)
        return started


def receive_batch(services: Services, items: Sequence[Record], *, asks_states: bool = True) -> Intake:
    """Parse a batch, register what is new and ask for the tasks' states: one call each for the whole batch.

    A payload that cannot be fetched now keeps its message: fetched later, it would be too late for registration and pre-flight.
    """
    received: dict[str, Hop | Diversion | Exception] = {}
    for record in items:
        try:
            received[record.message_id] = receive(services, record)
        except Exception as error:  # noqa: BLE001 - raised again when it is this message's turn
            received[record.message_id] = error
    hops = [found for found in received.values() if isinstance(found, Hop)]
    unregistered = preflight.register(services, hops)
    return Intake(services, received, unregistered, preflight.task_states(services, hops) if asks_states else {})


def receive(services: Services, record: Record) -> Hop | Diversion:
    """Steps 1 to 3 for one message, its claim check redeemed.

    Raises:
        botocore.exceptions.ClientError: if a payload cannot be fetched for now.
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
