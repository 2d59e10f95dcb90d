"""Spans: what each function records of the trace of an envelope (`protocol §15`)."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import msgspec

from asya.function.hop import Hop
from asya.protocol import headers, states
from asya.protocol.envelope import Envelope
from asya.protocol.tracing import TraceContext, trace_context

# The share of all trace ids is measured on their second half, as OpenTelemetry's ratio sampler does.
_RANDOM_DIGITS = 16
_ALL = 16**_RANDOM_DIGITS

Value = str | int | float


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One finished span.

    Attributes:
        context: the trace, the id of this span, and the flags.
        parent_id: the id of the span before it; None for the first span of the trace.
        service: the actor or system function that did the work.
        name: the work, such as `process score`.
        error: the type of the error that ended the work; None if it succeeded.
        attributes: further facts; no payload, and no message of an error.
        sends_only: whether the work receives no message.
    """

    context: TraceContext
    parent_id: str | None
    service: str
    name: str
    started_at: datetime
    ended_at: datetime
    error: str | None = None
    attributes: Mapping[str, Value] = {}
    sends_only: bool = False


def is_recorded(context: TraceContext, share: float) -> bool:
    """Whether the mesh records a trace; all hops of a trace decide alike.

    Args:
        share: the share of traces to record, from 0 to 1.
    """
    return context.is_sampled and int(context.trace_id[_RANDOM_DIGITS:], 16) < share * _ALL


def hop_span(hop: Hop, action: str, started_at: datetime, ended_at: datetime, error: str | None = None) -> Span | None:
    """The span of a hop; None for an envelope without a trace.

    Args:
        action: what the hop did, such as `process`.
        error: the type of the error that ended the hop.
    """
    context = envelope_context(hop.envelope)
    if context is None:
        return None
    return Span(
        context=context,
        parent_id=hop.parent_span,
        service=hop.actor,
        name=f"{action} {hop.actor}",
        started_at=started_at,
        ended_at=ended_at,
        error=error,
        attributes=_attributes(hop.envelope) | {"asya.attempt": hop.attempt},
    )


def job_span(hop: Hop, run_id: str, started_at: datetime, ended_at: datetime, error: str | None) -> Span | None:
    """The span of an envelope in a job run, below that of its hop; None for an envelope without a trace.

    Its id is derived from the hop and the run: a result that is routed twice is one span.
    """
    context = envelope_context(hop.envelope)
    if context is None:
        return None
    span = hashlib.sha256(f"{context} {run_id}".encode()).hexdigest()[:16]
    return Span(
        context=context.child(span),
        parent_id=context.span_id,
        service=hop.actor,
        name=f"run {hop.actor}",
        started_at=started_at,
        ended_at=ended_at,
        error=error,
        attributes=_attributes(hop.envelope) | {"asya.attempt": hop.attempt, "asya.run_id": run_id},
    )


def end_span(
    envelope: Envelope, actor: str, span: str, started_at: datetime, ended_at: datetime, *, error: str | None = None
) -> Span | None:
    """The span of an end actor; None for an envelope without a trace.

    Args:
        actor: the end actor.
        span: the id of the span, 16 hexadecimal digits.
        error: the type of the error of the end actor itself; by default that of a failed envelope.
    """
    sender = envelope_context(envelope)
    if sender is None:
        return None
    phase = envelope.end_phase
    cause = envelope.status.error if envelope.status is not None and phase == states.FAILED else None
    return Span(
        context=sender.child(span),
        parent_id=sender.span_id,
        service=actor,
        name=f"process {actor}",
        started_at=started_at,
        ended_at=ended_at,
        error=error or (cause.type if cause is not None else None),
        attributes=_attributes(envelope) | {"asya.phase": phase},
    )


def submission_span(
    envelope: Envelope, caller: TraceContext | None, service: str, started_at: datetime, ended_at: datetime
) -> Span | None:
    """The span of a submission; None for an envelope without a trace.

    Args:
        envelope: the first envelope of the task.
        caller: the trace context of the request; None without one.
        service: the function that took the request.
    """
    context = envelope_context(envelope)
    if context is None:
        return None
    return Span(
        context=context,
        parent_id=caller.span_id if caller is not None else None,
        service=service,
        name=f"submit {envelope.route.curr}",
        started_at=started_at,
        ended_at=ended_at,
        attributes=_attributes(envelope),
        sends_only=True,
    )


def envelope_context(envelope: Envelope) -> TraceContext | None:
    """The trace context in the headers of an envelope."""
    return trace_context(envelope.headers.get(headers.TRACEPARENT))


def _attributes(envelope: Envelope) -> dict[str, Value]:
    """The attributes of each span of an envelope."""
    attributes: dict[str, Value] = {
        "messaging.system": "aws_sqs",
        "messaging.message.conversation_id": envelope.id,
        "asya.envelope_id": envelope.id,
        "asya.generation": envelope.generation,
        "asya.route.position": envelope.route.position,
    }
    return attributes | ({"asya.parent_id": envelope.parent_id} if envelope.parent_id is not None else {})
