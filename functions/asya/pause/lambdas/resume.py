"""x-resume: puts the answers into an envelope that was paused and sends it on its way (`protocol §11`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asya.messaging.aws.receipt import Receipt
from asya.messaging.hop import Hop
from asya.messaging.lambdas.batch import Answer, Record
from asya.pause.aws.paused_envelopes import PausedEnvelopes, PauseKey, Tombstone
from asya.pause.pausing import pause_of
from asya.pause.resuming import restored
from asya.protocol.codec import ParseError
from asya.protocol.times import format_time
from asya.sidecar import arrival
from asya.sidecar.lambdas.crew_hops import next_delivery, process_batch, report_hop, send_diversion
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.services import Services


@dataclass(frozen=True, slots=True)
class ResumeActor:
    """What x-resume does with each message. The task's state is not asked for: the gateway has made it running."""

    services: Services
    paused: PausedEnvelopes

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch."""
        return process_batch(self.services, event, self._handle, asks_states=False)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Raises if the envelope cannot be sent on, or its tombstone not be put: then the message comes again."""
        started = intake.start(record)
        if isinstance(started, Hop):
            try:
                return self._resume(started)
            except ParseError as error:
                started = arrival.parse_failure(record.arrival, error, now=self.services.now())
        return send_diversion(self.services, started, record, "not resumed")

    def _resume(self, hop: Hop) -> list[Receipt]:
        about = pause_of(hop.envelope)
        place = PauseKey(hop.envelope.id, hop.envelope.generation, about.epoch) if about is not None else None
        if place is not None and isinstance(self.paused.load(place), Tombstone):
            self.services.telemetry.log.info("resumed before", envelope_id=hop.envelope.id, epoch=place.epoch)
            self.services.telemetry.count("Processed", by=("outcome", "diverted"))
            return []
        began = self.services.environment.monotonic()
        restarted, frame = restored(hop)
        delivery = next_delivery(self.services, restarted, frame)
        receipt = self.services.outbox.send(delivery)
        if place is not None:
            self._bury_when_sent(place, receipt)
        duration_ms = (self.services.environment.monotonic() - began) * 1000
        report_hop(self.services, restarted, duration_ms=duration_ms)
        how = "failed" if delivery.kind == "sump" else "succeeded"
        self.services.telemetry.count("Processed", by=("outcome", how))
        return [receipt]

    def _bury_when_sent(self, place: PauseKey, receipt: Receipt) -> None:
        """A tombstone for what has not left would be its end; what has left without one is only sent again."""
        self.services.outbox.flush()
        if receipt.problem is not None:
            raise receipt.problem
        self.paused.bury(place, at=format_time(self.services.now()))
