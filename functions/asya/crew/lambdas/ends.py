"""The shared parts of x-sink and x-sump, and the claim on an end (`protocol §11`).

An envelope has one end per generation. x-sink, x-sump, fan-in actors and the DLQ function may each see another one, because a
redelivered envelope can end twice. The first claim wins; the others learn of it before they report.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asya.crew.aws.end_claims import Claim, ClaimResult, EndClaims
from asya.crew.aws.result_index import ResultIndex
from asya.crew.aws.results import Results
from asya.crew.result_index import result_row
from asya.messaging.aws import clients
from asya.messaging.aws.receipt import Receipt
from asya.messaging.lambdas.batch import BatchResponse, Record, records
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope
from asya.protocol.keys import result_key
from asya.reporting import reports
from asya.sidecar.lambdas.metrics import record_arrivals
from asya.sidecar.lambdas.services import Services


class NotPersistedError(RuntimeError):
    """An envelope could not be written to the results bucket; its message stays on the queue."""

    def __init__(self, uri: str, error: Exception) -> None:
        super().__init__(f"{uri} could not be written: {error}")


@dataclass(frozen=True, slots=True)
class CrewEnd(ABC):
    """An end actor of the crew: processes batches and writes to the results bucket and to the index of results."""

    services: Services
    results: Results
    index: ResultIndex

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        items = records(event)
        record_arrivals(self.services, items)
        try:
            return self.services.worker.with_outlet(self.index).process(items, self.handle)
        finally:
            self.services.telemetry.flush()

    @abstractmethod
    def handle(self, record: Record) -> list[Receipt]:
        """Process one message; the receipts stand for everything that must be accepted before its acknowledgement."""

    def decode(self, record: Record) -> Envelope:
        """Redeem the claim check of a message and decode its envelope.

        Raises:
            ParseError: the message is not a valid envelope.
        """
        return self.services.claim_check.redeem(decode(record.arrival.body, message_id=record.message_id))

    def report_end(self, envelope: Envelope, result_uri: str | None = None) -> list[Receipt]:
        """Report the end of an envelope, unless reporting is off."""
        url = self.services.callback(envelope)
        if url is None:
            return []
        event = reports.terminal(envelope, now=self.services.now(), result_uri=result_uri)
        return [self.services.required_reports.report(url, event)]

    def add_to_index(self, envelope: Envelope, uri: str) -> list[Receipt]:
        """Add the row of a stored envelope to the index of results, if the mesh has one."""
        settings = self.services.settings
        if not settings.table.sink.index:
            return []
        row = result_row(
            envelope,
            namespace=settings.namespace,
            result_uri=uri,
            recorded_by=settings.actor,
            now=self.services.now(),
        )
        return [self.index.add(row)]


def claim_end(services: Services, envelope: Envelope) -> ClaimResult:
    """Claim the end in an envelope's status, before it is reported.

    Raises:
        ClientError, BotoCoreError: the claim can be neither written nor read.
    """
    settings = services.settings
    claims = EndClaims(clients.dynamodb(), settings.table_name("sink"), settings.table.retention.tasks)
    phase = (envelope.status.phase if envelope.status else None) or "succeeded"
    claim = Claim(envelope.id, envelope.generation, phase, result_key(envelope, settings.table.sink))
    result = claims.take(claim, epoch_seconds=services.now().timestamp())
    if result.outcome == "refused":
        services.telemetry.log.warning("already ended", envelope_id=envelope.id, phase=phase, holder=str(result.claim))
    return result
