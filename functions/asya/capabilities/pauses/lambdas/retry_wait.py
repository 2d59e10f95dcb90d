"""x-wait: holds retries that are due in more than a day (`protocol §8.retry`, `§11`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asya.capabilities.pauses import waiting
from asya.capabilities.pauses.aws.held_envelopes import HeldEnvelopes, WaitKey
from asya.capabilities.pauses.limits import longest_wait
from asya.function.aws.receipt import Receipt
from asya.function.delivery import Diversion
from asya.function.lambdas.batch import BatchResponse, Record
from asya.function.targets import actual_actor
from asya.protocol.envelope import Envelope
from asya.sidecar.lambdas.crew_hops import process_batch, send_diversion
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.services import Services


@dataclass(frozen=True, slots=True)
class RetryWait:
    """Processes the messages of x-wait: envelopes whose next attempt at another actor is days ahead.

    It needs no pre-flight: the record of a canceled task makes the envelope due at once, and its actor ends it.
    """

    services: Services
    held: HeldEnvelopes

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        return process_batch(self.services, event, self._handle, asks_states=False)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Hold one retry. An error in any step keeps the message on the queue."""
        received = intake.unstarted(record)
        if isinstance(received, Diversion):
            return send_diversion(self.services, received, record, "not waiting")
        envelope, now = received.envelope, self.services.now()
        url = self.services.callback(envelope)
        if url is None or not self.services.records_task(envelope) or not waiting.is_release(envelope):
            return [self.services.outbox.send(waiting.early_retry(envelope, received.mesh, now=now))]
        longest = longest_wait(self.services.settings.table.retention)
        attempt = (envelope.status.attempt if envelope.status else None) or 1
        key = WaitKey(envelope.id, envelope.generation, envelope.route.position, attempt)
        held = waiting.held_retry(envelope, now=now, longest=longest)
        if not self.held.save(key, held):
            first = self.held.load(key)
            if not isinstance(first, Envelope):
                return []  # it was sent on already
            held = first
        actor = actual_actor(held, held.route.curr)
        report = waiting.waiting_report(held, actor, attempt=attempt, wait=waiting.wait_header(held))
        receipt = self.services.required_reports.report(url, report)
        self.services.telemetry.count("Processed", by=("outcome", "waiting"))
        return [receipt]
