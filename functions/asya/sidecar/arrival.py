"""The sidecar's checks before the handler call, in order (`protocol §5`, steps 1 to 6).

Late copies (`protocol §5.4`): a task that pauses at an epoch has sent frame 0 of every hop up to it, because the id
travels with frame 0. A message of such a hop is therefore a duplicate. It must not send frame 0 or an end of its id
again: the task may wait for an answer, or go on after one. Later frames may be missing, if the first run died between
them; they have ids of their own.
"""

import base64
import math
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from asya.function.claim_check import read_reference
from asya.function.hop import MAX_DELAY, MAX_WAIT, Arrival, Delivery, Diversion, Hop
from asya.function.outage_words import Outages, no_outages
from asya.function.sqs import queue_group
from asya.function.targets import TargetError, actual_actor, with_versions
from asya.protocol import headers, ids, names, states, status
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import UNKNOWN_HOP, Envelope, json_text
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import MeshTable
from asya.protocol.status import Status
from asya.protocol.strict_json import encode_value
from asya.protocol.task_key import without_key
from asya.protocol.times import format_time, past_time_in, time_in
from asya.protocol.tracing import hop_header, trace_context
from asya.senders.entry import kept_headers
from asya.sidecar import deadlines
from asya.tasks.task_state import TaskState


def is_late_copy(hop: Hop, state: TaskState | None) -> bool:
    """Whether the hop comes before the task's last pause; the pause itself does not, because it may be unfinished."""
    return state is not None and _is_before(hop, state) and not finishes_pause(hop, state)


def finishes_pause(hop: Hop, state: TaskState | None) -> bool:
    """Whether this is the pause actor of the task's last pause, so that the message completes what a crash left out."""
    if state is None or not hop.spec.pauses:
        return False
    return state.pause_epoch == hop.envelope.route.position and _is_before(hop, state)


def comes_before_pause(generation: int, position: int, state: TaskState | None) -> bool:
    """Whether a hop comes before the task's last pause, or is that pause."""
    if state is None or state.pause_epoch is None or state.generation != generation:
        return False
    return position <= state.pause_epoch


def _is_before(hop: Hop, state: TaskState) -> bool:
    return comes_before_pause(hop.envelope.generation, hop.envelope.route.position, state)


MIN_TIME_LEFT = timedelta(seconds=1)
# The kinds of actors that may give more than one frame.
_MAY_GIVE_MORE = ("handler", "spark")
LATE_COPY = "LateCopy"
"""The cause of a diversion without a message: the hop of this copy has sent its frame 0."""


def _never(_: Envelope) -> None:
    """No refusal."""


def _is_allowed(_: Hop) -> None:
    """No problem."""


def _as_it_is(envelope: Envelope, _: str) -> Envelope:
    """No key."""
    return envelope


def receive(
    arrival: Arrival,
    *,
    actor: str,
    mesh: MeshTable,
    now: datetime,
    refusal: Callable[[Envelope], ParseError | None] = _never,
    forbidden: Callable[[Hop], TargetError | None] = _is_allowed,
    with_key: Callable[[Envelope, str], Envelope] = _as_it_is,
) -> Hop | Diversion:
    """Steps 1 and 2: parse the message, check its sender and postpone it until due.

    `start` starts the hop once the task's state is known. The payload may still be behind its claim check.

    Args:
        refusal: says why a role of the mesh may not start a task under the id of an envelope. It is asked before the
            message is postponed, because the copy that this actor sends later bears a status.
        forbidden: says why the sender may not send where the route leads. It is asked before the message is postponed, because
            the copy that this actor sends later has this actor's role.
        with_key: gives an envelope the key of the task that it starts, from the SQS message id.
    """
    try:
        envelope = arrival.envelope()
    except ParseError as error:
        return parse_failure(arrival, error, now=now, with_key=with_key)
    is_new = arrival.is_new or envelope.status is None
    if envelope.status is None:
        # The sender of the message owns the task, whatever the message says.
        envelope = envelope.with_headers({headers.OWNER: arrival.sender or None})
        if not arrival.is_new and (refused := refusal(envelope)) is not None:
            return parse_failure(arrival, refused, now=now, with_key=with_key)
        envelope = with_key(envelope, arrival.message_id)
    if headers.PAYLOAD_REF in envelope.headers:
        try:
            read_reference(envelope.headers[headers.PAYLOAD_REF], envelope.id, actor)
        except ParseError as error:
            return parse_failure(arrival, error, now=now, with_key=with_key, starts_task=is_new)
    hop = Hop.of(envelope, actor, mesh.actors[actor], mesh, arrival, needs_registration=is_new)
    if (problem := forbidden(hop)) is not None:
        return replace(hop, forbidden=with_versions(str(problem), envelope, mesh))
    return _postpone(hop, now) or hop


def check_sender(hop: Hop, now: datetime) -> Diversion | None:
    """Send an envelope whose sender may not send where its route leads to x-sump (`protocol §1.authority`)."""
    return _to_sump(hop, "RouteMismatch", hop.forbidden, now) if hop.forbidden is not None else None


def start(
    hop: Hop,
    state: TaskState | None,
    *,
    now: datetime,
    new_span: Callable[[], str],
    outages: Outages = no_outages,
) -> Hop | Diversion:
    """Steps 3 to 6: check the task's state, the deadline and the route, then stamp the envelope.

    The state (step 4) decides first: a pause stops the deadline, and a copy from before the pause still has the old one.

    Args:
        state: the state of the task and its root; None if unknown, and the hop proceeds.
        new_span: returns 16 hexadecimal digits for this hop's trace span.
        outages: says which outages there were since the task began; asked after its deadline only.
    """
    if (refused := check_sender(hop, now)) is not None:
        return refused
    if is_late_copy(hop, state):
        return _start_late_copy(hop, state, now, new_span)
    stopped = _check_canceled(hop, state, now)
    if stopped is None and not finishes_pause(hop, state):
        stopped = _check_deadline(hop, now, outages)
    return stopped or restart(hop, now=now, new_span=new_span)


def restart(hop: Hop, *, now: datetime, new_span: Callable[[], str]) -> Hop | Diversion:
    """Steps 5 and 6 alone, for a hop whose work began before: neither a cancellation nor the deadline stops it."""
    return _check_route(hop, now) or _stamp(hop, now, new_span)


def parse_failure(
    arrival: Arrival,
    error: ParseError,
    *,
    now: datetime,
    with_key: Callable[[Envelope, str], Envelope] = _as_it_is,
    starts_task: bool = False,
) -> Diversion:
    """Send an unreadable message to x-sump as a whole (`protocol §5.1`).

    Readable headers are kept: x-sump needs the set of a slice, the generation and the stealth flag.

    Args:
        with_key: gives an envelope the key of the task that it starts, from the SQS message id.
        starts_task: whether the message starts a task under its id, which its sender has claimed.
    """
    envelope_id = error.envelope_id or ids.id_of_message(arrival.message_id)
    try:
        original, encoding = arrival.body.decode("utf-8"), "utf-8"
        payload = encode_value({"error": str(error), "original_message": original, "encoding": encoding})
    except UnicodeDecodeError:
        original, encoding = base64.b64encode(arrival.body).decode("ascii"), "base64"
        payload = encode_value({"error": str(error), "original_message": original, "encoding": encoding})
    at = format_time(now)
    created = status.created(names.SUMP, format_time(arrival.sent_at))
    envelope = Envelope(
        id=envelope_id,
        route=UNKNOWN_HOP,
        headers=kept_headers(arrival),
        payload=payload,
        status=status.failed(
            created, reason="ParseError", now=at, error=ErrorInfo(type="ParseError", message=str(error))
        ),
    )
    if error.envelope_id is None or arrival.is_new or starts_task:
        # An id of its own has no key yet; that of another task keeps the key with which the message came.
        envelope = with_key(without_key(envelope), arrival.message_id)
    return Diversion(envelope_id, (Delivery(names.SUMP, encode(envelope), "sump"),), "ParseError")


def divert(hop: Hop, end: str, new_status: Status, *, why: str) -> Diversion:
    """Send the envelope to an end actor with its route not shifted and its payload as received."""
    envelope = replace(hop.envelope, status=new_status)
    delivery = Delivery(end, encode(envelope), "sump" if end == names.SUMP else "sink")
    return Diversion(envelope.id, (delivery,), why)


def _postpone(hop: Hop, now: datetime) -> Diversion | None:
    """Step 2: send an envelope that is not due yet to its own queue again, with a delay."""
    envelope, deadline = hop.envelope, hop.deadline
    if headers.NOT_BEFORE not in envelope.headers:
        return None
    due = time_in(envelope.header(headers.NOT_BEFORE))
    if due is None or due <= now or due - now > MAX_WAIT or (deadline is not None and deadline <= due):
        return None
    delay = math.ceil(min(due - now, MAX_DELAY).total_seconds())
    group = queue_group(envelope, hop.spec)
    delivery = Delivery(hop.actor, _postponed_body(hop), "later", delay=delay, group=group)
    return Diversion(envelope.id, (delivery,), "NotBefore")


def _postponed_body(hop: Hop) -> bytes:
    """The message as received. A new task gets its first status, because this actor sends the next message for its owner."""
    if not hop.needs_registration:
        return hop.arrival.body
    return encode(replace(hop.envelope, status=status.created(hop.actor, format_time(hop.arrival.sent_at))))


def _check_deadline(hop: Hop, now: datetime, outages: Outages) -> Diversion | None:
    """Step 3: send an envelope without time left to x-sink."""
    if hop.deadline is None or hop.deadline - now >= MIN_TIME_LEFT:
        return None
    advice = deadlines.before_the_call(hop) + outages(hop.began_at)
    message = f"Deadline {format_time(hop.deadline)} passed before {hop.actor} started{advice}"
    error = ErrorInfo(type="Timeout", message=message)
    failed = status.failed(_start_status(hop, now), reason="Timeout", now=format_time(now), error=error)
    return divert(hop, names.SINK, failed, why="SlaExpired")


def _check_canceled(hop: Hop, state: TaskState | None, now: datetime) -> Diversion | None:
    """Step 4: send the envelope of a canceled task or root to x-sink."""
    if state is None or not state.is_canceled:
        return None
    canceled = status.ended(_start_status(hop, now), phase=states.CANCELED, reason="Canceled", now=format_time(now))
    return divert(hop, names.SINK, canceled, why="Canceled")


def _start_late_copy(hop: Hop, state: TaskState | None, now: datetime, new_span: Callable[[], str]) -> Hop | Diversion:
    """Start a late copy for its later frames, without its void deadline; a canceled or misplaced one ends here."""
    is_stopped = hop.spec.kind not in _MAY_GIVE_MORE or (state is not None and state.is_canceled)
    if is_stopped or _check_route(hop, now) is not None:
        return Diversion(hop.envelope.id, (), LATE_COPY)
    return replace(_stamp(hop, now, new_span), deadline=None, is_late_copy=True)


def _check_route(hop: Hop, now: datetime) -> Diversion | None:
    """Step 5: send an envelope on the wrong queue, or with too many hops (`protocol §1`), to x-sump."""
    route = hop.envelope.route
    if actual_actor(hop.envelope, route.curr) != hop.actor:
        problem = f"route.curr is {route.curr!r}" if route.curr else "the route is at its end"
        return _to_sump(hop, "RouteMismatch", f"{problem}, but the message lay on the queue of {hop.actor!r}", now)
    if route.position >= hop.mesh.max_hops:
        message = f"{route.position} hops done; this mesh allows {hop.mesh.max_hops} (max_hops)"
        return _to_sump(hop, "MaxHops", message, now)
    return None


def _to_sump(hop: Hop, reason: status.Reason, message: str, now: datetime) -> Diversion:
    error = ErrorInfo(type=reason, message=message)
    failed = status.failed(_start_status(hop, now), reason=reason, now=format_time(now), error=error)
    return divert(hop, names.SUMP, failed, why=reason)


def _stamp(hop: Hop, now: datetime, new_span: Callable[[], str]) -> Hop:
    """Step 6: stamp the status, the first attempt and the trace span."""
    envelope = hop.envelope
    started = _start_status(hop, now)
    first = past_time_in(envelope.header(headers.FIRST_ATTEMPT), now) if started.attempt != 1 else None
    sender = trace_context(envelope.headers.get(headers.TRACEPARENT))
    own_headers = envelope.headers.copy()
    own_headers[headers.TRACEPARENT] = hop_header(sender, envelope.id, new_span())
    own_headers[headers.FIRST_ATTEMPT] = json_text(format_time(first or now))
    if hop.mesh.version:
        own_headers[headers.MESH_VERSION] = json_text(hop.mesh.version)
    own_headers.pop(headers.NOT_BEFORE, None)
    own_headers.pop(headers.CIRCUIT_OPEN_SINCE, None)
    parent_span = sender.span_id if sender is not None else None
    return replace(hop, envelope=replace(envelope, status=started, headers=own_headers), parent_span=parent_span)


def _start_status(hop: Hop, now: datetime) -> Status:
    """The status at the start of this hop (`protocol §2`); the base also for a hop that ends before it starts."""
    default = hop.spec.resiliency.policies.get("default")
    received = hop.envelope.status
    return status.started(
        received,
        actor=hop.actor,
        now=format_time(now),
        sent_at=(received and received.created_at) or format_time(hop.arrival.sent_at),
        max_attempts=default.max_attempts if default else 1,
    )
