"""x-resume: inserts the answers into a paused envelope and routes it on (`protocol §11`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asya.capabilities.pauses.aws.held_envelopes import Tombstone
from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.capabilities.pauses.pausing import pause_of
from asya.capabilities.pauses.resuming import restore
from asya.function.aws.receipt import Receipt
from asya.function.hop import Hop
from asya.function.lambdas.batch import BatchResponse, Record
from asya.protocol.codec import ParseError
from asya.protocol.times import format_time
from asya.sidecar import arrival
from asya.sidecar.lambdas.crew_hops import next_delivery, process_batch, report_hop, send_diversion
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.services import Services


@dataclass(frozen=True, slots=True)
class ResumeActor:
    """Processes the messages of x-resume. It needs no pre-flight, because the gateway has just set the task running."""

    services: Services
    paused: PausedEnvelopes

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        return process_batch(self.services, event, self._handle, asks_states=False)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Resume one envelope. A failed send or tombstone keeps the message on the queue."""
        started = intake.start(record)
        if isinstance(started, Hop):
            try:
                return self._resume(started)
            except ParseError as error:
                started = arrival.parse_failure(record.arrival, error, now=self.services.now())
        return send_diversion(self.services, started, record, "not resumed")

    def _resume(self, hop: Hop) -> list[Receipt]:
        pause = pause_of(hop.envelope)
        key = PauseKey(hop.envelope.id, hop.envelope.generation, pause.epoch) if pause is not None else None
        if key is not None and isinstance(self.paused.load(key), Tombstone):
            self.services.telemetry.log.info("already resumed", envelope_id=hop.envelope.id, epoch=key.epoch)
            self.services.telemetry.count("Processed", by=("outcome", "diverted"))
            return []
        started_at = self.services.environment.monotonic()
        restarted, frame = restore(hop)
        delivery = next_delivery(self.services, restarted, frame)
        receipt = self.services.outbox.send(delivery)
        if key is not None:
            self._mark_resumed_after_send(key, receipt)
        duration_ms = (self.services.environment.monotonic() - started_at) * 1000
        report_hop(self.services, restarted, duration_ms=duration_ms)
        outcome = "failed" if delivery.kind == "sump" else "succeeded"
        self.services.telemetry.count("Processed", by=("outcome", outcome))
        return [receipt]

    def _mark_resumed_after_send(self, key: PauseKey, receipt: Receipt) -> None:
        """Write the tombstone after the send is accepted: the other order could lose the envelope."""
        self.services.outbox.flush()
        if receipt.problem is not None:
            raise receipt.problem
        self.paused.mark_resumed(key, at=format_time(self.services.now()))
