"""x-sump: the last stop of what failed: logged, counted, kept and reported (`protocol §11`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.crew.aws.result_index import ResultIndex
from asya.crew.aws.results import Results
from asya.crew.lambdas.ends import claim_end, index_row
from asya.crew.lambdas.sink import NotPersistedError
from asya.messaging.aws.receipt import Receipt
from asya.messaging.lambdas.batch import Answer, Record, records
from asya.protocol import names
from asya.protocol.codec import ParseError, decode
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.keys import SUMP_PREFIX, safe_segment, sump_key
from asya.protocol.status import REASONS, Status, failed, started
from asya.protocol.times import format_time
from asya.reporting import reports
from asya.sidecar.lambdas.metrics import record_arrivals
from asya.sidecar.lambdas.services import Services
from asya.sidecar.slices import slice_end_deliveries

LOGGED_PAYLOAD_BYTES = 2048


@dataclass(frozen=True, slots=True)
class SumpActor:
    """What x-sump does with each message."""

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
        try:
            envelope = decode(self.services.claim_check.redeem(record.arrival.body), message_id=record.message_id)
        except ParseError as error:
            return self._keep_unreadable(record, error)
        envelope = _as_failed(envelope, record, self.services.now())
        self._log(envelope)
        # A failure may not be the end: one that a hop sent on, before it was run again and failed, may have ended otherwise.
        claimed = claim_end(self.services, envelope)
        key, namespace = sump_key(envelope.id), self.services.settings.namespace
        receipts = self._told(envelope, key) if claimed.outcome == "taken" else []
        if envelope.generation < claimed.claim.generation:
            return receipts  # the copy that lies there, if any, is a later one
        return [*receipts, self._written(key, lambda key: self.results.write_envelope(key, envelope, namespace))]

    def _told(self, envelope: Envelope, key: str) -> list[Receipt]:
        """The failure, told to those who wait for it: the task's record, of a slice its set, and the index of results."""
        told = slice_end_deliveries(envelope, self.services.settings.table)
        receipts = [self.services.outbox.send(delivery) for delivery in told]
        url = self.services.callback(envelope)
        if url is not None:
            event = reports.terminal(envelope, now=self.services.now())
            receipts.append(self.services.required_reports.report(url, event))
        return [*receipts, *index_row(self.services, self.index, envelope, self.results.uri(key))]

    def _keep_unreadable(self, record: Record, error: ParseError) -> list[Receipt]:
        """Nothing can be told about it but that it came: logged, kept as it is, acked."""
        key = f"{SUMP_PREFIX}unreadable/{safe_segment(record.message_id)}"
        self.services.telemetry.count("Failed", by=("reason", "ParseError"))
        self.services.telemetry.log.error(
            "unreadable message", problem=str(error), message_id=record.message_id, key=key
        )
        body = record.arrival.body
        return [self._written(key, lambda key: self.results.write(key, body, "application/octet-stream"))]

    def _count(self, status: Status | None) -> None:
        """Under the actor that failed, and by words that we know: anything may be written into a status block."""
        failed_at, reason = (status.actor, status.reason) if status else (None, None)
        known = failed_at if failed_at in self.services.settings.table.actors else names.SUMP
        reason = reason if reason in REASONS else "RuntimeError"
        self.services.telemetry.count("Failed", by=("reason", reason), actor=known)

    def _written(self, key: str, write: Callable[[str], str]) -> Receipt:
        receipt = Receipt("object")
        try:
            write(key)
        except (ClientError, BotoCoreError) as error:
            receipt.resolve(NotPersistedError(f"{self.results.uri(key)} could not be written: {error}"))
        else:
            receipt.resolve()
        return receipt

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
    """What lies here failed, whatever it says; somebody may have sent it here by hand."""
    if envelope.status is not None and envelope.status.phase == "failed":
        return envelope
    at = format_time(now)
    was = started(
        envelope.status, actor=names.SUMP, now=at, sent_at=format_time(record.arrival.sent_at), max_attempts=1
    )
    error = was.error or ErrorInfo(type="RuntimeError", message="the envelope was sent to x-sump without saying why")
    return replace(envelope, status=failed(was, reason="RuntimeError", now=at, error=error))
