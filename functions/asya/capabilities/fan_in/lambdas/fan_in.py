"""A fan-in actor: stores and counts slices, and sends the merged envelope of a complete set (`protocol §9`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from asya.capabilities.fan_in.aws.sets import SetRecord, SetTimes, SliceCountError
from asya.capabilities.fan_in.aws.slice_store import UnknownSliceError
from asya.capabilities.fan_in.lambdas.set_coordinator import SetCoordinator, SetRepeater
from asya.capabilities.fan_in.sets import ORIGIN, is_repeat
from asya.capabilities.fan_in.statements import DUE, LOST_SLICE, REPEAT, SLICE
from asya.ends.aws.results import EndObjects
from asya.ends.ending import report_time
from asya.ends.lambdas.ends import claim_end
from asya.function.aws.receipt import Receipt
from asya.function.hop import Arrival, Diversion, Hop
from asya.function.lambdas.batch import BatchResponse, Record, records, release_locals
from asya.function.targets import TargetError
from asya.protocol import states
from asya.protocol.codec import ParseError, decode, encode
from asya.protocol.events import INLINE_RESULT_LIMIT
from asya.protocol.slices import FanInMessage, SetDue, SliceEnded, SliceHeader, decode_message, slice_header
from asya.protocol.status import succeeded
from asya.protocol.times import format_time
from asya.senders.entry import refuse
from asya.senders.envelopes import START
from asya.sidecar import arrival, outcome, slices
from asya.sidecar.lambdas.intake import Intake, receive_batch
from asya.sidecar.lambdas.metrics_and_spans import record_arrivals, record_diversion, trace_hop
from asya.sidecar.lambdas.services import Services
from asya.tasks.reporting import reports

# Slices that are not counted yet stay in memory. A batch of inline messages has not much more than this.
_HELD_LIMIT = 1024 * 1024

_STATEMENTS = {SliceEnded: LOST_SLICE, SetDue: DUE}


@dataclass(frozen=True, slots=True)
class StoredSlice:
    """A slice, or the end of one, that is stored and not counted yet.

    Attributes:
        then: continues with the set that has counted the slice.
        refused: ends a slice that does not belong to its set.
        size: the bytes of the envelope that `then` and `refused` hold.
        is_last_receive: whether its message does not come again.
    """

    info: SliceHeader | SliceEnded
    times: SetTimes
    then: Callable[[SetRecord], list[Receipt]]
    refused: Callable[[SliceCountError], list[Receipt]]
    size: int = 0
    is_last_receive: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    stored: StoredSlice
    counted: Receipt
    receipts: list[Receipt]


@dataclass(slots=True)
class SliceCounter:
    """Collects the stored slices of a batch, then counts those of one set together and advances the set.

    It is the first outlet of the batch: what it queues in the others is sent with them. Large slices are counted before the
    batch ends, so that it needs the memory of its largest envelope.
    """

    coordinator: SetCoordinator
    _entries: dict[tuple[str, int], list[_Entry]] = field(default_factory=dict)
    _held: int = 0

    def add(self, stored: StoredSlice) -> list[Receipt]:
        """Add a stored slice; the next flush counts it. Over 1 MiB of slices are flushed at once.

        Returns:
            The receipts of its message. The flush replaces the first one by those of everything that the slice causes.
        """
        receipts = [counted := Receipt("slice")]
        group = self._entries.setdefault((stored.info.set_id, stored.info.slice_count), [])
        group.append(_Entry(stored, counted, receipts))
        self._held += stored.size
        if self._held > _HELD_LIMIT:
            self.flush()
        return receipts

    def flush(self) -> None:
        """Count all slices so far; on return, their receipts are resolved or queued in another outlet."""
        entries, self._entries, self._held = self._entries, {}, 0
        for group in entries.values():
            self._process(group)
            for entry in group:
                for receipt in (entry.counted, *entry.receipts):
                    # A kept error must not keep the envelopes of its set alive.
                    if receipt.error is not None:
                        release_locals(receipt.error)

    def _process(self, group: Sequence[_Entry]) -> None:
        try:
            record = self._count(group)
        except SliceCountError as error:
            for entry in group:
                _complete(entry, lambda entry=entry, error=error: entry.stored.refused(error))  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001 - the messages of this set stay on the queue, no others
            for entry in group:
                entry.counted.resolve(error)
        else:
            for entry in group:
                _complete(entry, lambda entry=entry: entry.stored.then(record))  # type: ignore[misc]
            self._advance(group, record)

    def _count(self, group: Sequence[_Entry]) -> SetRecord:
        infos = [entry.stored.info for entry in group]
        first = group[0].stored
        return self.coordinator.sets.count(
            first.info.set_id,
            first.info.slice_count,
            arrived={info.slice_index for info in infos if isinstance(info, SliceHeader)},
            lost={info.slice_index for info in infos if isinstance(info, SliceEnded)},
            actor=self.coordinator.actor,
            times=next((entry.stored.times for entry in group if entry.stored.times.is_of_origin), first.times),
        )

    def _advance(self, group: Sequence[_Entry], record: SetRecord) -> None:
        """Advance the set once; if that fails, the ends of the group stay on the queue and repeat it, or its last slice.

        A slice would not repeat what the set does after an end.
        """
        ends = [entry.stored.info for entry in group if isinstance(entry.stored.info, SliceEnded)]
        is_last_receive = any(entry.stored.is_last_receive for entry in group)
        try:
            group[-1].receipts.extend(self.coordinator.advance_after(record, ends, is_last_receive=is_last_receive))
        except Exception as error:  # noqa: BLE001 - it belongs to this set only
            ended = [entry for entry in group if isinstance(entry.stored.info, SliceEnded)]
            for entry in ended or group[-1:]:
                entry.receipts.append(failed := Receipt("slice"))
                failed.resolve(error)


def _complete(entry: _Entry, action: Callable[[], list[Receipt]]) -> None:
    try:
        entry.receipts.extend(action())
    except Exception as error:  # noqa: BLE001 - it belongs to this message only
        entry.counted.resolve(error)
    else:
        # Nothing was sent for it, so it is no part of the metric `Sent`.
        entry.receipts.remove(entry.counted)


@dataclass(frozen=True, slots=True)
class FanInActor:
    """Processes slices and the control messages of their sets."""

    services: Services
    coordinator: SetCoordinator
    objects: EndObjects
    repeater: SetRepeater

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch of slices and control messages."""
        heard = [self._heard(record) for record in self.services.admission.admit(records(event))]
        items = [record for record, _ in heard]
        telemetry = self.services.telemetry
        record_arrivals(self.services, items)
        control_messages = {record.message_id: message for record, message in heard if message is not None}
        counter = SliceCounter(self.coordinator)
        try:
            intake = receive_batch(
                self.services, [record for record in items if record.message_id not in control_messages]
            )
            return intake.process(
                items,
                lambda record: self._handle(intake, counter, record, control_messages.get(record.message_id)),
                kept=intake.report_problem,
                worker=self.services.worker.with_outlet(counter, first=True),
            )
        finally:
            self.services.progress.flush()
            telemetry.flush()

    def _heard(self, record: Record) -> tuple[Record, FanInMessage | None]:
        """A message with what it says about a set. One that its sender may not send is refused, and changes no set."""
        message = None if record.arrival.is_new else decode_message(record.arrival.body)
        if message is None:
            return self.services.admission.heard(record, SLICE, START), None
        heard = self.services.admission.heard(record, _STATEMENTS[type(message)])
        return heard, None if heard.arrival.refusal is not None else message

    def _handle(
        self, intake: Intake, counter: SliceCounter, record: Record, message: FanInMessage | None
    ) -> list[Receipt]:
        match message:
            case SliceEnded():
                return self._record_slice_end(counter, message, record)
            case SetDue():
                # The slices before it in this batch count: they were received in time.
                counter.flush()
                return self._check_timeout(message, record)
        refused = self._refused_repeat(intake, record)
        return self._take(intake, counter, record) if refused is None else refused

    def _take(self, intake: Intake, counter: SliceCounter, record: Record) -> list[Receipt]:
        """Store a slice, or repeat a fan-out."""
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
            if is_repeat(started.envelope):
                receipts = self.repeater.repeat(started)
                self._count("repeated")
                return receipts
            header = slices.require_slice_header(started)
        except (TargetError, SliceCountError) as error:
            return self._mismatch(started, error, began_at)
        return self._store(counter, started, header, began_at, is_first=stored is None)

    def _refused_repeat(self, intake: Intake, record: Record) -> list[Receipt] | None:
        """Send what asks for a repetition to x-sump, under an id of its own, if its sender may not ask; None for all else."""
        received = intake.received[record.message_id]
        if not isinstance(received, Hop) or not is_repeat(received.envelope):
            return None
        problem = self.services.admission.problem(record.arrival, REPEAT)
        if problem is None:
            return None
        self._count(states.FAILED)
        came = refuse(record.arrival, problem)
        refused = arrival.parse_failure(came, ParseError(problem), now=self.services.now())
        return [self.services.outbox.send(delivery) for delivery in refused.deliveries]

    def _mismatch(self, hop: Hop, error: Exception, began_at: datetime) -> list[Receipt]:
        """End an envelope that belongs to no set of this actor at x-sump."""
        self._count(states.FAILED)
        delivery = outcome.mismatch(hop, TargetError(str(error)), now=self.services.now())
        trace_hop(self.services, hop, began_at, error="RouteMismatch")
        return [self.services.outbox.send(delivery)]

    def _stored_slice(self, record: Record) -> Hop | None:
        """The hop of a redelivered slice that is already stored; None for any other message.

        Its set may not know of it, and its end may be claimed but not yet reported. Both are completed even if the deadline has
        passed since.
        """
        if record.arrival.receive_count == 1:
            return None
        try:
            header = slice_header(record.arrival.envelope())
            if header is None:
                return None
            body = self.coordinator.slices.load(header.set_id, header.slice_index, header.slice_count)
        except (ValueError, UnknownSliceError):
            return None
        mesh = self.services.settings.table
        return Hop.of(decode(body), self.coordinator.actor, mesh.actors[self.coordinator.actor], mesh, record.arrival)

    def _store(
        self, counter: SliceCounter, hop: Hop, header: SliceHeader, began_at: datetime, *, is_first: bool
    ) -> list[Receipt]:
        """Store a slice. Once its set has counted it, report its own task as succeeded.

        Args:
            is_first: whether an earlier receive has not traced the hop.
        """
        body = encode(hop.envelope)
        coordinator, is_origin = self.coordinator, header.slice_index == ORIGIN
        times = (
            coordinator.origin_times(hop) if is_origin else coordinator.new_set_times(self.services.now(), hop.deadline)
        )
        uri = self.coordinator.slices.store(header, body, expires_at=times.expires_at)

        def counted(record: SetRecord) -> list[Receipt]:
            is_late = record.state.is_closed_to(header.slice_index)
            self._count("late" if record.state.delivered else "stored")
            if is_late:
                self.services.telemetry.log.warning(
                    "slice of a closed set",
                    envelope_id=hop.envelope.id,
                    set_id=header.set_id,
                    slice_index=header.slice_index,
                )
            receipts: list[Receipt] = []
            if header.slice_index != ORIGIN:
                # A result that a report cannot carry has an address.
                result_uri = uri if len(body) > INLINE_RESULT_LIMIT else None
                receipts = self._report_success(hop, result_uri, is_late=is_late)
            elif is_late:
                self.objects.supersede(hop.envelope)
            if is_first:
                trace_hop(self.services, hop, began_at)
            return receipts

        def refused(error: SliceCountError) -> list[Receipt]:
            return self._mismatch(hop, error, began_at)

        is_last = self._is_last_receive(hop.arrival)
        return counter.add(StoredSlice(header, times, counted, refused, len(body), is_last))

    def _report_success(self, hop: Hop, uri: str | None, *, is_late: bool) -> list[Receipt]:
        """Report an item's own task as succeeded, unless it has already ended in another way.

        What does not count, in the set or as the task's end, is kept under `superseded/`.
        """
        moment = self.services.now()
        envelope = replace(hop.envelope, status=succeeded(hop.status, now=format_time(moment)))
        url = self.services.report_url(hop.envelope)
        result = claim_end(self.services, envelope)
        is_taken = result.outcome == "taken"
        if is_late or not is_taken:
            self.objects.supersede(envelope)
        if url is None or not is_taken:
            return []
        event = reports.terminal(envelope, at=report_time(result.claimed_at, moment), result_uri=uri)
        return [self.services.required_reports.report(url, event)]

    def _record_slice_end(self, counter: SliceCounter, ended: SliceEnded, record: Record) -> list[Receipt]:
        """Store that a slice ended without a result; its set then counts it."""
        self._count("slice_ended")
        times = self.coordinator.new_set_times(self.services.now(), ended.deadline_at)
        self.coordinator.slices.store_end(ended, expires_at=times.expires_at)

        def refused(error: SliceCountError) -> list[Receipt]:
            self.services.telemetry.log.warning("slice end does not match its set", problem=str(error))
            return []

        is_last = self._is_last_receive(record.arrival)
        return counter.add(StoredSlice(ended, times, lambda _: [], refused, is_last_receive=is_last))

    def _check_timeout(self, check: SetDue, message: Record) -> list[Receipt]:
        """Advance a set whose timeout check arrived; a check is dropped if a newer one is pending."""
        record = self.coordinator.sets.get(check.set_id)
        if record is None:
            return []
        is_superseded = record.check_until > self.services.now().timestamp() and check.until != record.check_until
        if record.state.decision is None and is_superseded:
            return []
        is_last = self._is_last_receive(message.arrival)
        return self.coordinator.advance(record, check_arrived=True, is_last_receive=is_last)

    def _is_last_receive(self, arrival: Arrival) -> bool:
        """Whether the message becomes a dead letter if it stays on the queue once more."""
        return arrival.receive_count >= self.services.settings.table.actors[self.coordinator.actor].queue_receives

    def _count(self, how: str) -> None:
        self.services.telemetry.count("Processed", by=("outcome", how))
