"""A fan-in actor: stores slices and sends the merged envelope once its set is complete (`protocol §9`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from asya.crew.lambdas.ends import claim_end
from asya.fan_in.aws.sets import SliceCountError, UnknownSetError
from asya.fan_in.lambdas.set_coordinator import SetCoordinator
from asya.fan_in.sets import ORIGIN
from asya.messaging.aws.receipt import Receipt
from asya.messaging.delivery import Diversion
from asya.messaging.hop import Hop
from asya.messaging.lambdas.batch import BatchResponse, Record, records
from asya.messaging.targets import UnknownTargetError
from asya.protocol.codec import decode, encode
from asya.protocol.slices import FanInMessage, SetDue, SliceEnded, SliceHeader, decode_message, slice_header
from asya.protocol.status import succeeded
from asya.protocol.times import format_time
from asya.reporting import reports
from asya.sidecar import outcome, slices
from asya.sidecar.lambdas.intake import Intake, receive_batch
from asya.sidecar.lambdas.metrics import record_arrivals, record_diversion
from asya.sidecar.lambdas.services import Services
from asya.sidecar.lambdas.traces import trace_hop


@dataclass(frozen=True, slots=True)
class FanInActor:
    """Processes slices and the control messages of their sets."""

    services: Services
    coordinator: SetCoordinator

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch of slices and control messages."""
        items = records(event)
        telemetry = self.services.telemetry
        record_arrivals(self.services, items)
        control_messages = {
            record.message_id: message
            for record in items
            if (message := decode_message(record.arrival.body)) is not None
        }
        try:
            intake = receive_batch(
                self.services, [record for record in items if record.message_id not in control_messages]
            )
            return self.services.worker.process(
                items, lambda record: self._handle(intake, record, control_messages.get(record.message_id))
            )
        finally:
            self.services.progress.flush()
            telemetry.flush()

    def _handle(self, intake: Intake, record: Record, message: FanInMessage | None) -> list[Receipt]:
        match message:
            case SliceEnded():
                return self._record_slice_end(message)
            case SetDue():
                return self._check_timeout(message)
        telemetry = self.services.telemetry
        telemetry.measure("MessageSize", record.arrival.size, "Bytes")
        lag = (self.services.now() - record.arrival.sent_at).total_seconds() * 1000
        telemetry.measure("HopLatency", max(0.0, lag), "Milliseconds")
        started = intake.start(record)
        stored = self._stored_slice(record) if isinstance(started, Diversion) else None
        started = stored or started
        if isinstance(started, Diversion):
            record_diversion(self.services, started.why)
            telemetry.log.warning(
                "slice not stored", why=started.why, envelope_id=started.envelope_id, message_id=record.message_id
            )
            return [self.services.outbox.send(delivery) for delivery in started.deliveries]
        began_at = self.services.now()
        try:
            receipts = self._store(started, slices.require_slice_header(started))
        except (UnknownTargetError, SliceCountError) as error:
            self._count("failed")
            delivery = outcome.mismatch(started, UnknownTargetError(str(error)), now=self.services.now())
            trace_hop(self.services, started, began_at, error="RouteMismatch")
            return [self.services.outbox.send(delivery)]
        if stored is None:
            trace_hop(self.services, started, began_at)
        return receipts

    def _stored_slice(self, record: Record) -> Hop | None:
        """The hop of a redelivered slice that is already stored; None for any other message.

        Its end may be claimed but not yet reported. The report is completed even if the deadline has passed since.
        """
        if record.arrival.receive_count == 1:
            return None
        try:
            header = slice_header(decode(record.arrival.body, message_id=record.message_id))
            if header is None or header.slice_index == ORIGIN:
                return None
            body = self.coordinator.sets.load_slice(header.set_id, header.slice_index)
        except (ValueError, UnknownSetError):
            return None
        mesh = self.services.settings.table
        return Hop.of(decode(body), self.coordinator.actor, mesh.actors[self.coordinator.actor], mesh, record.arrival)

    def _store(self, hop: Hop, header: SliceHeader) -> list[Receipt]:
        """Store a slice, report its own task as succeeded and advance the set.

        Raises:
            SliceCountError: the slice states another `slice_count` than its set.
        """
        body = encode(hop.envelope)
        record, uri = self.coordinator.sets.add_slice(
            header, body, actor=self.coordinator.actor, times=self.coordinator.new_set_times(self.services.now())
        )
        is_late = record.state.delivered
        self._count("late" if is_late else "stored")
        if is_late:
            self.services.telemetry.log.info(
                "slice of a closed set",
                envelope_id=hop.envelope.id,
                set_id=header.set_id,
                slice_index=header.slice_index,
            )
        receipts = self._report_success(hop, uri) if header.slice_index != ORIGIN else []
        return [*receipts, *self.coordinator.advance(record)]

    def _report_success(self, hop: Hop, uri: str | None) -> list[Receipt]:
        """Report an item's own task as succeeded, unless it has already ended in another way."""
        moment = self.services.now()
        envelope = replace(hop.envelope, status=succeeded(hop.status, now=format_time(moment)))
        url = self.services.callback(hop.envelope)
        if claim_end(self.services, envelope).outcome == "refused" or url is None:
            return []
        return [self.services.required_reports.report(url, reports.terminal(envelope, now=moment, result_uri=uri))]

    def _record_slice_end(self, ended: SliceEnded) -> list[Receipt]:
        """Record that a slice ended without a result, and advance its set."""
        self._count("slice_ended")
        sets, coordinator = self.coordinator.sets, self.coordinator
        if ended.phase == "canceled" and ended.slice_index != ORIGIN:
            current = sets.get(ended.set_id)
            return coordinator.slice_canceled(current) if current is not None else []
        try:
            record = sets.add_ended_slice(
                ended, actor=coordinator.actor, times=coordinator.new_set_times(self.services.now())
            )
        except SliceCountError as error:
            self.services.telemetry.log.warning("slice end does not match its set", problem=str(error))
            return []
        if ended.slice_index == ORIGIN:
            coordinator.origin_ended(record)
            return []
        return coordinator.advance(record)

    def _check_timeout(self, check: SetDue) -> list[Receipt]:
        """Advance a set whose timeout check arrived; a check is dropped if a newer one is pending."""
        record = self.coordinator.sets.get(check.set_id)
        if record is None:
            return []
        is_superseded = record.check_until > self.services.now().timestamp() and check.until != record.check_until
        if record.state.decision is None and is_superseded:
            return []
        return self.coordinator.advance(record, check_arrived=True)

    def _count(self, how: str) -> None:
        self.services.telemetry.count("Processed", by=("outcome", how))
