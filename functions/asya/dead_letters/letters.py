"""What a message in a dead-letter queue means for its task (`protocol §5.13`, `§6`, `§11`)."""

from dataclasses import dataclass
from datetime import datetime

from msgspec import UNSET
from msgspec.structs import replace

from asya.crew.ending import with_end_status
from asya.messaging.delivery import Delivery
from asya.messaging.hop import Arrival
from asya.protocol import headers, ids, names, status
from asya.protocol.codec import ParseError, decode
from asya.protocol.envelope import NULL, Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import TaskEvent
from asya.protocol.hops import HopRecord
from asya.protocol.mesh_table import MeshTable
from asya.protocol.route import Route
from asya.protocol.slices import decode_message
from asya.protocol.status import TERMINAL_PHASES
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.reporting import reports
from asya.sidecar.slices import slice_end_deliveries

# Fed by queues although they are no actors. What lies there are requests and events, each found again by the reconciler.
SYSTEM_QUEUES = (names.DISPATCH, names.COMPLETION)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that nobody takes any more.

    Attributes:
        envelope: what it carries, None if that is about no task of its own (a request, an event, a word about a set).
        readable: whether the envelope is the message's own, or stands for one that could not be read.
    """

    arrival: Arrival
    actor: str
    envelope: Envelope | None
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Exhausted:
    """What follows from a dead letter.

    Attributes:
        envelope: as it ended; of a hop whose first frame had left, the child that failed in its place.
        event: what is reported of it; None where nothing has ended.
        deliveries: for the sets that wait for it.
    """

    envelope: Envelope
    event: TaskEvent | None
    deliveries: tuple[Delivery, ...] = ()


def watched(mesh: MeshTable) -> tuple[str, ...]:
    """Every actor and system function of the mesh that has a dead-letter queue."""
    heavy = any(actor.kind == "spark" for actor in mesh.actors.values())
    return (*sorted(mesh.actors), *(SYSTEM_QUEUES if heavy else ()))


def read(arrival: Arrival, actor: str) -> DeadLetter:
    """What a message carries. One that cannot be read stands for an envelope of the id it has, or one made from its message id."""
    if actor in SYSTEM_QUEUES or decode_message(arrival.body) is not None:
        return DeadLetter(arrival, actor, None)
    try:
        return DeadLetter(arrival, actor, decode(arrival.body, message_id=arrival.message_id))
    except ParseError as error:
        envelope_id = error.envelope_id or ids.id_of_message(arrival.message_id)
        return DeadLetter(arrival, actor, Envelope(id=envelope_id, route=Route((), actor, ()), payload=NULL), False)


def went_on(envelope: Envelope, record: TaskRecord | None, latest: HopRecord | None) -> bool:
    """Whether the hop's first frame had left, and the id with it (`protocol §6`): the task is known to have been further than this.

    Args:
        latest: the furthest hop of the record's generation that has been reported.
    """
    if record is None or record.generation != envelope.generation:
        return False
    reached = latest.position if latest is not None else 0
    if record.is_terminal and record.route is not None:
        reached = max(reached, record.route.position)
    return reached > envelope.route.position


def exhausted(letter: DeadLetter, mesh: MeshTable, *, frame_left: bool, now: datetime) -> Exhausted | None:
    """How a dead letter's envelope ended: in the phase it already has, if that is an end, else `failed/DeliveryExhausted`.

    Args:
        frame_left: whether the id travels on; then a child has failed in its place, and no set is told.

    Returns:
        None if it is about no task.
    """
    envelope = letter.envelope
    if envelope is None:
        return None
    if letter.actor == names.SINK:
        envelope = with_end_status(envelope, sent_at=letter.arrival.sent_at, now=now)
    phase = envelope.status.phase if envelope.status else None
    if phase in TERMINAL_PHASES:
        return Exhausted(envelope, _reported(envelope, letter, now), slice_end_deliveries(envelope, mesh))
    if phase == "paused":
        return Exhausted(envelope, None)
    ended = replace(envelope, status=_failed(letter, envelope, mesh, now))
    if frame_left:
        ended = _as_child(ended)
    return Exhausted(ended, _reported(ended, letter, now), slice_end_deliveries(ended, mesh))


def stored_slice(letter: DeadLetter, claimed: str, mesh: MeshTable, *, now: datetime) -> Exhausted | None:
    """How a slice ended whose fan-in actor had claimed it as done and died before it told anybody; None for everything else.

    Args:
        claimed: the phase that its end is claimed as.
    """
    envelope, spec = letter.envelope, mesh.actors.get(letter.actor)
    if envelope is None or spec is None or spec.kind != "fan_in" or claimed != "succeeded":
        return None
    started = status.started(
        envelope.status,
        actor=letter.actor,
        now=format_time(now),
        sent_at=format_time(letter.arrival.sent_at),
        max_attempts=1,
    )
    done = replace(envelope, status=status.succeeded(started, now=format_time(now)))
    return Exhausted(done, _reported(done, letter, now))


def _failed(letter: DeadLetter, envelope: Envelope, mesh: MeshTable, now: datetime) -> status.Status:
    spec, at = mesh.actors.get(letter.actor), format_time(now)
    times = f"{spec.max_receives} deliveries" if spec else "all of its deliveries"
    said = "" if letter.readable else "; nor could it be read as an envelope"
    queue = names.dlq_name(mesh.namespace, letter.actor)
    message = f"{letter.actor} did not finish with the message in {times}{said}; it lies in {queue}"
    started = status.started(
        envelope.status, actor=letter.actor, now=at, sent_at=format_time(letter.arrival.sent_at), max_attempts=1
    )
    error = ErrorInfo(type="DeliveryExhausted", message=message)
    return status.failed(started, reason="DeliveryExhausted", now=at, error=error)


def _as_child(envelope: Envelope) -> Envelope:
    """The envelope as the failed child of a hop whose first frame has left; its slice, if it was one, left with that frame."""
    child = ids.child_id(envelope.id, envelope.generation, envelope.route.position, "error")
    root = envelope.root_id or envelope.id
    return replace(envelope, id=child, parent_id=envelope.id).with_headers({headers.ROOT: root, headers.FAN_IN: None})


def _reported(envelope: Envelope, letter: DeadLetter, now: datetime) -> TaskEvent:
    event = reports.terminal(envelope, now=now)
    data = event.data
    if headers.PAYLOAD_REF in envelope.headers:
        # The payload here only stands for the one in S3, which is too large to be told inline.
        data = replace(data, result=UNSET)
    if letter.envelope is not None and letter.envelope.status is None:
        # No sidecar has got as far as registering it.
        data = replace(data, owner=letter.arrival.sender or None)
    return replace(event, data=data)
