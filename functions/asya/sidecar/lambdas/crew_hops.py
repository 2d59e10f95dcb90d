"""What x-checkpoint, pause actors and x-resume have in common: a batch, its diversions, one frame, the reports of a quick hop."""

from collections.abc import Callable, Mapping
from typing import Any

from asya.messaging.aws.receipt import Receipt
from asya.messaging.delivery import Delivery, Diversion
from asya.messaging.hop import Hop
from asya.messaging.lambdas.batch import Answer, Record, records
from asya.messaging.targets import UnknownTargetError
from asya.protocol.frame import Frame
from asya.reporting import reports
from asya.sidecar import outcome
from asya.sidecar.lambdas.intake import Intake, receive_batch
from asya.sidecar.lambdas.metrics import record_arrivals, record_diversion
from asya.sidecar.lambdas.services import Services


def process_batch(
    services: Services,
    event: Mapping[str, Any],
    handle: Callable[[Intake, Record], list[Receipt]],
    *,
    asks_states: bool = True,
) -> Answer:
    """Work through one batch, as a sidecar does.

    Args:
        handle: what is done with a record; what it raises brings the message again.
        asks_states: whether canceled tasks are to be found out first.
    """
    items = records(event)
    record_arrivals(services, items)
    try:
        intake = receive_batch(services, items, asks_states=asks_states)
        return services.worker.process(items, lambda record: handle(intake, record))
    finally:
        services.progress.flush()
        services.telemetry.flush()


def diverted(services: Services, diversion: Diversion, record: Record, what: str) -> list[Receipt]:
    """Send what does not go the ordinary way to where it ends, and say so.

    Args:
        what: what was not done, for the log.
    """
    record_diversion(services, diversion.why)
    services.telemetry.log.warning(
        what, why=diversion.why, envelope_id=diversion.envelope_id, message_id=record.message_id
    )
    return [services.outbox.send(delivery) for delivery in diversion.deliveries]


def passed_on(services: Services, hop: Hop, frame: Frame) -> Delivery:
    """The hop's only frame; to x-sump, if the next actor is not in the mesh (`protocol §5.12`)."""
    moment = services.now()
    try:
        return outcome.frame(hop, frame, 0, now=moment)
    except UnknownTargetError as error:
        return outcome.mismatch(hop, error, now=moment)


def report_hop(services: Services, hop: Hop, *, duration_ms: float) -> None:
    """All progress of a hop at once, unless reporting is off."""
    url = services.callback(hop.envelope)
    if url is None:
        return
    moment = services.now()
    for event in (
        reports.received(hop, now=moment),
        reports.processing(hop, now=moment),
        reports.completed(hop, None, now=moment, duration_ms=duration_ms),
    ):
        services.progress.report(url, event)
