"""The reports of a hop about its task (`protocol §5`, reports; `§13`, event data)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from asya.function.hop import Hop
from asya.function.spans import envelope_context, is_recorded
from asya.protocol import headers, states
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo, TaskProblem, shortened
from asya.protocol.events import (
    COUNT_LIMIT,
    INLINE_RESULT_LIMIT,
    PARTIAL_LIMIT,
    RECEIVE_LIMIT,
    EventData,
    PartialEvent,
    RetryNote,
    TaskEvent,
)
from asya.protocol.run_progress import RunNote
from asya.protocol.slices import slice_header
from asya.protocol.states import EventStatus
from asya.protocol.strict_json import encode_value
from asya.protocol.times import format_time

# Characters; the gateway refuses a longer one.
_OWNER_LIMIT = 1024
_NAME_LIMIT = 1024
_RETRY_MESSAGE_LIMIT = 1024


def registered(hop: Hop, *, now: datetime) -> TaskEvent:
    """The required report that registers the task of an envelope without a status; the hop is not stamped yet."""
    data = EventData(
        actor=hop.actor,
        route=hop.envelope.route,
        created_at=format_time(hop.arrival.sent_at) if hop.envelope.parent_id is None else None,
    )
    return _event(hop, states.REGISTERED, data, now)


def received(hop: Hop, *, now: datetime) -> TaskEvent:
    """The report that the message was received."""
    size = round(hop.arrival.size / 1024, 3)
    data = EventData(
        actor=hop.actor,
        route=hop.envelope.route,
        attempt=hop.attempt,
        message_size_kb=size,
        trace_id=_trace_in_xray(hop),
    )
    return _event(hop, states.RECEIVED, data, now)


def _trace_in_xray(hop: Hop) -> str | None:
    if hop.mesh.xray_share is None:
        return None
    context = envelope_context(hop.envelope)
    return context.trace_id if context is not None and is_recorded(context, hop.mesh.xray_share) else None


def processing(hop: Hop, *, now: datetime) -> TaskEvent:
    """The report that the handler starts."""
    return at_work(hop.envelope, hop.actor, now=now)


def at_work(envelope: Envelope, actor: str, *, now: datetime) -> TaskEvent:
    """The report that an actor works on an envelope, be it a hop or an end."""
    attempt = (envelope.status.attempt if envelope.status else None) or 1
    return _task_event(envelope, states.PROCESSING, EventData(actor=actor, route=envelope.route, attempt=attempt), now)


def with_run(event: TaskEvent, run: RunNote) -> TaskEvent:
    """A copy of a report with the progress of the job run (`protocol §10`)."""
    return replace(event, data=replace(event.data, run=run))


def completed(hop: Hop, next_actors: tuple[str, ...] | None, *, now: datetime, duration_ms: float) -> TaskEvent:
    """The report of the first frame, or of a hop without a frame.

    Args:
        next_actors: `route.next` as left for frame 0; None if the handler did not change it.
    """
    route = hop.envelope.route
    if next_actors is not None:
        route = replace(route, next=next_actors)
    data = EventData(actor=hop.actor, route=route, attempt=hop.attempt, duration_ms=round(duration_ms, 3))
    return _event(hop, states.COMPLETED, data, now)


def retried(hop: Hop, retry: RetryNote, *, now: datetime) -> TaskEvent:
    """The report of a failed attempt that is followed by another one (`protocol §13.retry`)."""
    event = at_work(hop.envelope, hop.actor, now=now)
    # The whole error travels in the envelope; a record keeps its text.
    error = ErrorInfo(type=retry.error.type, message=retry.error.message[:_RETRY_MESSAGE_LIMIT])
    return replace(event, data=replace(event.data, retry=replace(retry, error=shortened(error))))


def with_problem(event: TaskEvent, problem: TaskProblem, *, now: datetime) -> TaskEvent:
    """The last progress report of a hop again, with what keeps its message on the queue (`protocol §13`)."""
    data = msgspec.structs.replace(event.data, problem=problem)
    return msgspec.structs.replace(event, at=format_time(now), data=data)


def partial(hop: Hop, message: Mapping[str, Any], sequence: int, *, now: datetime) -> PartialEvent:
    """A partial of a handler (`protocol §7`, FLY).

    Args:
        sequence: the number of the partial within this receive of the hop, from 0.

    Raises:
        ValueError: the value is not JSON or is too large.
    """
    text = encode_value(message)
    if len(bytes(text)) > PARTIAL_LIMIT:
        raise ValueError(f"FLY takes up to {PARTIAL_LIMIT} bytes of JSON; this has {len(bytes(text))}")
    return PartialEvent(
        id=hop.envelope.id,
        at=format_time(now),
        data=text,
        actor=hop.actor,
        generation=hop.envelope.generation,
        position=hop.envelope.route.position,
        attempt=(hop.envelope.status.attempt if hop.envelope.status else None) or 1,
        receive=min(max(hop.arrival.receive_count, 1), RECEIVE_LIMIT),
        sequence=min(sequence, COUNT_LIMIT),
        key=hop.envelope.headers.get(headers.KEY, msgspec.UNSET),
    )


def has_inline_result(envelope: Envelope) -> bool:
    """Whether the report of an end has the whole result."""
    succeeded = envelope.status is not None and envelope.status.phase == states.SUCCEEDED
    return succeeded and len(bytes(envelope.payload)) <= INLINE_RESULT_LIMIT


def terminal(envelope: Envelope, *, at: datetime, result_uri: str | None = None) -> TaskEvent:
    """The report of an envelope's end. It contains a result of up to 64 KiB.

    Args:
        at: when the end was claimed.
    """
    status = envelope.status
    phase = status.phase if status else None
    actor = ((status.actor if status else None) or "")[:_NAME_LIMIT]
    succeeded = phase == states.SUCCEEDED
    data = EventData(
        actor=actor,
        route=envelope.route,
        attempt=status.attempt if status else None,
        result=envelope.payload if has_inline_result(envelope) else msgspec.UNSET,
        result_uri=result_uri,
        error=shortened(status.error) if status and status.error and not succeeded else None,
        reason=status.reason[:_NAME_LIMIT] if status and status.reason and not succeeded else None,
    )
    end: EventStatus = (
        phase if phase in (states.SUCCEEDED, states.FAILED, states.CANCELED, states.PAUSED) else states.FAILED
    )
    return _task_event(envelope, end, data, at)


def _event(hop: Hop, status: EventStatus, data: EventData, now: datetime) -> TaskEvent:
    return _task_event(hop.envelope, status, data, now)


def _task_event(envelope: Envelope, status: EventStatus, data: EventData, now: datetime) -> TaskEvent:
    return TaskEvent(
        id=envelope.id,
        status=status,
        at=format_time(now),
        generation=envelope.generation,
        position=envelope.route.position,
        attempt=(envelope.status.attempt if envelope.status else None) or 1,
        parent_id=envelope.parent_id,
        root_id=envelope.root_id,
        data=with_origin(data, envelope),
        key=envelope.headers.get(headers.KEY, msgspec.UNSET),
    )


def owner_of(envelope: Envelope) -> str | None:
    """Whose the envelope is, if it began as a raw message (`protocol §3.owner`); None if it does not say."""
    owner = envelope.header(headers.OWNER)
    return owner if isinstance(owner, str) and 0 < len(owner) <= _OWNER_LIMIT else None


def with_origin(data: EventData, envelope: Envelope) -> EventData:
    """Data with all that a record needs at its creation: reports arrive in any order."""
    own = envelope.status
    return replace(
        data,
        owner=owner_of(envelope),
        # A child carries the creation time of its root.
        created_at=own.created_at if own is not None and envelope.parent_id is None else data.created_at,
        deadline_at=own.deadline_at if own is not None else None,
        set_id=set_of(envelope),
    )


def set_of(envelope: Envelope) -> str | None:
    """The set that its parent opened and that takes the envelope as a slice; None for any other child, and without a parent."""
    if envelope.parent_id is None or headers.FAN_IN not in envelope.headers:
        return None
    try:
        header = slice_header(envelope)
    except ValueError:
        return None
    while header is not None and header.origin_id != envelope.parent_id:
        header = header.enclosing  # it is the origin of a set within the set
    return header.set_id if header is not None else None
