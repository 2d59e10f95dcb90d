"""Metrics that every actor's function records (`protocol §15`)."""

from collections.abc import Sequence

from asya.function.lambdas.batch import Record
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
    outcome = "succeeded" if head.end == "done" else head.end
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
