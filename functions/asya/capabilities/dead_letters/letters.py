"""Decides how the envelope of a dead letter ends (`protocol §5.13`, `§6`, `§11`)."""

from dataclasses import dataclass
from datetime import datetime

from msgspec import UNSET
from msgspec.structs import replace

from asya.ends.ending import as_canceled, end_position, failed_child, with_end_status
from asya.function.hop import Arrival, Delivery
from asya.protocol import headers, ids, names, states, status
from asya.protocol.codec import ParseError
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.errors import ErrorInfo, TaskProblem
from asya.protocol.events import COUNT_LIMIT, TaskEvent
from asya.protocol.hops import HopRecord
from asya.protocol.mesh_table import MeshTable
from asya.protocol.slices import decode_message
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.sidecar.slices import slice_end_deliveries
from asya.tasks.reporting import reports

# Functions with a queue that are not actors. The reconciler repeats the requests and events of the first two.
SYSTEM_QUEUES = (names.DISPATCH, names.COMPLETION, names.TRIGGERS)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message in a dead-letter queue.

    Attributes:
        envelope: the envelope of the message; None for a request, an event or a message about a set.
        readable: False if the envelope only stands in for one that could not be parsed.
        problem: why a function gave the message up (`protocol §4.starts.end`, `§16.failures`); None if SQS has delivered it too
            often.
    """

    arrival: Arrival
    actor: str
    envelope: Envelope | None
    readable: bool = True
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LetterEnd:
    """The end of a dead letter's envelope.

    Attributes:
        envelope: the ended envelope; a failed child if the hop's first frame has left.
        event: the report; None if no task has ended.
        deliveries: the messages to the sets of a slice.
    """

    envelope: Envelope
    event: TaskEvent | None
    deliveries: tuple[Delivery, ...] = ()


def watched_actors(mesh: MeshTable) -> tuple[str, ...]:
    """Every actor and system function of the mesh with a dead-letter queue."""
    heavy = any(actor.kind == "spark" for actor in mesh.actors.values())
    runs = (names.DISPATCH, names.COMPLETION) if heavy else ()
    return (*sorted(mesh.actors), *runs, *((names.TRIGGERS,) if mesh.triggers else ()))


def read_letter(arrival: Arrival, actor: str, problem: str | None = None) -> DeadLetter:
    """Read a message; an unreadable one gets a stand-in envelope with its own id, or one derived from the message id.

    Args:
        problem: why a function gave it up, as the message says.
    """
    if arrival.is_new:
        problem = None  # no function of the mesh has sent it
    if actor in SYSTEM_QUEUES or (not arrival.is_new and decode_message(arrival.body) is not None):
        return DeadLetter(arrival, actor, None, problem=problem)
    try:
        return DeadLetter(arrival, actor, arrival.envelope(), problem=problem)
    except ParseError as error:
        envelope_id = error.envelope_id or ids.id_of_message(arrival.message_id)
        return DeadLetter(
            arrival, actor, Envelope(id=envelope_id, route=Route((), actor, ()), payload=NULL), False, problem
        )


def has_left(envelope: Envelope, record: TaskRecord | None, latest: HopRecord | None) -> bool:
    """Whether the hop's first frame, and the id with it, has left: the task has reached a later position (`protocol §6`).

    Args:
        latest: the furthest reported hop of the record's generation.
    """
    if record is None or record.generation != envelope.generation:
        return False
    reached = latest.position if latest is not None else 0
    if record.is_terminal and record.route is not None:
        reached = max(reached, record.route.position)
    return reached > envelope.route.position


def letter_end(
    letter: DeadLetter, mesh: MeshTable, *, frame_left: bool, now: datetime, problem: TaskProblem | None = None
) -> LetterEnd | None:
    """End a dead letter's envelope: in its own phase if that is terminal, else as `failed/DeliveryExhausted`.

    Args:
        frame_left: whether the first frame has left with the id; a child then fails instead, and no set is notified.
        problem: the last problem that the task's hops reported.

    Returns:
        None if the message belongs to no task.
    """
    envelope = letter.envelope
    if envelope is None:
        return None
    if letter.actor == names.SINK:
        envelope = with_end_status(envelope, sent_at=letter.arrival.sent_at, now=now)
    phase = envelope.status.phase if envelope.status else None
    if phase in states.TERMINAL:
        return LetterEnd(envelope, _report(envelope, letter, now), slice_end_deliveries(mesh, envelope))
    if phase == states.PAUSED:
        return LetterEnd(envelope, None)
    ended = replace(envelope, status=_failed(letter, envelope, mesh, now, problem))
    if frame_left:
        ended = failed_child(ended)
    return LetterEnd(ended, _report(ended, letter, now), slice_end_deliveries(mesh, ended))


def refused_end(letter: DeadLetter, end: LetterEnd, *, now: datetime) -> LetterEnd:
    """The failed child that a refused failure leaves as (`protocol §11`); it notifies no set."""
    child = failed_child(end.envelope)
    return LetterEnd(child, _report(child, letter, now))


def canceled_end(end: LetterEnd, mesh: MeshTable, *, at: datetime) -> LetterEnd:
    """The end of a task that was canceled: it is on record, and the set of a slice learns of it (`protocol §11.sink.canceled`)."""
    canceled = as_canceled(end.envelope, at)
    return LetterEnd(canceled, None, slice_end_deliveries(mesh, canceled))


def stored_slice_end(letter: DeadLetter, claimed: str, mesh: MeshTable, *, now: datetime) -> LetterEnd | None:
    """The success of a slice that its fan-in actor claimed but did not report before it died; None for other messages.

    Args:
        claimed: the phase of the claimed end.
    """
    envelope, spec = letter.envelope, mesh.actors.get(letter.actor)
    if envelope is None or spec is None or spec.kind != "fan_in" or claimed != states.SUCCEEDED:
        return None
    started = status.started(
        envelope.status,
        actor=letter.actor,
        now=format_time(now),
        sent_at=format_time(letter.arrival.sent_at),
        max_attempts=1,
    )
    succeeded = replace(envelope, status=status.succeeded(started, now=format_time(now)))
    return LetterEnd(succeeded, _report(succeeded, letter, now, is_provisional=False))


def claimed_end(end: LetterEnd, at: datetime) -> LetterEnd:
    """The end with the time of its claim in its report."""
    event = end.event and replace(end.event, at=format_time(at))
    return LetterEnd(end.envelope, event, end.deliveries)


def claimed_position(letter: DeadLetter, end: LetterEnd, mesh: MeshTable) -> int:
    """The position at which the end of a dead letter is claimed: beyond every pause for an unreadable message.

    A pause actor notes its pause before it reports it. If it never could, its dead letter is the end of the task. If it could,
    the record is paused, and refuses that end.
    """
    if not letter.readable:
        return COUNT_LIMIT
    spec = mesh.actors.get(letter.actor)
    is_pause = spec is not None and spec.pauses
    return end_position(end.envelope) + int(is_pause)


def _failed(
    letter: DeadLetter, envelope: Envelope, mesh: MeshTable, now: datetime, problem: TaskProblem | None
) -> status.Status:
    spec, at = mesh.actors.get(letter.actor), format_time(now)
    times = f" in {spec.queue_receives} deliveries" if spec else " in all of its deliveries"
    if letter.problem is not None:
        times = f": {letter.problem}"
    unreadable = "" if letter.readable else ", and it is not a valid envelope"
    queue = names.dlq_name(mesh.namespace, letter.actor)
    message = f"{letter.actor} did not finish with the message{times}{unreadable}; it lies in {queue}"
    if problem is not None:
        message += f". The last problem was {problem.type}: {problem.message}"
    started = status.started(
        envelope.status, actor=letter.actor, now=at, sent_at=format_time(letter.arrival.sent_at), max_attempts=1
    )
    error = ErrorInfo(type="DeliveryExhausted", message=message)
    return status.failed(started, reason="DeliveryExhausted", now=at, error=error)


def _report(envelope: Envelope, letter: DeadLetter, now: datetime, *, is_provisional: bool = True) -> TaskEvent:
    """The report of an end. It is provisional, because the message may be sent again; a claimed success of a slice is not."""
    event = reports.terminal(envelope, at=now)
    data = replace(event.data, provisional=is_provisional)
    if not letter.readable:
        data = replace(data, route=None)  # the hop of the message is unknown
    if headers.PAYLOAD_REF in envelope.headers:
        # The payload is in S3, and too large for a report.
        data = replace(data, result=UNSET)
    if letter.envelope is not None and letter.envelope.status is None:
        # No sidecar has registered the task.
        data = replace(data, owner=letter.arrival.sender or None)
    return replace(event, data=data)
