"""The shared parts of x-sink and x-sump, and the claim on an end (`protocol §11`).

An envelope has one end per generation. x-sink, x-sump, fan-in actors and the DLQ function may each see another one, because a
redelivered envelope can end twice. The first claim wins; the others learn of it before they report. An end that does not
count is kept: as a failed child, or under `superseded/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Raw
from msgspec.structs import replace

from asya.ends import ending
from asya.ends.aws.end_claims import Claim, ClaimResult, EndClaims
from asya.ends.aws.results import EndObjects, KeyContestedError, ResultIndex, Results
from asya.ends.results import ResultRow, result_row
from asya.function.aws import clients
from asya.function.aws.receipt import Receipt
from asya.function.lambdas.batch import BatchResponse, Record, records
from asya.function.nack import ServiceError
from asya.protocol import states
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.keys import result_key
from asya.senders.statements import Statement
from asya.sidecar.lambdas.metrics_and_spans import record_arrivals
from asya.sidecar.lambdas.problems import report_problem
from asya.sidecar.lambdas.services import Services
from asya.sidecar.slices import slice_end_deliveries
from asya.tasks.reporting import report_messages, reports

STORAGE_ERRORS = (ClientError, BotoCoreError, KeyContestedError)


class NotPersistedError(ServiceError):
    """An envelope could not be written to the results bucket; its message stays on the queue."""

    def __init__(self, uri: str, error: Exception) -> None:
        super().__init__(f"{uri} could not be written: {error}")


@dataclass(frozen=True, slots=True)
class CrewEnd(ABC):
    """An end actor of the crew: processes batches and writes to the results bucket.

    Attributes:
        index: writes the rows of ends that no report carries.
    """

    says: ClassVar[Statement]
    """What its messages say."""

    services: Services
    results: Results
    index: ResultIndex

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        admission = self.services.admission
        items = [admission.heard(record, self.says) for record in admission.admit(records(event))]
        record_arrivals(self.services, items)
        try:
            return self.services.worker.with_outlet(self.index).process(items, self.handle, kept=self._report_problem)
        finally:
            self.services.progress.flush()
            self.services.telemetry.flush()

    def _report_problem(self, record: Record, error: Exception) -> None:
        """Report why an end waits, if nothing but an operator will change that; the task still reads as running."""
        if record.problem is not None:
            return  # the message may be about somebody else's task
        try:
            envelope = record.arrival.envelope()
        except ParseError:
            return
        report_problem(self.services, envelope, error, sent_at=record.arrival.sent_at)

    @abstractmethod
    def handle(self, record: Record) -> list[Receipt]:
        """Process one message; the receipts stand for everything that must be accepted before its acknowledgement."""

    @abstractmethod
    def send_failed_child(self, child: Envelope) -> list[Receipt]:
        """End the failed child of an envelope whose own failure does not count."""

    @property
    def objects(self) -> EndObjects:
        """The objects of ends."""
        return end_objects(self.services, self.results)

    def end_refused(self, envelope: Envelope, result: ClaimResult, key: str | None = None) -> list[Receipt]:
        """End an envelope whose claim was not taken: as canceled if its task was canceled meanwhile, else by `keep_refused`.

        Args:
            key: as for `keep_refused`.

        Raises:
            ClientError, BotoCoreError, KeyContestedError: an object can be neither written nor removed.
        """
        if not is_held_by_cancellation(result, envelope):
            return self.keep_refused(envelope, result, key)
        canceled = ending.as_canceled(envelope, result.claimed_at or self.services.now())
        receipts = self.notify_sets(canceled, canceled)
        if not self.persists(canceled):
            return [*receipts, self.keep_superseded(envelope, result.claim, key)]
        stored = self.objects.write(result.claim.key, canceled)
        winner = self.lost_claim(result.claim)
        if stored is None or winner is not None:
            return [*receipts, self.keep_superseded(canceled, winner or result.claim, result.claim.key)]
        if stored.envelope != canceled:
            return [*receipts, *self.keep_refused(envelope, result, key)]
        self.services.telemetry.count("Processed", by=("outcome", states.CANCELED))
        receipts += self.remove_replaced(result, canceled, result.claim.key)
        is_reported = ending.is_reported(canceled)
        reported = self.report_end(canceled, result, stored.uri, indexed_uri=stored.uri, is_reported=is_reported)
        return [*receipts, *reported]

    def persists(self, envelope: Envelope) -> bool:
        """Whether the end of an envelope has an object."""
        sink = self.services.settings.table.sink
        if not sink.persist or ending.is_hook_copy(envelope):
            return False
        is_in_record = reports.has_inline_result(envelope) and self.services.records_task(envelope)
        return not (sink.large_only and is_in_record)

    def keep_refused(self, envelope: Envelope, result: ClaimResult, key: str | None = None) -> list[Receipt]:
        """Keep an end whose claim was refused, or is stale: as a failed child, or under `superseded/` (`protocol §11`).

        Args:
            key: of an object that an earlier delivery of this message may have written, if it may not stay.

        Raises:
            ClientError, BotoCoreError: the object can be neither written nor removed.
        """
        table = self.services.settings.table
        if ending.leaves_as_child(envelope, result.generation, table):
            return self.send_failed_child(ending.failed_child(envelope))
        return [self.keep_superseded(envelope, result.claim, key)]

    def keep_superseded(self, envelope: Envelope, holder: Claim, key: str | None) -> Receipt:
        """Keep an end under `superseded/`. If a later generation has ended, its object under `key` moves there.

        Raises:
            ClientError, BotoCoreError: the object can be neither written nor removed.
        """
        self.objects.supersede(envelope)
        # Under the key of the holder, the holder replaces the object, if it has one.
        is_replaced = holder.key == key and not self.services.settings.table.sink.large_only
        if key is not None and not is_replaced and holder.generation > envelope.generation:
            self.objects.move_superseded(key, envelope.generation)
        receipt = Receipt("object")
        receipt.resolve()
        return receipt

    def notify_sets(self, received: Envelope, stored: Envelope) -> list[Receipt]:
        """Notify the sets of a slice that ended; two runs of one end may belong to different sets."""
        deliveries = slice_end_deliveries(self.services.settings.table, stored, received)
        return [self.services.outbox.send(delivery) for delivery in deliveries]

    def lost_claim(self, claim: Claim) -> Claim | None:
        """The claim that has replaced this one; None if this one still holds. Asked after its object is written.

        Raises:
            ClientError, BotoCoreError: the claim cannot be read.
        """
        holder = end_claims(self.services).holder(claim.envelope_id)
        if holder is None or (holder.generation, holder.phase) == (claim.generation, claim.phase):
            return None
        return holder

    def remove_replaced(self, result: ClaimResult, envelope: Envelope, key: str | None) -> list[Receipt]:
        """Remove the objects of the ends that this one replaced, once its own object is written (`protocol §11`).

        The claim keeps the key of the replaced object, so a redelivery finishes a removal that failed.

        Args:
            key: of the object that is written: that of the claim, or of x-sump's copy; None if none is written.
        """
        replaced = [(result.replaced_key, envelope.generation)] if result.replaced_key is not None else []
        if key != result.claim.key and envelope.generation > 0:
            # Nothing overwrites an object under the key of the claim. One of this generation is x-sink's.
            replaced.append((result.claim.key, envelope.generation - 1))
        if not replaced:
            return []
        receipt = Receipt("object")
        try:
            for replaced_key, generation in replaced:
                self.objects.remove(replaced_key, generation)
        except STORAGE_ERRORS as error:
            receipt.resolve(error)
        else:
            receipt.resolve()
        return [receipt]

    def report_end(
        self,
        envelope: Envelope,
        claimed: ClaimResult,
        result_uri: str | None = None,
        *,
        indexed_uri: str | None,
        is_reported: bool = True,
    ) -> list[Receipt]:
        """Report the claimed end of an envelope, with its row of the index of results.

        The row is written here without a report, and if both are too large for one.

        Args:
            envelope: as it is stored.
            result_uri: of the result that the report names.
            indexed_uri: of the object that the row names; None for an envelope without a row.
            is_reported: whether the end is reported, if the envelope does not turn reports off.
        """
        row = (
            self._row(envelope, indexed_uri)
            if indexed_uri is not None and self.services.settings.table.sink.index
            else None
        )
        url = self.services.report_url(envelope) if is_reported else None
        if url is None:
            return [self.index.add(row)] if row is not None else []
        at = ending.report_time(claimed.claimed_at, self.services.now())
        event = reports.terminal(envelope, at=at, result_uri=result_uri)
        receipts = []
        if row is not None:
            with_row = replace(event, row=Raw(msgspec.json.encode(row)))
            if report_messages.fits(with_row, url):
                event = with_row
            else:
                receipts.append(self.index.add(row))
        return [*receipts, self.services.required_reports.report(url, event)]

    def _row(self, envelope: Envelope, uri: str) -> ResultRow:
        settings = self.services.settings
        return result_row(
            envelope,
            namespace=settings.namespace,
            result_uri=uri,
            recorded_by=settings.actor,
            now=self.services.now(),
        )


def is_held_by_cancellation(result: ClaimResult, envelope: Envelope) -> bool:
    """Whether an end was refused because its task is canceled in this generation."""
    holder = result.claim.phase, result.claim.generation
    is_own = result.outcome == "refused" and not result.is_of_other_owner
    return is_own and holder == (states.CANCELED, envelope.generation)


def end_claims(services: Services) -> EndClaims:
    """The claims on the ends of this mesh."""
    settings = services.settings
    return EndClaims(clients.dynamodb(), settings.table_name("sink"), settings.table.retention.tasks)


def end_results(services: Services) -> Results:
    """Writes the ends of this mesh, in an S3 of its own if the mesh file names one."""
    settings = services.settings
    return Results(clients.results_s3(settings.table.sink.endpoint), settings.results_uri)


def end_objects(services: Services, results: Results) -> EndObjects:
    """The objects of ends of this mesh."""
    return EndObjects(results, services.settings.namespace, services.environment.sleep)


def claim_end(
    services: Services, envelope: Envelope, *, is_provisional: bool = False, position: int | None = None
) -> ClaimResult:
    """Claim the end in an envelope's status, before it is reported.

    Args:
        is_provisional: whether another end of this generation replaces this one.
        position: the number of hops done, if it is not that of the envelope's route.

    Raises:
        ClientError, BotoCoreError: the claim can be neither written nor read.
    """
    phase = envelope.end_phase
    key = result_key(envelope, services.settings.table.sink)
    hop = ending.end_position(envelope)
    claim = Claim(
        envelope.id,
        envelope.generation,
        phase,
        key,
        hop if position is None else position,
        is_provisional,
        hop,
        reports.owner_of(envelope),
    )
    result = end_claims(services).take(claim, epoch_seconds=services.now().timestamp())
    if result.outcome != "taken":
        services.telemetry.log.warning(
            "end does not count", why=result.outcome, envelope_id=envelope.id, phase=phase, holder=str(result.claim)
        )
    return result
