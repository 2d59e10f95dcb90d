"""A fan-in actor: stores slices, and lets the merged envelope leave when all are there (`protocol §9`)."""

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
from asya.messaging.lambdas.batch import Answer, Record, records
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


@dataclass(frozen=True, slots=True)
class FanInActor:
    """What a fan-in actor does with each message."""

    services: Services
    coordinator: SetCoordinator

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch of slices, and of messages about sets."""
        items = records(event)
        telemetry = self.services.telemetry
        record_arrivals(self.services, items)
        about_sets = {
            record.message_id: message
            for record in items
            if (message := decode_message(record.arrival.body)) is not None
        }
        try:
            intake = receive_batch(self.services, [record for record in items if record.message_id not in about_sets])
            return self.services.worker.work(
                items, lambda record: self._handle(intake, record, about_sets.get(record.message_id))
            )
        finally:
            self.services.progress.flush()
            telemetry.flush()

    def _handle(self, intake: Intake, record: Record, message: FanInMessage | None) -> list[Receipt]:
        match message:
            case SliceEnded():
                return self._ended(message)
            case SetDue():
                return self._look(message)
        telemetry = self.services.telemetry
        telemetry.measure("MessageSize", record.arrival.size, "Bytes")
        lag = (self.services.now() - record.arrival.sent_at).total_seconds() * 1000
        telemetry.measure("HopLatency", max(0.0, lag), "Milliseconds")
        started = intake.start(record)
        if isinstance(started, Diversion) and (stored := self._stored_before(record)) is not None:
            started = stored
        if isinstance(started, Diversion):
            record_diversion(self.services, started.why)
            telemetry.log.warning(
                "slice not taken", why=started.why, envelope_id=started.envelope_id, message_id=record.message_id
            )
            return [self.services.outbox.send(delivery) for delivery in started.deliveries]
        try:
            return self._arrived(started, slices.require_slice_header(started))
        except (UnknownTargetError, SliceCountError) as error:
            self._count("failed")
            delivery = outcome.mismatch(started, UnknownTargetError(str(error)), now=self.services.now())
            return [self.services.outbox.send(delivery)]

    def _stored_before(self, record: Record) -> Hop | None:
        """The item that this message has brought before, as it was stored.

        Its end may be claimed and not yet be told: that is finished, whatever the clock or the task's state says by now.
        """
        if record.arrival.receive_count == 1:
            return None
        try:
            envelope = decode(self.services.claim_check.redeem(record.arrival.body), message_id=record.message_id)
            header = slice_header(envelope)
            if header is None or header.slice_index == ORIGIN:
                return None
            body = self.coordinator.sets.slice(header.set_id, header.slice_index)
        except (ValueError, UnknownSetError):
            return None
        mesh = self.services.settings.table
        return Hop.of(decode(body), self.coordinator.actor, mesh.actors[self.coordinator.actor], mesh, record.arrival)

    def _arrived(self, hop: Hop, header: SliceHeader) -> list[Receipt]:
        """A slice: stored, its own task reported as done, and the set looked at.

        Raises:
            SliceCountError: it does not belong to its set.
        """
        body = encode(hop.envelope)
        record, uri = self.coordinator.sets.arrive(
            header, body, actor=self.coordinator.actor, times=self.coordinator.times(self.services.now())
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
        receipts = self._reported(hop, uri) if header.slice_index != ORIGIN else []
        return [*receipts, *self.coordinator.settle(record)]

    def _reported(self, hop: Hop, uri: str | None) -> list[Receipt]:
        """An item's own work is done, whatever becomes of the set, unless it has ended otherwise before."""
        moment = self.services.now()
        done = replace(hop.envelope, status=succeeded(hop.status, now=format_time(moment)))
        url = self.services.callback(hop.envelope)
        if claim_end(self.services, done).outcome == "refused" or url is None:
            return []
        return [self.services.required_reports.report(url, reports.terminal(done, now=moment, result_uri=uri))]

    def _ended(self, ended: SliceEnded) -> list[Receipt]:
        """A slice that ended without a result."""
        self._count("slice_ended")
        sets, coordinator = self.coordinator.sets, self.coordinator
        if ended.phase == "canceled" and ended.slice_index != ORIGIN:
            known = sets.get(ended.set_id)
            return coordinator.slice_canceled(known) if known is not None else []
        try:
            record = sets.add_ended_slice(ended, actor=coordinator.actor, times=coordinator.times(self.services.now()))
        except SliceCountError as error:
            self.services.telemetry.log.warning("end of a slice that is none", problem=str(error))
            return []
        if ended.slice_index == ORIGIN:
            coordinator.origin_ended(record)
            return []
        return coordinator.settle(record)

    def _look(self, look: SetDue) -> list[Receipt]:
        """Is a set's time up? Strays, of which another is in charge, end here."""
        record = self.coordinator.sets.get(look.set_id)
        if record is None:
            return []
        is_stray = record.look_until > self.services.now().timestamp() and look.until != record.look_until
        if record.state.decision is None and is_stray:
            return []
        return self.coordinator.settle(record, look_is_over=True)

    def _count(self, how: str) -> None:
        self.services.telemetry.count("Processed", by=("outcome", how))
