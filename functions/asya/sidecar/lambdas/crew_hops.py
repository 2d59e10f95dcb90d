"""The shared parts of x-checkpoint, pause actors and x-resume: batches, diversions, the only frame, the reports."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from asya.function.aws.receipt import Receipt
from asya.function.hop import Delivery, Diversion, Hop
from asya.function.lambdas.batch import BatchResponse, Record, records
from asya.function.targets import TargetError
from asya.protocol.envelope import Frame
from asya.sidecar import outcome
from asya.sidecar.lambdas.intake import Intake, receive_batch
from asya.sidecar.lambdas.metrics_and_spans import record_arrivals, record_diversion, trace_hop
from asya.sidecar.lambdas.services import Services
from asya.tasks.reporting import reports


def process_batch(
    services: Services,
    event: Mapping[str, Any],
    handle: Callable[[Intake, Record], list[Receipt]],
    *,
    asks_states: bool = True,
) -> BatchResponse:
    """Process one batch, as a sidecar does.

    Args:
        handle: processes one record; an error keeps its message on the queue.
        asks_states: whether the pre-flight asks for the tasks' states.
    """
    items = services.admission.admit(records(event))
    record_arrivals(services, items)
    try:
        intake = receive_batch(services, items, asks_states=asks_states)
        return intake.process(items, lambda record: handle(intake, record), kept=intake.report_problem)
    finally:
        services.progress.flush()
        services.telemetry.flush()


def send_diversion(services: Services, diversion: Diversion, record: Record, what: str) -> list[Receipt]:
    """Send the messages of a diversion, count it and log it.

    Args:
        what: the log message.
    """
    record_diversion(services, diversion.why)
    services.telemetry.log.warning(
        what, why=diversion.why, envelope_id=diversion.envelope_id, message_id=record.message_id
    )
    return [services.outbox.send(delivery) for delivery in diversion.deliveries]


def next_delivery(services: Services, hop: Hop, frame: Frame) -> Delivery:
    """Address the hop's only frame; to x-sump if the next actor is unknown (`protocol §5.12`)."""
    moment = services.now()
    try:
        return outcome.frame(hop, frame, 0, now=moment)
    except TargetError as error:
        return outcome.mismatch(hop, error, now=moment)


def pass_on(services: Services, hop: Hop) -> Receipt:
    """Send an envelope as received to its next actor, and report and count its hop."""
    began = services.environment.monotonic()
    delivery = next_delivery(services, hop, Frame(None, alone=True))
    receipt = services.outbox.send(delivery)
    report_hop(services, hop, duration_ms=(services.environment.monotonic() - began) * 1000)
    services.telemetry.count("Processed", by=("outcome", delivery.outcome))
    return receipt


def report_hop(services: Services, hop: Hop, *, duration_ms: float) -> None:
    """Record the span of a hop that ends now, and report its complete progress unless reporting is off."""
    moment = services.now()
    trace_hop(services, hop, moment - timedelta(milliseconds=duration_ms))
    url = services.report_url(hop.envelope)
    if url is None:
        return
    for event in (
        reports.received(hop, now=moment),
        reports.processing(hop, now=moment),
        reports.completed(hop, None, now=moment, duration_ms=duration_ms),
    ):
        services.progress.report(url, event)
