"""Decides on envelopes that wait for a time: what is held, what is reported, and what leaves (`protocol §11`)."""

from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from asya.capabilities.pauses.due_times import DueTimeError, due_time, too_long
from asya.function.delivery import MAX_DELAY, MAX_WAIT, Delivery, Diversion
from asya.function.fair_queues import queue_group
from asya.function.hop import Hop
from asya.function.targets import actual_actor
from asya.protocol import headers, names, status
from asya.protocol.codec import encode
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.mesh_table import MeshTable
from asya.protocol.pause import Pause
from asya.protocol.status import Reason
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time, parse_time
from asya.protocol.wait import TaskWait, Wait, WaitHeader
from asya.sidecar.arrival import divert
from asya.tasks.reporting.reports import with_origin

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
    """A retry as x-wait holds it: due when its policy says, or when the mesh can hold it no longer."""
    header = wait_header(envelope)
    until = min(header.until, format_time(now + longest))
    return envelope.with_headers({headers.WAIT: WaitHeader(since=header.since, until=until)})


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
        status="waiting",
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
