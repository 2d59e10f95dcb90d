"""Turns the outcome of a hop into the message to send (`protocol §5`, steps 8 to 12; `§8`)."""

import math
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Raw
from msgspec.structs import replace

from asya.capabilities.legacy.child_ids import numbered_id
from asya.capabilities.legacy.failed_payload import wrapped_payload
from asya.capabilities.legacy.options import FAILED_PAYLOAD
from asya.function.hop import MAX_DELAY, MAX_WAIT, Delivery, DeliveryKind, Hop
from asya.function.sqs import queue_group
from asya.function.targets import TargetError, actual_actor, check_way, with_versions
from asya.protocol import headers, names, states, status
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Envelope, Frame, Route, UnknownMembers, changed
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import RetryNote
from asya.protocol.slices import own_place
from asya.protocol.status import Reason, Status
from asya.protocol.task_key import Step, child_key
from asya.protocol.times import format_duration, format_time, past_time_in
from asya.protocol.wait import WaitHeader
from asya.sidecar import deadlines, retry_policy
from asya.sidecar.slices import TooManyChildrenError

MIN_CIRCUIT_DELAY = timedelta(seconds=1)
# Headers that the shift removes (`protocol §3`, `§5.9`).
_ENDS_WITH_THE_HOP = (headers.FIRST_ATTEMPT, headers.NOT_BEFORE, headers.PAUSE, headers.WAIT)
# A handler may set these and read them back. Routing overwrites them when the envelope leaves.
_STAMPED_STATUS_KEYS = frozenset(Status.__struct_fields__)


def frame(hop: Hop, output: Frame, index: int, *, now: datetime, numbered: bool = False) -> Delivery:
    """Shift the route of an output frame and address it to the next actor, or to x-sink at the end of the route.

    Frame 0 keeps the id and the parent; later frames are children with a derived id (`protocol §4`).

    Args:
        numbered: whether this hop has the numbered ids of the envelope, so that children get those (`protocol §14`).

    Raises:
        TargetError: the next actor is unknown, or this actor may not send to it; the hop then fails with `mismatch`.
    """
    received = hop.envelope
    route = received.route.shifted(output.next)
    # An empty name before other names is a mistake, not the end of the route.
    target = _check_way(hop, route) if route.curr or route.next else names.SINK
    at = format_time(now)
    if route.curr:
        new_status = status.routed(hop.status, actor=target, now=at)
    else:
        new_status = status.succeeded(hop.status, now=at)
    envelope = replace(
        received,
        route=route,
        headers=_onward(received.headers, output),
        status=new_status,
        payload=received.payload if output.payload is None else output.payload,
        status_extra=_status_extra(received, output) if output.status else received.status_extra,
    )
    if target != route.curr:
        envelope = _with_resolved_override(envelope, target, by=hop.actor)
    if index > 0:
        legacy_id = numbered_id(received.id, index) if numbered else None
        step = Step(received.id, None if legacy_id else received.route.position, index, own_place(envelope))
        envelope = _child(envelope, step)
    return _delivery(hop, target, envelope, "next" if route.curr else "sink")


def empty(hop: Hop, *, now: datetime) -> Delivery:
    """End an envelope without an output frame at x-sink, its route not shifted (`protocol §5.10`).

    It succeeds, unless it came as failed or canceled.
    """
    received, at = hop.received.status if hop.received is not None else None, format_time(now)
    match received.phase if received is not None else None:
        case states.FAILED:
            reason = received.reason if received is not None else None
            final_status = replace(hop.status, phase=states.FAILED, reason=reason or "RuntimeError", updated_at=at)
        case states.CANCELED:
            final_status = status.ended(hop.status, phase=states.CANCELED, reason="Canceled", now=at)
        case _:
            final_status = status.succeeded(hop.status, now=at)
    return _delivery(hop, names.SINK, replace(hop.envelope, status=final_status), "sink")


# The reason of a failure without a policy: the handler failed, its job run died, or the circuit breaker rejected the call
# (`protocol §8`, `§10`).
FailureReason = Literal["RuntimeError", "SparkJobFailed", "CircuitOpen"]


def failed(
    hop: Hop,
    error: ErrorInfo,
    *,
    now: datetime,
    jitter: float,
    frames_sent: int = 0,
    reason: FailureReason = "RuntimeError",
) -> Delivery:
    """Retry, reroute or end an envelope after an error, as the actor's policies say (`protocol §8`).

    Args:
        jitter: uniform in [0, 1).
        reason: the reason of the failure if no policy applies.
        frames_sent: frames that have already left. Frame 0 carries the id on, so a later failure is not retried; it leaves
            as a failed child (`protocol §6`).
    """
    if frames_sent:
        return _ended(hop, names.SINK, reason, error, now, frames_sent=frames_sent)
    decision = _retry_decision(hop, error, now, jitter)
    match decision:
        case retry_policy.Retry():
            return _retry(hop, decision, error, now)
        case retry_policy.Exhausted():
            if decision.then_route:
                return _policy_routed(hop, decision.then_route, error, now)
            return _ended(hop, names.SINK, "PolicyExhausted", error, now, max_attempts=decision.max_attempts)
        case retry_policy.NoPolicy():
            return _ended(hop, names.SINK, reason, error, now)


def rejected(
    hop: Hop, error: ErrorInfo, *, until: datetime, now: datetime, jitter: float, frames_sent: int = 0
) -> Delivery:
    """Delay an envelope whose call the circuit breaker rejected, without an attempt (`protocol §8`).

    A rule that names the error decides instead. So it does once the circuit has delayed the envelope for a day.

    Args:
        until: when the circuit may permit a call.
        jitter: uniform in [0, 1); it spreads the return of the envelopes over half of the delay, or of what is then left until the
            deadline.
        frames_sent: frames that have already left; an end is then that of a failed child.
    """
    received = hop.received or hop.envelope
    since = past_time_in(received.header(headers.CIRCUIT_OPEN_SINCE), now) or now
    if retry_policy.has_rule_for(hop.spec.resiliency, error) or now - since >= MAX_WAIT:
        return failed(hop, error, now=now, jitter=jitter, reason="CircuitOpen", frames_sent=frames_sent)
    earliest = now + max(until - now, MIN_CIRCUIT_DELAY)
    if hop.deadline is not None and earliest > hop.deadline:
        return _ended(hop, names.SINK, "Timeout", error, now, frames_sent=frames_sent)
    # The spread leaves the call half of the time until the deadline.
    spread = earliest - now if hop.deadline is None else min(earliest - now, hop.deadline - earliest)
    due = earliest + spread * (jitter / 2)
    changes: dict[str, object] = {headers.CIRCUIT_OPEN_SINCE: format_time(since)}
    if due - now > MAX_DELAY:
        changes[headers.NOT_BEFORE] = format_time(due)
    # Without a status the envelope would be registered again, and with a later creation.
    before = received.status or replace(hop.status, phase=states.PENDING)
    delayed = replace(received, status=replace(before, created_at=hop.status.created_at)).with_headers(changes)
    delay = math.ceil(min(due - now, MAX_DELAY).total_seconds())
    return _delivery(hop, hop.actor, delayed, "later", delay=delay)


def timed_out(
    hop: Hop,
    limit: timedelta,
    *,
    by_deadline: bool,
    now: datetime,
    jitter: float,
    frames_sent: int = 0,
    outages: str = "",
) -> Delivery:
    """Send an envelope to x-sump after the actor's time limit, to x-sink after its deadline (`protocol §5.11`).

    Only a rule that lists `Timeout` literally retries after the actor's time limit.

    Args:
        outages: what the error says about outages since the task began.
    """
    message = f"Runtime did not respond within {format_duration(limit.total_seconds())}"
    advice = deadlines.during_the_call(hop) + outages
    error = ErrorInfo(type="Timeout", message=f"{message}{advice}" if by_deadline else message)
    if by_deadline:
        return _ended(hop, names.SINK, "Timeout", error, now, frames_sent=frames_sent)
    if not frames_sent:
        decision = _retry_decision(hop, error, now, jitter, time_limit=True)
        if isinstance(decision, retry_policy.Retry):
            return _retry(hop, decision, error, now)
        if isinstance(decision, retry_policy.Exhausted):
            if decision.then_route:
                return _policy_routed(hop, decision.then_route, error, now)
            return _ended(hop, names.SUMP, "Timeout", error, now, max_attempts=decision.max_attempts)
    return _ended(hop, names.SUMP, "Timeout", error, now, frames_sent=frames_sent)


def crashed(hop: Hop, error: ErrorInfo, *, now: datetime, frames_sent: int = 0) -> Delivery:
    """Send an envelope to x-sump after its handler raised SystemExit or another BaseException (`protocol §5.11`)."""
    return _ended(hop, names.SUMP, "RuntimeCrash", error, now, frames_sent=frames_sent)


def mismatch(hop: Hop, error: TargetError, *, now: datetime, frames_sent: int = 0) -> Delivery:
    """Send an envelope to x-sump whose next actor is unknown, reserved or not allowed (`protocol §5.12`)."""
    message = with_versions(str(error), hop.received or hop.envelope, hop.mesh)
    info = ErrorInfo(type="RouteMismatch", message=message)
    return _ended(hop, names.SUMP, "RouteMismatch", info, now, frames_sent=frames_sent)


def too_many_children(hop: Hop, error: TooManyChildrenError, *, now: datetime, frames_sent: int = 0) -> Delivery:
    """Send an envelope to x-sump whose hop gives more children than the mesh allows (`protocol §1.max_children`)."""
    return _ended(hop, names.SUMP, "MaxChildren", error.error, now, frames_sent=frames_sent)


def unreadable(hop: Hop, problem: str, *, now: datetime, frames_sent: int = 0) -> Delivery:
    """Send an envelope to x-sump whose payload is valid JSON but has a number out of range."""
    info = ErrorInfo(type="ParseError", message=f"Failed to parse message: payload: {problem}")
    return _ended(hop, names.SUMP, "ParseError", info, now, frames_sent=frames_sent)


def without_payload(hop: Hop, error: ParseError, *, now: datetime) -> Delivery:
    """Send an envelope to x-sump whose stored payload is gone or damaged, with its reference (`protocol §5.1`)."""
    info = ErrorInfo(type="ParseError", message=str(error))
    return _ended(hop, names.SUMP, "ParseError", info, now, frames_sent=int(hop.is_late_copy))


def _retry_decision(
    hop: Hop, error: ErrorInfo, now: datetime, jitter: float, *, time_limit: bool = False
) -> retry_policy.RetryDecision:
    return retry_policy.decide(
        hop.spec.resiliency,
        error,
        attempt=hop.attempt,
        first_attempt=past_time_in(hop.envelope.header(headers.FIRST_ATTEMPT), now) or now,
        now=now,
        jitter=jitter,
        time_limit=time_limit,
    )


def _retry(hop: Hop, decision: retry_policy.Retry, error: ErrorInfo, now: datetime) -> Delivery:
    """Send the envelope to its own queue with a delay and the next attempt; end it if that is after the deadline.

    A delay of more than a day is for x-wait, which holds the envelope.
    """
    limited = replace(hop.status, max_attempts=decision.max_attempts)
    due = now + decision.delay
    if hop.deadline is not None and due > hop.deadline:
        return _ended(hop, names.SINK, "Timeout", error, now, max_attempts=decision.max_attempts)
    envelope = replace(hop.envelope, status=status.retrying(limited, now=format_time(now), error=error))
    note = RetryNote(error=error, max_attempts=decision.max_attempts, next_at=format_time(due))
    if decision.delay > MAX_WAIT and not envelope.is_stealth and names.WAIT in hop.mesh.actors:
        header = WaitHeader(since=format_time(now), until=format_time(due))
        return replace(_delivery(hop, names.WAIT, envelope.with_headers({headers.WAIT: header}), "retry"), retry=note)
    delay = min(decision.delay, MAX_WAIT)
    note = replace(note, next_at=format_time(now + delay))
    if delay > MAX_DELAY:
        envelope = envelope.with_headers({headers.NOT_BEFORE: format_time(now + delay)})
    seconds = math.ceil(min(delay, MAX_DELAY).total_seconds())
    return replace(_delivery(hop, hop.actor, envelope, "retry", delay=seconds), retry=note)


def _policy_routed(hop: Hop, actors: tuple[str, ...], error: ErrorInfo, now: datetime) -> Delivery:
    """Send the envelope along the policy's `then_route`; a mismatch if its first actor is unknown or not allowed."""
    route = hop.envelope.route.shifted(actors)
    try:
        target = _check_way(hop, route)
    except TargetError as unknown:
        return mismatch(hop, unknown, now=now)
    routed = status.policy_routed(hop.status, actor=target, now=format_time(now), error=error)
    envelope = replace(hop.envelope, route=route, status=routed).with_headers(dict.fromkeys(_ENDS_WITH_THE_HOP))
    return _delivery(hop, target, _with_resolved_override(envelope, target, by=hop.actor), "next")


def _ended(
    hop: Hop,
    end: str,
    reason: Reason,
    error: ErrorInfo,
    now: datetime,
    *,
    frames_sent: int = 0,
    max_attempts: int | None = None,
) -> Delivery:
    """End an envelope as failed: route not shifted, payload as received or wrapped with the error (`protocol §14`)."""
    current = hop.status if max_attempts is None else replace(hop.status, max_attempts=max_attempts)
    envelope = replace(hop.envelope, status=status.failed(current, reason=reason, now=format_time(now), error=error))
    if FAILED_PAYLOAD.of(hop.spec) == "wrapped" and headers.PAYLOAD_REF not in envelope.headers:
        envelope = replace(envelope, payload=wrapped_payload(reason, error, envelope.payload))
    if frames_sent:
        # The place in a set left with frame 0; its set must not hear of this failure.
        step = Step(envelope.id, envelope.route.position, "error")
        envelope = _child(envelope, step).with_headers({headers.FAN_IN: None})
    return _delivery(hop, end, envelope, "sump" if end == names.SUMP else "sink")


def _check_way(hop: Hop, route: Route) -> str:
    """The actual actor of the next hop, or a `TargetError`. What the crew would refuse later is refused here."""
    check_way(hop.mesh, hop.envelope, (hop.actor,), (route.curr, *route.next))
    return actual_actor(hop.envelope, route.curr)


def _child(envelope: Envelope, step: Step) -> Envelope:
    """Make the envelope a child of itself, with an id of its own, the parent and the root of the tree."""
    changes: dict[str, object] = {headers.ROOT: envelope.root_id or envelope.id, headers.KEY: child_key(envelope, step)}
    child_id = step.child_id(envelope.generation)
    return replace(envelope, id=child_id, parent_id=envelope.id).with_headers(changes)


def _onward(received: dict[str, Raw], output: Frame) -> dict[str, Raw]:
    remaining = dict(received)
    for name in _ENDS_WITH_THE_HOP:
        remaining.pop(name, None)
    return changed(remaining, output.headers) if output.headers else remaining


def _status_extra(envelope: Envelope, output: Frame) -> UnknownMembers:
    own = {name: raw for name, raw in output.status.items() if name not in _STAMPED_STATUS_KEYS}
    return UnknownMembers(changed(envelope.status_extra, own)) if own else envelope.status_extra


def _with_resolved_override(envelope: Envelope, target: str, *, by: str) -> Envelope:
    """Record in the audit header that a route override changed the next actor (`protocol §3`)."""
    logical = envelope.route.curr
    if not logical or target == logical:
        return envelope
    earlier = envelope.header(headers.ROUTE_RESOLVED)
    resolved = dict(earlier) if isinstance(earlier, dict) else {}
    resolved[logical] = {"target": target, "by": by}
    return envelope.with_headers({headers.ROUTE_RESOLVED: resolved})


def _delivery(hop: Hop, actor: str, envelope: Envelope, kind: DeliveryKind, *, delay: int = 0) -> Delivery:
    target = hop.mesh.actors.get(actor)
    group = queue_group(envelope, target) if target else None
    return Delivery(actor, encode(envelope), kind, delay, group)
