"""x-sink: claims, stores and reports ended envelopes; failed ones go on to x-sump (`protocol §11`)."""

from dataclasses import dataclass
from typing import ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from asya.ends import ending
from asya.ends.aws.end_claims import ClaimResult
from asya.ends.lambdas.ends import STORAGE_ERRORS, CrewEnd, NotPersistedError, claim_end
from asya.ends.statements import END
from asya.function.aws.receipt import Receipt
from asya.function.hop import Delivery
from asya.function.lambdas.batch import Record
from asya.protocol import names, states
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Envelope
from asya.protocol.keys import result_key
from asya.protocol.times import parse_time
from asya.senders.statements import Statement
from asya.sidecar import arrival
from asya.sidecar.lambdas.metrics_and_spans import trace_end


@dataclass(frozen=True, slots=True)
class SinkActor(CrewEnd):
    """Processes the messages of x-sink."""

    says: ClassVar[Statement] = END

    def handle(self, record: Record) -> list[Receipt]:
        """Claim, persist and report the end of one envelope."""
        moment = self.services.now()
        try:
            received = record.arrival.envelope()
        except ParseError as error:
            diversion = arrival.parse_failure(record.arrival, error, now=moment)
            return [self.services.outbox.send(delivery) for delivery in diversion.deliveries]
        sent_at = record.arrival.sent_at
        try:
            envelope = self.services.claim_check.redeem(received)
        except ParseError as error:
            return [self.services.outbox.send(ending.without_payload(received, error, sent_at=sent_at, now=moment))]
        ended = ending.with_end_status(envelope, sent_at=sent_at, now=moment)
        receipts = self._end(ended)
        trace_end(self.services, ended, moment)
        return receipts

    def send_failed_child(self, child: Envelope) -> list[Receipt]:
        """Send the failed child to x-sump; it triggers no hook."""
        return [self.services.outbox.send(Delivery(names.SUMP, encode(child), "sump"))]

    def _end(self, envelope: Envelope) -> list[Receipt]:
        phase = envelope.end_phase
        key = result_key(envelope, self.services.settings.table.sink)
        if phase not in states.TERMINAL:
            self.services.telemetry.count("Processed", by=("outcome", phase))
            return self._keep_unfinished(envelope, key)
        result = claim_end(self.services, envelope)
        if result.outcome != "taken":
            return self.end_refused(envelope, result, key)
        self.services.telemetry.count("Processed", by=("outcome", phase))
        self._measure_task(envelope, phase)
        return self._persist_and_report(envelope, result)

    def _keep_unfinished(self, envelope: Envelope, key: str) -> list[Receipt]:
        """Write a late copy of a paused envelope; it has not ended."""
        receipt = Receipt("object")
        receipt.resolve()
        if self.persists(envelope):
            try:
                self.results.write_envelope(key, envelope, self.services.settings.namespace)
            except (ClientError, BotoCoreError) as error:
                raise NotPersistedError(self.results.uri(key), error) from error
        return [receipt]

    def _measure_task(self, envelope: Envelope, phase: str) -> None:
        """Measure the time from the creation of a task to its end; slices and pauses are no ends of a task."""
        created_at = envelope.status.created_at if envelope.status else None
        if phase in states.TERMINAL and envelope.parent_id is None and created_at is not None:
            elapsed_ms = (self.services.now() - parse_time(created_at)).total_seconds() * 1000
            self.services.telemetry.measure("TimeToResult", max(0.0, elapsed_ms), "Milliseconds")

    def _persist_and_report(self, envelope: Envelope, result: ClaimResult) -> list[Receipt]:
        """Persist the envelope, then report the end that its object holds; a failed write keeps the message only."""
        if not self.persists(envelope):
            is_partial = self.services.settings.table.sink.large_only
            receipts = self.remove_replaced(result, envelope, None) if is_partial else []
            return [*receipts, *self._report(envelope, envelope, result, None)]
        key = result.claim.key
        try:
            stored = self.objects.write(key, envelope)
        except STORAGE_ERRORS as error:
            receipt = Receipt("object")
            receipt.resolve(NotPersistedError(self.results.uri(key), error))
            return [*self._report(envelope, envelope, result, None), receipt]
        # A redrive may have taken the claim while the object was written.
        winner = self.lost_claim(result.claim)
        if stored is None or winner is not None:
            return [self.keep_superseded(envelope, winner or result.claim, key)]
        receipts = self.remove_replaced(result, envelope, key)
        return [*receipts, *self._report(envelope, stored.envelope, result, stored.uri)]

    def _report(self, received: Envelope, stored: Envelope, claimed: ClaimResult, uri: str | None) -> list[Receipt]:
        """Report the end that is stored, and send its copies; the set of the received slice is notified too."""
        # x-sump indexes failed ones.
        indexed_uri = None if stored.has_failed else uri
        is_reported = ending.is_reported(stored)
        receipts = self.report_end(stored, claimed, uri, indexed_uri=indexed_uri, is_reported=is_reported)
        copies = ending.copies(stored, self.services.settings.table.sink)
        receipts += [self.services.outbox.send(delivery) for delivery in copies]
        return [*receipts, *self.notify_sets(received, stored)]
