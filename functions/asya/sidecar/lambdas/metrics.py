"""Metrics that every function of an actor has (`protocol §15`)."""

from collections.abc import Sequence

from asya.messaging.lambdas.batch import Record
from asya.protocol.job_runs import ResultHead
from asya.sidecar.lambdas.services import Services

# What a hop is diverted for, and the metric of its own that this has.
_OF_ITS_OWN = {"SlaExpired": "SlaExpired", "MaxHops": "HopLimit"}


def record_arrivals(found: Services, items: Sequence[Record]) -> None:
    """A batch has come: how many, how large each, and how long after it was sent."""
    telemetry, now = found.telemetry, found.now()
    telemetry.count("Received", len(items))
    telemetry.measure("InFlight", len(items), "Count")
    for record in items:
        telemetry.measure("MessageSize", record.arrival.size, "Bytes")
        waited = (now - record.arrival.sent_at).total_seconds() * 1000
        telemetry.measure("HopLatency", max(0.0, waited), "Milliseconds")


def record_job_result(found: Services, head: ResultHead, actor: str) -> None:
    """A job has done with one of its envelopes."""
    how = "succeeded" if head.end == "done" else head.end
    found.telemetry.count("Processed", by=("outcome", how), actor=actor)
    found.telemetry.measure("HandlerDuration", head.duration_ms, "Milliseconds", actor=actor)
    if head.by_deadline:
        found.telemetry.count("SlaExpired", actor=actor)


def record_diversion(found: Services, why: str, *, actor: str | None = None) -> None:
    """A hop went elsewhere before its handler was called.

    Args:
        actor: whose hop it was, if not this function's.
    """
    found.telemetry.count("Processed", by=("outcome", "diverted"), actor=actor)
    if why in _OF_ITS_OWN:
        found.telemetry.count(_OF_ITS_OWN[why], actor=actor)
