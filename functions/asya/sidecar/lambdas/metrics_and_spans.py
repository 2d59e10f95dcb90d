"""Metrics and spans that the functions of actors record (`protocol §15`)."""

from collections.abc import Sequence
from datetime import datetime

from asya.function.hop import Hop
from asya.function.lambdas.batch import Record
from asya.function.spans import end_span, hop_span, job_span
from asya.protocol import states
from asya.protocol.envelope import Envelope
from asya.protocol.job_runs import ResultHead
from asya.sidecar.lambdas.services import Services

# Causes of a diversion that have a metric of their own.
_CAUSE_METRICS = {"SlaExpired": "SlaExpired", "MaxHops": "HopLimit"}


def record_arrivals(services: Services, items: Sequence[Record]) -> None:
    """Record the number of messages in a batch, their sizes and their latencies."""
    telemetry, now = services.telemetry, services.now()
    telemetry.count("Received", len(items))
    telemetry.measure("InFlight", len(items), "Count")
    for record in items:
        telemetry.measure("MessageSize", record.arrival.size, "Bytes")
        latency_ms = (now - record.arrival.sent_at).total_seconds() * 1000
        telemetry.measure("HopLatency", max(0.0, latency_ms), "Milliseconds")


def record_job_result(services: Services, head: ResultHead, actor: str) -> None:
    """Record the result of one envelope of a job run."""
    outcome = states.SUCCEEDED if head.end == states.DONE else head.end
    services.telemetry.count("Processed", by=("outcome", outcome), actor=actor)
    services.telemetry.measure("HandlerDuration", head.duration_ms, "Milliseconds", actor=actor)
    if head.by_deadline:
        services.telemetry.count("SlaExpired", actor=actor)


def record_diversion(services: Services, why: str, *, actor: str | None = None) -> None:
    """Record a hop that ended before its handler call.

    Args:
        actor: the actor of the hop, if it is not this function's.
    """
    services.telemetry.count("Processed", by=("outcome", "diverted"), actor=actor)
    if why in _CAUSE_METRICS:
        services.telemetry.count(_CAUSE_METRICS[why], actor=actor)


def trace_hop(
    services: Services, hop: Hop, started_at: datetime, *, action: str = "process", error: str | None = None
) -> None:
    """Record the span of a hop that ends now.

    Args:
        action: what the function did with the envelope.
        error: the type of the error that ended the hop.
    """
    if (traces := services.telemetry.traces) is not None:
        traces.add(hop_span(hop, action, started_at, services.now(), error=error))


def trace_job(services: Services, hop: Hop, started_at: datetime, run_id: str, error: str | None) -> None:
    """Record the time of an envelope in a job run that ends now, as a span below that of its hop.

    Args:
        run_id: the name of the job run.
    """
    if (traces := services.telemetry.traces) is not None:
        traces.add(job_span(hop, run_id, started_at, services.now(), error=error))


def trace_end(services: Services, envelope: Envelope, started_at: datetime, *, error: str | None = None) -> None:
    """Record the span of an end actor, which ends now. It changes nothing in the envelope.

    Args:
        error: the type of the error of the end actor itself; by default that of the envelope.
    """
    if (traces := services.telemetry.traces) is not None:
        actor, span = services.settings.actor, services.environment.new_span()
        traces.add(end_span(envelope, actor, span, started_at, services.now(), error=error))
