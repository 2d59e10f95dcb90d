"""A hop: an envelope at one actor, from its arrival to its deliveries, or to the dead-letter queue."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec.structs import replace

from asya.capabilities.legacy.envelopes import read_envelope
from asya.protocol import headers, states, status
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import NULL, Envelope
from asya.protocol.events import RetryNote
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.status import Status
from asya.protocol.task_key import fingerprint
from asya.protocol.times import format_time, parse_time

# The longest delay of an SQS message.
MAX_DELAY = timedelta(seconds=900)
# The longest wait before a retry. A later `x-asya-not-before` counts as due now (`protocol §5.2`).
MAX_WAIT = timedelta(hours=24)

# The message attribute with the `SenderId` of a dead letter that the gateway sends again (`protocol §12.redrive`).
FIRST_SENDER = "asya-first-sender"
# The message attribute that says why a message became a dead letter of `x-triggers` (`protocol §16.failures`).
PROBLEM = "asya-problem"

DeliveryKind = Literal["next", "sink", "sump", "retry", "later", "slice-ended", "report"]


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """One message for the queue of `actor`.

    Attributes:
        body: the encoded envelope.
        delay: the delay in whole seconds, 0 to 900.
        kind: the cause of the delivery, for the metric `Sent`.
        group: the tenant for fair queues (`fair_by`); None without one.
        retry: what to report of a retry: the error of the attempt, and when the next one is due; None for other deliveries.
    """

    actor: str
    body: bytes
    kind: DeliveryKind
    delay: int = 0
    group: str | None = None
    retry: RetryNote | None = None

    @property
    def outcome(self) -> str:
        """How a hop ended that sent this, for the metric `Processed`."""
        return states.FAILED if self.kind == "sump" else states.SUCCEEDED


class Diversion(msgspec.Struct, frozen=True):
    """The end of a hop before its handler ran: the deliveries, and the cause (`why`) for metrics and logs."""

    envelope_id: str
    deliveries: tuple[Delivery, ...]
    why: str


class Arrival(msgspec.Struct, frozen=True):
    """A received message, with its attributes from SQS.

    Attributes:
        size: the bytes on the queue, for reports; a redeemed claim check makes `body` longer.
        sender: the principal id of the sender, without the session name.
        first_sender: the principal id that the gateway names as the sender of a dead letter; empty for other messages. It counts
            from the gateway's role alone.
        is_new: whether no role of the mesh has sent the message, so that a task starts here (`protocol §4.entry`). `body` is
            then its first envelope.
        refusal: why the message may not enter the mesh; `body` is then what came. None if it may.
    """

    body: bytes
    message_id: str
    sent_at: datetime
    receive_count: int = 1
    sender: str = ""
    size: int = 0
    first_sender: str = ""
    is_new: bool = False
    refusal: ParseError | None = None

    def envelope(self) -> Envelope:
        """Decode the body.

        Raises:
            ParseError: the body is not a valid envelope, or the message may not enter the mesh.
        """
        if self.refusal is not None:
            raise self.refusal
        return read_envelope(self.body, message_id=self.message_id)


class Hop(msgspec.Struct, frozen=True, gc=False):
    """An envelope that this actor processes, stamped `processing`.

    Attributes:
        envelope: the envelope with the status and headers of this hop, and the received payload.
        needs_registration: whether the envelope came without a status, so its task must be registered first.
        deadline: the parsed `deadline_at` of the status; None without a deadline.
        parent_span: the id of the sender's trace span; None if this hop starts the trace.
        received: the envelope before the stamp, with the reference to a payload behind a claim check.
        is_late_copy: whether frame 0 left before the task's last pause, so only later frames may leave (`protocol §5.4`).
        forbidden: why its sender may not send where the route leads; None if it may (`protocol §1.authority`).
    """

    envelope: Envelope
    actor: str
    spec: Actor
    mesh: MeshTable
    arrival: Arrival
    needs_registration: bool
    deadline: datetime | None
    parent_span: str | None = None
    received: Envelope | None = None
    is_late_copy: bool = False
    forbidden: str | None = None

    @classmethod
    def of(
        cls,
        envelope: Envelope,
        actor: str,
        spec: Actor,
        mesh: MeshTable,
        arrival: Arrival,
        *,
        needs_registration: bool = False,
    ) -> "Hop":
        """The hop of an envelope at this actor."""
        deadline_at = envelope.status.deadline_at if envelope.status is not None else None
        deadline = parse_time(deadline_at) if deadline_at else None
        return cls(envelope, actor, spec, mesh, arrival, needs_registration, deadline, None, envelope)

    @property
    def status(self) -> Status:
        """The stamped status."""
        if self.envelope.status is None:
            raise ValueError(f"envelope {self.envelope.id} has no status on its hop at {self.actor!r}; stamp it first")
        return self.envelope.status

    @property
    def attempt(self) -> int:
        """The number of the attempt, from 1."""
        return self.status.attempt or 1

    @property
    def attempt_key(self) -> tuple[str, int, int, int]:
        """Identifies the attempt: id, generation, position, attempt. Copies of a message have the same key."""
        return self.envelope.id, self.envelope.generation, self.envelope.route.position, self.attempt

    @property
    def copy_key(self) -> tuple[str, int, int, int, str]:
        """Identifies the attempt for code of users, which reads no key of a task: a forged envelope has another fingerprint."""
        return (*self.attempt_key, fingerprint(self.envelope))

    @property
    def began_at(self) -> datetime:
        """When the task began, as far as the envelope says."""
        created_at = self.envelope.status.created_at if self.envelope.status is not None else None
        return parse_time(created_at) if created_at else self.arrival.sent_at

    def without_payload(self) -> "Hop":
        """This hop with a null payload, to keep it while other envelopes of the batch are processed."""
        return replace(self, envelope=replace(self.envelope, payload=NULL), received=None)

    def time_limit(self, now: datetime) -> tuple[timedelta, bool]:
        """The time limit of the handler, and whether the deadline sets it (`protocol §5.7`)."""
        timeout = timedelta(seconds=self.spec.timeout)
        if self.deadline is None or self.deadline - now >= timeout:
            return timeout, False
        return self.deadline - now, True


def may_be_sent(arrival: Arrival) -> bool:
    """Whether the function may send the message: its role becomes the sender, and so vouches for what the message bears."""
    return arrival.refusal is None


def given_up_body(arrival: Arrival, actor: str, with_key: Callable[[Envelope, str], Envelope]) -> bytes:
    """The message as admitted. A task that it starts gets its first status, so that its sender stays its owner.

    Args:
        with_key: gives the first envelope of a task its key, from the SQS message id.
    """
    try:
        envelope = arrival.envelope()
    except ParseError:
        return arrival.body
    if envelope.status is not None:
        return arrival.body
    started = replace(envelope, status=status.created(actor, format_time(arrival.sent_at)))
    return encode(with_key(started.with_headers({headers.OWNER: arrival.sender or None}), arrival.message_id))
