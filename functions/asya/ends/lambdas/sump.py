"""x-sump: logs, stores and reports failed envelopes and unreadable messages (`protocol §11`)."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.ends.aws.end_claims import ClaimResult
from asya.ends.lambdas.ends import STORAGE_ERRORS, CrewEnd, NotPersistedError, claim_end
from asya.ends.statements import FAILED_END
from asya.function.aws.receipt import Receipt
from asya.function.lambdas.batch import Record
from asya.protocol import names
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.keys import SUMP_PREFIX, safe_segment, sump_key
from asya.protocol.status import REASONS, Status, failed, started
from asya.protocol.times import format_time
from asya.senders.statements import Statement
from asya.sidecar.lambdas.metrics_and_spans import trace_end

LOGGED_PAYLOAD_BYTES = 2048


@dataclass(frozen=True, slots=True)
class SumpActor(CrewEnd):
    """Processes the messages of x-sump."""

    says: ClassVar[Statement] = FAILED_END

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
        """Report the failure to the gateway and to the set of a slice."""
        return [
            *self.notify_sets(received, stored),
            *self.report_end(stored, claimed, indexed_uri=self.results.uri(key)),
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
    if envelope.has_failed:
        return envelope
    at = format_time(now)
    start = started(
        envelope.status, actor=names.SUMP, now=at, sent_at=format_time(record.arrival.sent_at), max_attempts=1
    )
    error = start.error or ErrorInfo(type="RuntimeError", message="the envelope was sent to x-sump without saying why")
    return replace(envelope, status=failed(start, reason="RuntimeError", now=at, error=error))
