"""One hop: an envelope at an actor, between its arrival and what leaves."""

from datetime import datetime, timedelta

import msgspec

from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.status import Status
from asya.protocol.times import parse_time


class Arrival(msgspec.Struct, frozen=True):
    """A message as it was received: its bytes and what SQS says about it.

    Attributes:
        size: bytes on the queue, for reports; `body` may be longer where a claim check was redeemed.
        sender: principal id of who sent it, without the session name.
    """

    body: bytes
    message_id: str
    sent_at: datetime
    receive_count: int = 1
    sender: str = ""
    size: int = 0


class Hop(msgspec.Struct, frozen=True, gc=False):
    """An envelope that this actor is to process, stamped `processing`.

    Attributes:
        envelope: with the status and headers of this hop; its payload is the one received.
        needs_registration: it came without a status, so the task has to be registered first.
        deadline: when the envelope as a whole must be done; its status says it, and it is asked for often.
    """

    envelope: Envelope
    actor: str
    spec: Actor
    mesh: MeshTable
    arrival: Arrival
    needs_registration: bool
    deadline: datetime | None

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
        return cls(envelope, actor, spec, mesh, arrival, needs_registration, deadline)

    @property
    def status(self) -> Status:
        """The stamped status; always there on a hop."""
        if self.envelope.status is None:
            raise ValueError(f"envelope {self.envelope.id} is on a hop without a status")
        return self.envelope.status

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.status.attempt or 1

    def time_limit(self, now: datetime) -> tuple[timedelta, bool]:
        """How long the handler may take, and whether it is the deadline that says so (`protocol §5.7`)."""
        own = timedelta(seconds=self.spec.timeout)
        if self.deadline is None or self.deadline - now >= own:
            return own, False
        return self.deadline - now, True
