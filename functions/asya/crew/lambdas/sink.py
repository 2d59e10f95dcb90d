"""x-sink: persists and reports every envelope that ended, and sends failed ones to x-sump (`protocol §11`)."""

from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from asya.crew import ending
from asya.crew.lambdas.ends import CrewEnd, NotPersistedError, claim_end
from asya.messaging.aws.receipt import Receipt
from asya.messaging.lambdas.batch import Record
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.keys import result_key
from asya.protocol.times import parse_time
from asya.sidecar import arrival
from asya.sidecar.lambdas.traces import trace_end
from asya.sidecar.slices import slice_end_deliveries


@dataclass(frozen=True, slots=True)
class SinkActor(CrewEnd):
    """Processes the messages of x-sink."""

    def handle(self, record: Record) -> list[Receipt]:
        """Claim, persist and report the end of one envelope."""
        moment = self.services.now()
        try:
            envelope = self.decode(record)
        except ParseError as error:
            diversion = arrival.parse_failure(record.arrival, error, now=moment)
            return [self.services.outbox.send(delivery) for delivery in diversion.deliveries]
        ended = ending.with_end_status(envelope, sent_at=record.arrival.sent_at, now=moment)
        receipts = self._end(ended)
        trace_end(self.services, ended, moment)
        return receipts

    def _end(self, envelope: Envelope) -> list[Receipt]:
        phase = (envelope.status.phase if envelope.status else None) or "succeeded"
        key = result_key(envelope, self.services.settings.table.sink)
        replaced_key = None
        if phase in ending.CLAIMED_PHASES:
            result = claim_end(self.services, envelope)
            if result.outcome == "refused":
                return []
            key, replaced_key = result.claim.key, result.replaced_key
        self.services.telemetry.count("Processed", by=("outcome", phase))
        self._measure_task(envelope, phase)
        return self._persist_and_report(envelope, key, replaced_key)

    def _measure_task(self, envelope: Envelope, phase: str) -> None:
        """Measure the time from the creation of a task to its end; slices and pauses are no ends of a task."""
        created_at = envelope.status.created_at if envelope.status else None
        if phase in ending.CLAIMED_PHASES and envelope.parent_id is None and created_at is not None:
            elapsed_ms = (self.services.now() - parse_time(created_at)).total_seconds() * 1000
            self.services.telemetry.measure("TimeToResult", max(0.0, elapsed_ms), "Milliseconds")

    def _persist_and_report(self, envelope: Envelope, key: str, replaced_key: str | None) -> list[Receipt]:
        """Persist the envelope, then report its end; a failed write keeps the message, but not the report."""
        problem: Exception | None = None
        uri: str | None = None
        if self.services.settings.table.sink.persist and not ending.is_hook_copy(envelope):
            try:
                uri = self.results.write_envelope(key, envelope, self.services.settings.namespace)
                if replaced_key is not None:
                    self.results.remove(replaced_key)
            except (ClientError, BotoCoreError) as error:
                problem = error
        receipts = self.report_end(envelope, uri) if ending.is_reported(envelope) else []
        receipts += [*self._send_copies(envelope), *self._index(envelope, uri)]
        if problem is not None:
            receipt = Receipt("object")
            receipt.resolve(NotPersistedError(self.results.uri(key), problem))
            receipts.append(receipt)
        return receipts

    def _index(self, envelope: Envelope, uri: str | None) -> list[Receipt]:
        """Index a stored envelope that succeeded or was canceled. A paused one ends later, and x-sump indexes failed ones."""
        phase = envelope.status.phase if envelope.status else "succeeded"
        if uri is None or phase not in ending.CLAIMED_PHASES - {"failed"}:
            return []
        return self.add_to_index(envelope, uri)

    def _send_copies(self, envelope: Envelope) -> list[Receipt]:
        """Send copies to the hooks, a failed envelope to x-sump, and the end of a slice to its set."""
        table = self.services.settings.table
        deliveries = (*ending.copies(envelope, table.sink), *slice_end_deliveries(envelope, table))
        return [self.services.outbox.send(delivery) for delivery in deliveries]
