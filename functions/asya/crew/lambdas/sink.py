"""x-sink: every envelope that ended is persisted, then reported; failed ones go on to x-sump (`protocol §11`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.crew import ending
from asya.crew.aws.result_index import ResultIndex
from asya.crew.aws.results import Results
from asya.crew.lambdas.ends import claim_end, index_row
from asya.messaging.aws.receipt import Receipt
from asya.messaging.lambdas.batch import Answer, Record, records
from asya.protocol.codec import ParseError, decode
from asya.protocol.envelope import Envelope
from asya.protocol.keys import result_key
from asya.reporting import reports
from asya.sidecar import arrival
from asya.sidecar.lambdas.metrics import record_arrivals
from asya.sidecar.lambdas.services import Services
from asya.sidecar.slices import slice_end_deliveries


class NotPersistedError(RuntimeError):
    """The object could not be written; the end was reported, and the message stays until it can."""


@dataclass(frozen=True, slots=True)
class SinkActor:
    """What x-sink does with each message."""

    services: Services
    results: Results
    index: ResultIndex

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch."""
        items = records(event)
        telemetry = self.services.telemetry
        record_arrivals(self.services, items)
        try:
            return self.services.worker.with_outlet(self.index).process(items, self._handle)
        finally:
            telemetry.flush()

    def _handle(self, record: Record) -> list[Receipt]:
        moment = self.services.now()
        try:
            envelope = decode(self.services.claim_check.redeem(record.arrival.body), message_id=record.message_id)
        except ParseError as error:
            diverted = arrival.parse_failure(record.arrival, error, now=moment)
            return [self.services.outbox.send(delivery) for delivery in diverted.deliveries]
        return self._end(ending.with_end_status(envelope, sent_at=record.arrival.sent_at, now=moment))

    def _end(self, envelope: Envelope) -> list[Receipt]:
        phase = (envelope.status.phase if envelope.status else None) or "succeeded"
        key = result_key(envelope, self.services.settings.table.sink)
        older_key = None
        if phase in ending.CLAIMED_PHASES:
            result = claim_end(self.services, envelope)
            if result.outcome == "refused":
                return []
            key, older_key = result.claim.key, result.replaced_key
        self.services.telemetry.count("Processed", by=("outcome", phase))
        return self._persist_and_report(envelope, key, older_key)

    def _persist_and_report(self, envelope: Envelope, key: str, older_key: str | None) -> list[Receipt]:
        problem: Exception | None = None
        uri: str | None = None
        if self.services.settings.table.sink.persist and not ending.is_hook_copy(envelope):
            try:
                uri = self.results.write_envelope(key, envelope, self.services.settings.namespace)
                if older_key is not None:
                    self.results.remove(older_key)
            except (ClientError, BotoCoreError) as error:
                problem = error
        receipts = [*self._report(envelope, uri), *self._pass_on(envelope), *self._index(envelope, uri)]
        if problem is not None:
            kept = Receipt("object")
            kept.resolve(
                NotPersistedError(f"envelope {envelope.id} could not be written to {self.results.uri(key)}: {problem}")
            )
            receipts.append(kept)
        return receipts

    def _index(self, envelope: Envelope, uri: str | None) -> list[Receipt]:
        """A row for what is written and ended. What is paused will end another time; x-sump tells what failed."""
        phase = envelope.status.phase if envelope.status else "succeeded"
        if uri is None or phase not in ending.CLAIMED_PHASES - {"failed"}:
            return []
        return index_row(self.services, self.index, envelope, uri)

    def _report(self, envelope: Envelope, uri: str | None) -> list[Receipt]:
        url = self.services.callback(envelope)
        if url is None or not ending.is_reported(envelope):
            return []
        return [
            self.services.required_reports.report(
                url, reports.terminal(envelope, now=self.services.now(), result_uri=uri)
            )
        ]

    def _pass_on(self, envelope: Envelope) -> list[Receipt]:
        """The hooks' copies and what x-sump gets; and if a slice ended here, its set waits for it in vain and is told."""
        table = self.services.settings.table
        deliveries = (*ending.passed_on(envelope, table.sink), *slice_end_deliveries(envelope, table))
        return [self.services.outbox.send(delivery) for delivery in deliveries]
