"""A hop: an envelope at one actor, from its arrival to its deliveries."""

from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from asya.capabilities.legacy.envelopes import read_envelope
from asya.protocol.codec import ParseError
from asya.protocol.envelope import NULL, Envelope
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.status import Status
from asya.protocol.times import parse_time


class Arrival(msgspec.Struct, frozen=True):
    """A received message, with its attributes from SQS.

    Attributes:
        size: the bytes on the queue, for reports; a redeemed claim check makes `body` longer.
        sender: the principal id of the sender, without the session name.
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
