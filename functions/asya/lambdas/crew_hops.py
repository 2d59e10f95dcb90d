"""What crew actors that pass an envelope on have in common: one frame, and the reports of a hop that takes no time."""

from asya.lambdas.services import Services
from asya.protocol.frame import Frame
from asya.routing import outcome, reports
from asya.routing.delivery import Delivery
from asya.routing.hop import Hop
from asya.routing.targets import UnknownTargetError


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
