"""The first half of every sidecar: from a batch of messages to started hops (`protocol §5`, 1 to 6)."""

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from asya.function.aws.receipt import Receipt
from asya.function.hop import Diversion, Hop
from asya.function.lambdas.batch import BatchProcessor, BatchResponse, Record
from asya.function.nack import OutdatedError
from asya.function.targets import TargetError, awaits_deployment, is_of_another_version, with_versions
from asya.protocol.codec import ParseError, decode
from asya.protocol.events import TaskEvent
from asya.senders.authority import check_sender
from asya.sidecar import arrival, outcome
from asya.sidecar.arrival import is_late_copy
from asya.sidecar.lambdas.problems import report_problem
from asya.sidecar.lambdas.services import Services
from asya.sidecar.options import KEEP_INPUT
from asya.tasks.reporting import reports
from asya.tasks.task_state import StateQuery, TaskState

FRESH_SECONDS = 5.0
"""A state that was read longer ago is read again before a hop starts."""


def register(services: Services, hops: Sequence[Hop]) -> dict[str, Receipt]:
    """Report the tasks of envelopes that came without a status.

    The reports leave with the progress of the batch. A message is kept if its registration is not accepted.

    Returns:
        the receipts by message id.
    """
    receipts: dict[str, Receipt] = {}
    for hop in hops:
        url = services.report_url(hop.envelope)
        if hop.needs_registration and url is not None:
            event = reports.registered(hop, now=services.now())
            receipts[hop.arrival.message_id] = services.required_reports.report(url, event)
    return receipts


def task_states(services: Services, hops: Iterable[Hop]) -> dict[str, TaskState]:
    """The states of the hops' tasks and roots by envelope id; states that do not arrive in time are left out.

    Tasks of another gateway have no record here.
    """
    queries = [
        StateQuery(id=hop.envelope.id, root_id=hop.envelope.root_id)
        for hop in hops
        if services.records_task(hop.envelope)
    ]
    return services.state_queries.ask(queries, services.now())


class BatchStates:
    """The states of a batch's tasks: read with one call, and once more for what is left whenever they are too old.

    Args:
        hops: the batch; empty if its actor asks for no states.
    """

    def __init__(self, services: Services, hops: Iterable[Hop]) -> None:
        self._services = services
        self._left = {hop.arrival.message_id: hop for hop in hops}
        self._states: dict[str, TaskState] = {}
        # A task that is registered just now cannot be canceled or paused yet; a redelivery registers it once more.
        self._read(
            hop for hop in self._left.values() if not (hop.needs_registration and hop.arrival.receive_count == 1)
        )

    def at_start(self, hop: Hop) -> TaskState | None:
        """The state of a hop's task as it starts; None if it is unknown."""
        is_old = self._services.environment.monotonic() - self._read_at > FRESH_SECONDS
        if is_old and hop.arrival.message_id in self._left:
            self._read(self._left.values())
        self._left.pop(hop.arrival.message_id, None)
        return self.last_read(hop)

    def last_read(self, hop: Hop) -> TaskState | None:
        """The state that was read last; None if it is unknown."""
        return self._states.get(hop.envelope.id)

    def _read(self, hops: Iterable[Hop]) -> None:
        """Read states; one that the table does not give now stays as it was read before."""
        self._read_at = self._services.environment.monotonic()
        self._states |= task_states(self._services, hops)


# A deployment updates all functions within minutes: the receives before this one wait for seven and a half.
DEPLOYMENT_RECEIVES = 5


class Intake(msgspec.Struct, frozen=True):
    """A received batch, with its registrations and task states.

    Payloads behind claim checks are not part of it, so its memory is that of the messages.

    Attributes:
        registrations: the receipts of required reports, by message id.
    """

    services: Services
    received: dict[str, Hop | Diversion | Exception]
    registrations: dict[str, Receipt]
    states: BatchStates

    def process(
        self,
        items: Sequence[Record],
        handle: Callable[[Record], list[Receipt]],
        accepted: Callable[[Record], None] | None = None,
        kept: Callable[[Record, Exception], None] | None = None,
        *,
        worker: BatchProcessor | None = None,
    ) -> BatchResponse:
        """Process the batch as `BatchProcessor.process` does; a message is kept too if its registration is not accepted.

        Args:
            worker: the processor, if it has outlets of its own.
        """

        def with_registration(record: Record) -> list[Receipt]:
            receipts = handle(record)
            if (registration := self.registrations.get(record.message_id)) is not None:
                # In place: an outlet may still replace receipts of the list at its flush.
                receipts.append(registration)
            return receipts

        return (worker or self.services.worker).process(items, with_registration, accepted, kept)

    def start(self, record: Record) -> Hop | Diversion:
        """Run steps 3 to 6 for one message, and fetch its payload. Every error keeps the message on the queue.

        A diverted envelope leaves with the reference to its payload.

        Raises:
            OutdatedError: a deployment may be under way, and its next actor is not known here yet.
            Exception: its payload could not be read, or its input could not be stored.
        """
        received = self.received[record.message_id]
        if isinstance(received, Exception):
            raise received
        if isinstance(received, Diversion):
            return received
        state = self.states.at_start(received)
        services = self.services
        started = arrival.start(
            received,
            state,
            now=services.now(),
            new_span=services.environment.new_span,
            outages=services.outages_since,
        )
        if isinstance(started, Hop):
            self._check_version(received, record)
        hop = self._with_payload(started)
        if isinstance(hop, Hop) and KEEP_INPUT.of(hop.spec) and not hop.is_late_copy:
            self.services.input_archive.save(hop.envelope)
        return hop

    def restart(self, record: Record) -> Hop | Diversion:
        """Run steps 5 and 6 for a received message, whatever its task's state and deadline are."""
        received = self.received[record.message_id]
        if not isinstance(received, Hop):
            raise TypeError(f"message {record.message_id} was not received as a hop")
        restarted = arrival.restart(received, now=self.services.now(), new_span=self.services.environment.new_span)
        return self._with_payload(restarted)

    def unstarted(self, record: Record) -> Hop | Diversion:
        """The received message with its payload, for an actor that is not in its route."""
        received = self.received[record.message_id]
        if isinstance(received, Exception):
            raise received
        refused = arrival.check_sender(received, self.services.now()) if isinstance(received, Hop) else None
        return self._with_payload(refused or received)

    def report_problem(self, record: Record, error: Exception, last: TaskEvent | None = None) -> None:
        """Report why a message stays on its queue, if nothing but an operator will change that; a late copy reports nothing.

        Args:
            last: the last progress report of the hop; None if it had not begun, or if its function keeps none.
        """
        match self.received.get(record.message_id):
            case Hop() as hop if not is_late_copy(hop, self.states.last_read(hop)):
                envelope = hop.envelope
            case Diversion(deliveries=(delivery, *_)):
                # The message may be unreadable, but not what leaves in its place.
                envelope = decode(delivery.body)
            case _:
                return
        report_problem(self.services, envelope, error, sent_at=record.arrival.sent_at, last=last)

    def _with_payload(self, started: Hop | Diversion) -> Hop | Diversion:
        """The hop with the payload of its claim check."""
        if isinstance(started, Diversion):
            return started
        try:
            return replace(started, envelope=self.services.claim_check.redeem(started.envelope))
        except ParseError as error:
            return self._without_payload(started, error)

    def _without_payload(self, hop: Hop, error: ParseError) -> Diversion:
        """End a hop whose stored payload is gone at its own position; a late copy only as a child, if frames may be missing."""
        if hop.is_late_copy and hop.spec.gives_one_frame:
            return Diversion(hop.envelope.id, (), arrival.LATE_COPY)
        delivery = outcome.without_payload(hop, error, now=self.services.now())
        return Diversion(hop.envelope.id, (delivery,), "ParseError")

    def _check_version(self, received: Hop, record: Record) -> None:
        """Keep an envelope that a newer function may know how to send, for some receives."""
        if record.arrival.receive_count >= DEPLOYMENT_RECEIVES:
            return
        if awaits_deployment(received.envelope, received.mesh, received.actor):
            problem = f"{received.actor} does not know the next actor {received.envelope.route.next[0]!r}, or may not send to it"
            raise OutdatedError(with_versions(problem, received.envelope, received.mesh))


def _forbidden(services: Services, hop: Hop) -> TargetError | None:
    """Why the crew may not continue the route of a message for its sender.

    Raises:
        OutdatedError: a deployment may be under way, and this function may not know yet what the sender may do.
        ClientError, BotoCoreError: the table of roles cannot be read.
    """
    if not hop.spec.continues or not services.admission.knows_origin(hop.arrival):
        return None
    try:
        check_sender(hop, services.admission.origin_of(hop.arrival))
    except TargetError as problem:
        if hop.arrival.receive_count < DEPLOYMENT_RECEIVES and is_of_another_version(hop.envelope, hop.mesh):
            raise OutdatedError(with_versions(str(problem), hop.envelope, hop.mesh)) from problem
        return problem
    return None


def _receive(services: Services, record: Record) -> Hop | Diversion:
    """Parse one message, and claim the id of a task that a role of the mesh starts."""
    settings, came = services.settings, record.arrival
    return arrival.receive(
        came,
        actor=settings.actor,
        mesh=settings.table,
        now=services.now(),
        refusal=lambda envelope: services.admission.refusal(envelope, came),
        forbidden=lambda hop: _forbidden(services, hop),
        with_key=services.keys.enter,
    )


def receive_batch(services: Services, items: Sequence[Record], *, asks_states: bool = True) -> Intake:
    """Parse a batch, report new tasks and ask for the tasks' states, with one call for the whole batch."""
    received: dict[str, Hop | Diversion | Exception] = {}
    for record in items:
        try:
            record.raise_problem()
            received[record.message_id] = _receive(services, record)
        except Exception as error:  # noqa: BLE001 - `Intake.start` raises it for this message
            received[record.message_id] = error
    hops = [outcome for outcome in received.values() if isinstance(outcome, Hop)]
    registrations = register(services, hops)
    states = BatchStates(services, hops if asks_states else ())
    return Intake(services, received, registrations, states)
