"""x-sink and x-sump: store and report ended envelopes; failed ones go from x-sink to x-sump (`protocol §11`)."""

from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.ends import ending
from asya.ends.aws.end_claims import ClaimResult
from asya.ends.lambdas.ends import STORAGE_ERRORS, CrewEnd, NotPersistedError, claim_end
from asya.function.aws.receipt import Receipt
from asya.function.hop import Delivery
from asya.function.lambdas.batch import Record
from asya.protocol import names
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.keys import SUMP_PREFIX, result_key, safe_segment, sump_key
from asya.protocol.status import REASONS, Status, failed, started
from asya.protocol.times import format_time, parse_time
from asya.sidecar import arrival
from asya.sidecar.lambdas.metrics_and_spans import trace_end


@dataclass(frozen=True, slots=True)
class SinkActor(CrewEnd):
    """Processes the messages of x-sink."""

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
        phase = (envelope.status.phase if envelope.status else None) or "succeeded"
        key = result_key(envelope, self.services.settings.table.sink)
        if phase not in ending.CLAIMED_PHASES:
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
        if phase in ending.CLAIMED_PHASES and envelope.parent_id is None and created_at is not None:
            elapsed_ms = (self.services.now() - parse_time(created_at)).total_seconds() * 1000
            self.services.telemetry.measure("TimeToResult", max(0.0, elapsed_ms), "Milliseconds")

    def _persist_and_report(self, envelope: Envelope, result: ClaimResult) -> list[Receipt]:
        """Persist the envelope, then report the end that its object holds; a failed write keeps the message only."""
        if not self.persists(envelope):
            return self._report(envelope, envelope, result, None)
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
        receipts = self.report_end(stored, claimed, uri) if ending.is_reported(stored) else []
        copies = ending.copies(stored, self.services.settings.table.sink)
        receipts += [self.services.outbox.send(delivery) for delivery in copies]
        return [*receipts, *self.notify_sets(received, stored), *self._index(stored, uri)]

    def _index(self, envelope: Envelope, uri: str | None) -> list[Receipt]:
        """Index a stored envelope that succeeded or was canceled; x-sump indexes failed ones."""
        if uri is None or (envelope.status is not None and envelope.status.phase == "failed"):
            return []
        return self.add_to_index(envelope, uri)


LOGGED_PAYLOAD_BYTES = 2048


@dataclass(frozen=True, slots=True)
class SumpActor(CrewEnd):
    """Processes the messages of x-sump."""

    def handle(self, record: Record) -> list[Receipt]:
        """Log, claim, store and report the failure of one envelope."""
        try:
            envelope = record.arrival.envelope()
        except ParseError as error:
            return self._store_unreadable(record, error)
        try:
            envelope = self.services.claim_check.redeem(envelope)
        except ParseError as error:
            # The failure counts. The copy keeps the reference, so that no replay takes null for the payload.
            self.services.telemetry.log.warning("payload missing", problem=str(error), envelope_id=envelope.id)
        moment = self.services.now()
        failed_envelope = _as_failed(envelope, record, moment)
        self._log(failed_envelope)
        receipts = self._end(failed_envelope)
        trace_end(self.services, failed_envelope, moment)
        return receipts

    def send_failed_child(self, child: Envelope) -> list[Receipt]:
        """End the failed child here: it would come back to this queue."""
        return self._end(child)

    def _end(self, envelope: Envelope) -> list[Receipt]:
        """Claim, store and report a failed envelope."""
        # The envelope may have ended in another way: a hop that sent it on can run again and fail.
        result, key = claim_end(self.services, envelope), sump_key(envelope.id)
        if result.outcome != "taken":
            return self.end_refused(envelope, result, key)
        try:
            stored = self.objects.write(key, envelope)
        except STORAGE_ERRORS as error:
            receipt = Receipt("object")
            receipt.resolve(NotPersistedError(self.results.uri(key), error))
            return [*self._report(envelope, envelope, result, key), receipt]
        winner = self.lost_claim(result.claim)
        if stored is None or winner is not None:
            return [self.keep_superseded(envelope, winner or result.claim, key)]
        receipt = Receipt("object")
        receipt.resolve()
        receipts = [receipt, *self.remove_replaced(result, envelope, key)]
        return [*receipts, *self._report(envelope, stored.envelope, result, key)]

    def _report(self, received: Envelope, stored: Envelope, claimed: ClaimResult, key: str) -> list[Receipt]:
        """Report the failure to the gateway, to the set of a slice and to the index of results."""
        return [
            *self.notify_sets(received, stored),
            *self.report_end(stored, claimed),
            *self.add_to_index(stored, self.results.uri(key)),
        ]

    def _store_unreadable(self, record: Record, error: ParseError) -> list[Receipt]:
        """Log and store a message that is not an envelope."""
        key = f"{SUMP_PREFIX}unreadable/{safe_segment(record.message_id)}"
        self.services.telemetry.count("Failed", by=("reason", "ParseError"))
        self.services.telemetry.log.error(
            "unreadable message", problem=str(error), message_id=record.message_id, key=key
        )
        try:
            self.results.write(key, record.arrival.body, "application/octet-stream")
        except (ClientError, BotoCoreError) as problem:
            raise NotPersistedError(self.results.uri(key), problem) from problem
        receipt = Receipt("object")
        receipt.resolve()
        return [receipt]

    def _count(self, status: Status | None) -> None:
        """Count the failure under its actor and reason; the names are checked, because a status may hold any text."""
        failed_at, reason = (status.actor, status.reason) if status else (None, None)
        actor = failed_at if failed_at in self.services.settings.table.actors else names.SUMP
        reason = reason if reason in REASONS else "RuntimeError"
        self.services.telemetry.count("Failed", by=("reason", reason), actor=actor)

    def _log(self, envelope: Envelope) -> None:
        status = envelope.status
        reason = (status.reason if status else None) or "RuntimeError"
        error = status.error if status else None
        payload = bytes(envelope.payload)
        self._count(status)
        self.services.telemetry.log.error(
            "envelope failed",
            envelope_id=envelope.id,
            parent_id=envelope.parent_id,
            reason=reason,
            failed_actor=status.actor if status else None,
            attempt=status.attempt if status else None,
            error_type=error.type if error else None,
            error_message=error.message if error else None,
            route={"prev": envelope.route.prev, "curr": envelope.route.curr, "next": envelope.route.next},
            payload=payload[:LOGGED_PAYLOAD_BYTES].decode("utf-8", "replace"),
            payload_bytes=len(payload),
        )


def _as_failed(envelope: Envelope, record: Record, now: datetime) -> Envelope:
    """The envelope with a failed status; an envelope sent to x-sump by hand may have any status."""
    if envelope.status is not None and envelope.status.phase == "failed":
        return envelope
    at = format_time(now)
    start = started(
        envelope.status, actor=names.SUMP, now=at, sent_at=format_time(record.arrival.sent_at), max_attempts=1
    )
    error = start.error or ErrorInfo(type="RuntimeError", message="the envelope was sent to x-sump without saying why")
    return replace(envelope, status=failed(start, reason="RuntimeError", now=at, error=error))
