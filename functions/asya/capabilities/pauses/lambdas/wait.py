"""Any actor of kind `wait` whose deadline runs on: holds the envelope until it is due (`protocol §11`).

The order makes every step repeatable: hold the envelope, report the wait, acknowledge the message. After a crash the redelivery
finds the held envelope and reports it again. The sweep sends the envelope back when it is due, and the actor sends it on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from asya.capabilities.pauses import waiting
from asya.capabilities.pauses.aws.held_envelopes import HeldEnvelopes, Tombstone, WaitKey
from asya.capabilities.pauses.limits import longest_wait
from asya.function.aws.receipt import Receipt
from asya.function.delivery import Diversion
from asya.function.hop import Hop
from asya.function.lambdas.batch import BatchResponse, Record
from asya.protocol.envelope import Envelope
from asya.sidecar.lambdas.crew_hops import pass_on, process_batch, send_diversion
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.services import Services
from asya.sidecar.lambdas.traces import trace_hop
from asya.tasks.reporting import reports


@dataclass(frozen=True, slots=True)
class WaitActor:
    """Processes the messages of a wait actor: envelopes that arrive, and those that the sweep sends back."""

    services: Services
    held: HeldEnvelopes

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        return process_batch(self.services, event, self._handle)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Hold one envelope, or send it on. An error in any step keeps the message on the queue."""
        started = intake.start(record)
        if isinstance(started, Diversion):
            return send_diversion(self.services, started, record, "not waiting")
        if waiting.is_release(started.envelope):
            return [pass_on(self.services, started)]
        held = self.held.load(_key(started))
        if isinstance(held, Tombstone):
            self.services.telemetry.log.info("wait is over", envelope_id=started.envelope.id)
            self.services.telemetry.count("Processed", by=("outcome", "diverted"))
            return []
        if held is None:
            outcome = self._hold(started)
            if isinstance(outcome, Diversion):
                return send_diversion(self.services, outcome, record, "not waiting")
            if isinstance(outcome, Receipt):
                return [outcome]
            held = outcome
        self._report(started, held)
        return []

    def _hold(self, hop: Hop) -> Envelope | Receipt | Diversion:
        """Hold an envelope until it is due; send it on if it is due now."""
        now = self.services.now()
        until = waiting.due(
            hop,
            is_recorded=self.services.records_task(hop.envelope),
            longest=longest_wait(self.services.settings.table.retention),
            now=now,
        )
        if isinstance(until, Diversion):
            return until
        if until <= now:
            return pass_on(self.services, hop)
        return self._saved(hop, until, now)

    def _saved(self, hop: Hop, until: datetime, now: datetime) -> Envelope:
        held = waiting.held_envelope(hop, until, now=now)
        if self.held.save(_key(hop), held):
            return held
        first = self.held.load(_key(hop))
        if not isinstance(first, Envelope):
            raise TypeError(f"another delivery of {hop.envelope.id} was held and sent meanwhile")
        return first

    def _report(self, hop: Hop, held: Envelope) -> None:
        """Report the wait and require acceptance: nothing else finds the envelope when it is due."""
        now, url = self.services.now(), self.services.callback(held)
        if url is None:
            raise RuntimeError(f"the mesh has no gateway to report the wait of {held.id} to")
        self.services.progress.report(url, reports.received(hop, now=now))
        self.services.progress.report(url, reports.processing(hop, now=now))
        report = waiting.waiting_report(held, hop.actor, attempt=hop.attempt, wait=waiting.wait_header(held))
        receipt = self.services.required_reports.report(url, report)
        self.services.required_reports.flush()
        if receipt.problem is not None:
            raise receipt.problem
        self.services.telemetry.count("Processed", by=("outcome", "waiting"))
        trace_hop(self.services, hop, now, operation="wait")


def _key(hop: Hop) -> WaitKey:
    return WaitKey(*hop.attempt_key)
