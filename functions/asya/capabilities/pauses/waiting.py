"""Decides until when envelopes wait, and what is held, reported or leaves (`protocol §11`)."""

from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.function.hop import MAX_DELAY, MAX_WAIT, Delivery, Diversion, Hop
from asya.function.sqs import QUEUE_RETENTION_DAYS, queue_group
from asya.function.targets import actual_actor
from asya.protocol import headers, names, states, status
from asya.protocol.codec import encode
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.mesh_table import MeshTable
from asya.protocol.pause import Pause
from asya.protocol.raw_values import value_at
from asya.protocol.status import Reason
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_duration, format_time, parse_time
from asya.protocol.wait import TaskWait, Wait, WaitHeader
from asya.sidecar.arrival import divert
from asya.tasks.reporting.reports import with_origin

# No honest wait is outside of these years, and epoch milliseconds are.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_ON_QUEUE = timedelta(days=QUEUE_RETENTION_DAYS)
_TEXT_LIMIT = 100  # characters of a wrong value in an error


class DueTimeError(ValueError):
    """The payload has no usable time where the wait looks for it."""


def due_time(wait: Wait, payload: Raw, *, now: datetime) -> datetime:
    """When an envelope that arrives now goes on.

    Raises:
        DueTimeError: the payload has no time at the pointer of the wait.
    """
    if wait.until is None:
        return now + timedelta(seconds=wait.seconds or 0.0)
    value = value_at(payload, wait.until)
    if value is None:
        raise DueTimeError(f"the payload has no value at {wait.until!r}; {_expected(wait.until)}")
    return _time_of(wait.until, value)


def too_long(until: datetime, *, now: datetime, longest: timedelta) -> str | None:
    """The problem of a wait that would outlive its task's record or its held envelope; None if it does not."""
    if until - now <= longest:
        return None
    wanted, limit = (format_duration(span.total_seconds()) for span in (until - now, longest))
    return (
        f"the wait of {wanted} is too long: this mesh holds an envelope for {limit} at most "
        "(retention.tasks and retention.payloads)"
    )


def _time_of(pointer: str, value: Raw) -> datetime:
    text = bytes(value).decode("utf-8", "replace").strip()
    shown = text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}…"
    try:
        read = msgspec.json.decode(value)
        moment = parse_time(read) if isinstance(read, str) else _from_epoch(read)
    except (msgspec.MsgspecError, ValueError, OverflowError, OSError):
        moment = None
    if moment is None:
        raise DueTimeError(f"the payload has {shown} at {pointer!r}; {_expected(pointer)}")
    if not EARLIEST <= moment < LATEST:
        years = f"from {EARLIEST.year} to {LATEST.year - 1}"
        raise DueTimeError(
            f"the payload has {shown} at {pointer!r}; its year must be {years}, and epochs are in seconds"
        )
    return moment


def _from_epoch(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A timestamp that the platform cannot convert is far outside of the years.
    if not 0 <= value < LATEST.timestamp():
        return LATEST
    return datetime.fromtimestamp(value, UTC)


def _expected(pointer: str) -> str:
    return f'put a time such as "2026-12-24T18:00:00Z" or epoch seconds at {pointer!r}'


_NO_RECORD = (
    "the envelope cannot wait for a time: this mesh has no record of its task ({header}: off, or a gateway of another mesh), and "
    "only a record says when it is due"
)
_BEYOND_DEADLINE = (
    "the wait until {until} would end after the deadline of the task, {deadline}; give the task a longer timeout, or let the "
    "deadline stand still during the wait (deadline: stands)"
)


def wait_of(hop: Hop) -> Wait:
    """The settings of the wait; without any it passes at once."""
    return hop.spec.wait or Wait(seconds=0.0)


def is_release(envelope: Envelope) -> bool:
    """Whether the sweep has sent this envelope after its wait."""
    return headers.WAIT in envelope.headers


def due(hop: Hop, *, is_recorded: bool, longest: timedelta, now: datetime) -> datetime | Diversion:
    """When the envelope goes on; a diversion to x-sink if it can never go on from here.

    Args:
        is_recorded: whether this mesh has a record of the task.
        longest: how long the mesh can hold an envelope.
    """
    wait = wait_of(hop)
    try:
        until = due_time(wait, hop.envelope.payload, now=now)
    except DueTimeError as error:
        return _failed(hop, "RuntimeError", str(error), now)
    if until <= now:
        return until
    if not is_recorded:
        return _failed(hop, "RuntimeError", _NO_RECORD.format(header=headers.MESH_STATUS), now)
    if (problem := too_long(until, now=now, longest=longest)) is not None:
        return _failed(hop, "RuntimeError", problem, now)
    if wait.deadline == "runs" and hop.deadline is not None and until >= hop.deadline:
        times = {"until": format_time(until), "deadline": format_time(hop.deadline)}
        return _failed(hop, "Timeout", _BEYOND_DEADLINE.format_map(times), now)
    return until


def with_timer(hop: Hop, until: datetime) -> Hop:
    """The hop of an actor whose wait stops the deadline: a pause without a question that ends by itself."""
    at = format_time(until)
    return replace(
        hop, spec=replace(hop.spec, pause=Pause(prompt=f"Goes on at {at}, or with a resume", show=(), until=at))
    )


def held_envelope(hop: Hop, until: datetime, *, now: datetime) -> Envelope:
    """The envelope to hold: on its way to the same actor, with the due time in `x-asya-wait`."""
    waiting = status.routed(hop.status, actor=hop.actor, now=format_time(now))
    header = WaitHeader(since=format_time(now), until=format_time(until))
    return replace(hop.envelope, status=waiting).with_headers({headers.WAIT: header, headers.NOT_BEFORE: None})


def wait_header(held: Envelope) -> WaitHeader:
    """The wait of a held envelope.

    Raises:
        ValueError: the object is no held envelope; only the mesh writes them.
    """
    try:
        return msgspec.json.decode(held.headers.get(headers.WAIT, msgspec.Raw(b"null")), type=WaitHeader)
    except msgspec.MsgspecError as error:
        raise ValueError(f"the held envelope {held.id} has no valid {headers.WAIT}: {error}") from None


def held_retry(envelope: Envelope, *, now: datetime, longest: timedelta) -> Envelope:
    """A retry as x-wait holds it: due when its policy says, at once if that is past, or when the mesh can hold it no longer.

    Its wait began while its message can have been on the queue, whatever the header says: a report of any other time is refused,
    and then nothing would send the envelope.

    Raises:
        ValueError: the header is none of a wait.
    """
    header = wait_header(envelope)
    since = min(max(parse_time(header.since), now - _ON_QUEUE), now)
    until = min(max(parse_time(header.until), now), now + longest)
    return envelope.with_headers({headers.WAIT: WaitHeader(since=format_time(since), until=format_time(until))})


def early_retry(envelope: Envelope, mesh: MeshTable, *, now: datetime) -> Delivery:
    """A retry that x-wait cannot hold, because this mesh has no record of its task: it waits for a day on its actor's queue."""
    due = format_time(now + MAX_WAIT)
    delivery = release_delivery(envelope.with_headers({headers.NOT_BEFORE: due}), mesh, now)
    return replace(delivery, delay=round(MAX_DELAY.total_seconds()) if delivery.kind == "next" else 0)


def waiting_report(held: Envelope, actor: str, *, attempt: int, wait: WaitHeader) -> TaskEvent:
    """The report of a wait; a repeated report is equal.

    Args:
        held: the envelope as it is held.
        actor: the actor that takes the envelope when it is due.
        attempt: the attempt that waits, or that comes after the wait.
    """
    data = EventData(actor=actor, route=held.route, attempt=attempt, waiting_until=wait.until)
    return TaskEvent(
        id=held.id,
        status=states.WAITING,
        at=wait.since,
        generation=held.generation,
        position=held.route.position,
        attempt=attempt,
        parent_id=held.parent_id,
        root_id=held.root_id,
        data=with_origin(data, held),
    )


def is_due(wait: TaskWait | None, now: datetime) -> bool:
    """Whether an envelope that waits should leave now."""
    return wait is not None and not wait.is_sent and parse_time(wait.until) <= now


def as_sent(record: TaskRecord, wait: TaskWait) -> TaskRecord:
    """The record after a wait was sent. A later wait stays as it is; a cancellation may have made this one due earlier."""
    current = record.wait
    if current is None or current.place != wait.place:
        return record
    return replace(record, wait=replace(current, is_sent=True))


def release_delivery(held: Envelope, mesh: MeshTable, now: datetime) -> Delivery:
    """The message that ends a wait: the envelope to its own actor, or to x-sump if a deployment has removed that actor."""
    actor = actual_actor(held, held.route.curr)
    spec = mesh.actors.get(actor)
    if spec is not None:
        envelope = held if spec.kind == "wait" else held.with_headers({headers.WAIT: None})
        return Delivery(actor, encode(envelope), "next", group=queue_group(held, spec))
    at = format_time(now)
    message = f"{actor} held the envelope until now, and the mesh {mesh.namespace!r} has no such actor any more"
    error = ErrorInfo(type="RouteMismatch", message=message)
    failed = status.failed(held.status or status.created(actor, at), reason="RouteMismatch", now=at, error=error)
    return Delivery(names.SUMP, encode(replace(held, status=failed)), "sump")


def _failed(hop: Hop, reason: Reason, message: str, now: datetime) -> Diversion:
    error = ErrorInfo(type="Timeout" if reason == "Timeout" else "RuntimeError", message=message)
    failed = status.failed(hop.status, reason=reason, now=format_time(now), error=error)
    return divert(hop, names.SINK, failed, why="CannotWait")
