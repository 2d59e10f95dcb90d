"""x-checkpoint: keeps the envelope as it stands, and passes it on (`protocol §11`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from asya.aws import clients
from asya.aws.results import Results
from asya.aws.ticket import Ticket
from asya.lambdas.batch import Answer, Record, records
from asya.lambdas.intake import Intake, take_in
from asya.lambdas.metrics import note_arrivals, note_diversion
from asya.lambdas.services import Services, services
from asya.protocol.frame import Frame
from asya.protocol.keys import checkpoint_key
from asya.routing import outcome, reports
from asya.routing.delivery import Delivery, Diversion
from asya.routing.hop import Hop
from asya.routing.targets import UnknownTargetError


def handle(event: Mapping[str, Any], _context: object) -> Answer:
    """Lambda's entry point: one batch of x-checkpoint's queue."""
    return _checkpoint().process(event)


@cache
def _checkpoint() -> "CheckpointActor":
    return build(services())


def build(found: Services) -> "CheckpointActor":
    """x-checkpoint of this mesh."""
    return CheckpointActor(found, Results(clients.s3(), found.settings.results_uri))


@dataclass(frozen=True, slots=True)
class CheckpointActor:
    """An actor like any other, but that writing to S3 is all it does. Its one frame is what it received."""

    services: Services
    results: Results

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch."""
        items = records(event)
        telemetry = self.services.telemetry
        note_arrivals(self.services, items)
        try:
            intake = take_in(self.services, items)
            return self.services.worker.work(items, lambda record: self._handle(intake, record))
        finally:
            self.services.progress.flush()
            telemetry.flush()

    def _handle(self, intake: Intake, record: Record) -> list[Ticket]:
        """Raises ClientError or BotoCoreError if the checkpoint cannot be written: nothing passes without one."""
        telemetry = self.services.telemetry
        started = intake.start(record)
        if isinstance(started, Diversion):
            note_diversion(self.services, started.why)
            telemetry.log.warning(
                "no checkpoint made", why=started.why, envelope_id=started.envelope_id, message_id=record.message_id
            )
            return [self.services.outbox.send(delivery) for delivery in started.deliveries]
        began = self.services.surroundings.monotonic()
        namespace = self.services.settings.namespace
        self.results.write_envelope(checkpoint_key(started.envelope), started.envelope, namespace)
        delivery = self._passed_on(started)
        self._report(started, (self.services.surroundings.monotonic() - began) * 1000)
        telemetry.count("Processed", by=("outcome", "failed" if delivery.kind == "sump" else "succeeded"))
        return [self.services.outbox.send(delivery)]

    def _passed_on(self, hop: Hop) -> Delivery:
        moment = self.services.now()
        try:
            return outcome.frame(hop, Frame(None), 0, now=moment)
        except UnknownTargetError as error:
            return outcome.mismatch(hop, error, now=moment)

    def _report(self, hop: Hop, duration_ms: float) -> None:
        url = self.services.callback(hop.envelope)
        if url is None:
            return
        moment = self.services.now()
        for event in (
            reports.received(hop, now=moment),
            reports.processing(hop, now=moment),
            reports.completed(hop, None, now=moment, duration_ms=duration_ms),
        ):
            self.services.progress.report(url, event)
