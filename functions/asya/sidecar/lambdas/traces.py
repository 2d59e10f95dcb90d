"""Spans that functions record: one for each hop, and one for each end (`protocol §15`)."""

from datetime import datetime

from asya.function.hop import Hop
from asya.function.spans import end_span, hop_span, job_span
from asya.protocol.envelope import Envelope
from asya.sidecar.lambdas.services import Services


def trace_hop(
    services: Services, hop: Hop, started_at: datetime, *, operation: str = "process", error: str | None = None
) -> None:
    """Record the span of a hop that ends now.

    Args:
        operation: what the function did with the envelope.
        error: the type of the error that ended the hop.
    """
    if (traces := services.telemetry.traces) is not None:
        traces.add(hop_span(hop, operation, started_at, services.now(), error=error))


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
