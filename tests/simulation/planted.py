"""Planted mistakes: patches of the mesh that the simulation must detect, one at a time."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from asya.crew import ending
from asya.crew.aws.end_claims import Claim, ClaimResult
from asya.crew.aws.end_objects import EndObjects, StoredEnd
from asya.crew.aws.results import Results
from asya.crew.lambdas import ends, sump
from asya.dead_letters.lambdas.dlq import DeadLetterWatch
from asya.fan_in.aws.sets import FanInSets
from asya.fan_in.aws.slice_store import SliceStore
from asya.fan_in.lambdas import fan_in, set_coordinator
from asya.fan_in.lambdas.counting import SliceCounter, StoredSlice
from asya.fan_in.lambdas.sweep import FanInSweep
from asya.fan_in.sets import Decision
from asya.gateway.aws.ends_queue import EndsQueue
from asya.gateway.lambdas import report_queues
from asya.gateway.lambdas.report_queues import Writes
from asya.messaging.aws.claim_check import ClaimCheck
from asya.messaging.aws.outbox import Outbox
from asya.messaging.aws.receipt import Receipt
from asya.messaging.delivery import Delivery
from asya.messaging.hop import Hop
from asya.messaging.lambdas.batch import BatchProcessor, Record
from asya.protocol import headers, ids, status
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import NULL, Envelope
from asya.protocol.route import Route
from asya.protocol.slices import SetDue, decode_message
from asya.reporting.aws.required_reports import RequiredReports
from asya.sidecar import arrival, outcome
from asya.sidecar.aws.deduplication import CompletedHops
from asya.sidecar.aws.frame_buffer import FrameBuffer
from asya.sidecar.lambdas import preflight
from tests.doubles.tables import MemoryDynamo
from tests.simulation.mistake import Mistake, Patch, substitute, wrap
from tests.simulation.services.queues import SqsClient

# --- delivery ----------------------------------------------------------------------------------------------------------


def _answer_without_failures(real: Any, self: SqsClient, **request: Any) -> dict[str, Any]:
    real(self, **request)
    return {"Successful": [{"Id": entry["Id"]} for entry in request["Entries"]]}


def _process_ignoring_errors(real: Any, self: Any, items: Any, handle: Any, accepted: Any = None) -> Any:
    def handle_quietly(record: Any) -> list[Receipt]:
        try:
            return handle(record)  # type: ignore[no-any-return]
        except Exception:  # noqa: BLE001 - the mistake
            return []

    return real(self, items, handle_quietly, accepted)


def _process_with_receive_count(choose: Callable[[Sequence[Record]], int]) -> Patch:
    """The batch processor sees one receive count for all records of a batch; handlers see the real ones."""

    def process(real: Any, self: Any, items: Any, handle: Any, accepted: Any = None) -> Any:
        originals = {record.receipt_handle: record for record in items}
        count = choose(items)
        changed = [
            replace(record, arrival=msgspec.structs.replace(record.arrival, receive_count=count)) for record in items
        ]
        return real(
            self,
            changed,
            lambda record: handle(originals[record.receipt_handle]),
            accepted and (lambda record: accepted(originals[record.receipt_handle])),
        )

    return wrap(BatchProcessor, "process", process)


def _same_count_after_first(items: Sequence[Record]) -> int:
    """A count that isolates the records, but never reverses their order."""
    return 3 if any(record.arrival.receive_count > 1 for record in items) else 1


def _report_resolved(real: Any, self: RequiredReports, *args: Any) -> Receipt:
    real(self, *args)
    return _resolved("report")


def _read_all_or_nothing(real: Any, *args: Any, **more: Any) -> Any:
    message = real(*args, **more)
    if message.refused:
        message.reports = []
    return message


def _add_unawaited(real: Any, self: Writes, *args: Any) -> Receipt:
    real(self, *args)
    return _resolved("task")


def _redeem_keeping_reference(real: Any, self: Any, envelope: Envelope) -> Envelope:
    redeemed: Envelope = real(self, envelope)
    if redeemed is envelope:
        return envelope
    reference = {headers.PAYLOAD_REF: envelope.headers[headers.PAYLOAD_REF]}
    return msgspec.structs.replace(redeemed, headers=redeemed.headers | reference)


def _mark_at_query(real: Any, self: Any, hop: Any) -> bool:
    was_done: bool = real(self, hop)
    self.mark(hop, epoch_seconds=0)
    return was_done


# --- ends --------------------------------------------------------------------------------------------------------------


def _claim_unconditionally(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    if request["Key"]["sk"]["S"] == "claim":
        del request["ConditionExpression"]
    return real(self, **request)


def _write_ignoring_errors(real: Any, self: Results, key: str, *args: Any, **more: Any) -> str:
    try:
        return real(self, key, *args, **more)  # type: ignore[no-any-return]
    except (ClientError, BotoCoreError):
        return self.uri(key)


def _write_unconditionally(self: EndObjects, key: str, envelope: Envelope) -> StoredEnd:
    return StoredEnd(self.results.write_envelope(key, envelope, self.namespace), envelope)


def _write_end_ignoring_errors(real: Any, self: EndObjects, key: str, envelope: Envelope) -> StoredEnd | None:
    try:
        return real(self, key, envelope)  # type: ignore[no-any-return]
    except (ClientError, BotoCoreError):
        return StoredEnd(self.results.uri(key), envelope)


def _skip_claim(_: Any, envelope: Envelope, **__: Any) -> ClaimResult:
    return ClaimResult(
        "taken", Claim(envelope.id, envelope.generation, "failed", f"sump/{envelope.id}.json"), envelope.generation
    )


def _put_record_unconditionally(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    if request["Item"]["sk"]["S"] == "record":
        for name in ("ConditionExpression", "ExpressionAttributeValues"):
            del request[name]
    return real(self, **request)


# --- routing -----------------------------------------------------------------------------------------------------------


def _without_field(name: str) -> Callable[..., Any]:
    """The status that a function makes, without one of its fields."""
    return lambda real, *args, **more: msgspec.structs.replace(real(*args, **more), **{name: None})


def _retry_without_count(real: Any, before: status.Status, **more: Any) -> status.Status:
    counted: status.Status = real(before, **more)
    return msgspec.structs.replace(counted, attempt=before.attempt)


def _shift_twice(real: Any, self: Route, ahead: Any = None) -> Route:
    once: Route = real(self, ahead)
    twice: Route = real(once)
    return twice if once.next else once


def _retry_without_payload(real: Any, *args: Any, **more: Any) -> Delivery:
    delivery: Delivery = real(*args, **more)
    if delivery.kind != "retry":
        return delivery
    envelope = msgspec.structs.replace(decode(delivery.body), payload=NULL)
    return msgspec.structs.replace(delivery, body=encode(envelope))


def _fail_ignoring_frames_sent(real: Any, *args: Any, frames_sent: int = 0, **more: Any) -> Any:
    return real(*args, **more)


def _frame_with_first_attempt(real: Any, hop: Hop, *args: Any, **more: Any) -> Delivery:
    delivery: Delivery = real(hop, *args, **more)
    first = hop.envelope.headers.get(headers.FIRST_ATTEMPT)
    return msgspec.structs.replace(delivery, body=_change_headers(delivery.body, {headers.FIRST_ATTEMPT: first}))


def _frame_without_root(real: Any, hop: Hop, *args: Any, **more: Any) -> Delivery:
    delivery: Delivery = real(hop, *args, **more)
    if decode(delivery.body).id == hop.envelope.id:
        return delivery
    return msgspec.structs.replace(delivery, body=_change_headers(delivery.body, {headers.ROOT: None}))


def _numbered_child_id(numbers: "count[int]") -> Callable[..., str]:
    return lambda *_: f"child-{next(numbers)}"


def _start_ignoring_state(real: Any, hop: Hop, state: Any, **more: Any) -> Any:
    return real(hop, None, **more)


def _start_ignoring_max_hops(real: Any, hop: Hop, state: Any, **more: Any) -> Any:
    mesh = msgspec.structs.replace(hop.mesh, max_hops=sys.maxsize)
    return real(msgspec.structs.replace(hop, mesh=mesh), state, **more)


# --- sets --------------------------------------------------------------------------------------------------------------


def _always_save_decision(real: Any, self: FanInSets, set_id: str, decision: Decision, **more: Any) -> Any:
    record, _ = real(self, set_id, decision, **more)
    return replace(record, state=replace(record.state, decision=decision)), True


def _acknowledge_uncounted(real: Any, self: SliceCounter, stored: StoredSlice) -> list[Receipt]:
    """The receipts of a message do not wait for the count."""
    real(self, stored)
    return []


def _count_duplicates(real: Any, self: FanInSets, set_id: str, slice_count: int, **more: Any) -> Any:
    """Count the number of slices, not their indexes."""
    before = self.get(set_id)
    known = before.state.arrived if before is not None else frozenset()
    more["arrived"] = {
        index if index not in known else min(set(range(slice_count)) - known, default=index)
        for index in more["arrived"]
    }
    return real(self, set_id, slice_count, **more)


def _count_slices_that_are_not_stored(real: Any, *args: Any, **more: Any) -> Any:
    try:
        return real(*args, **more)
    except (ClientError, BotoCoreError):
        return None


def _swap_slices(real: Any, origin: Any, decision: Any, items: dict[int, Any]) -> Any:
    first, second = items.get(1), items.get(2)
    swapped = items | ({1: second, 2: first} if first is not None and second is not None else {})
    return real(origin, decision, swapped)


def _leave_all_sets(real: Any, *args: Any) -> Delivery:
    delivery: Delivery = real(*args)
    return msgspec.structs.replace(delivery, body=_change_headers(delivery.body, {headers.FAN_IN: None}))


def _send_without_set_checks(real: Any, self: Outbox, delivery: Delivery) -> Receipt:
    if isinstance(decode_message(delivery.body), SetDue):
        return _resolved(delivery.kind)
    return real(self, delivery)  # type: ignore[no-any-return]


def _is_reported_unless_canceled(real: Any, envelope: Envelope) -> bool:
    return bool(real(envelope)) and not (envelope.status is not None and envelope.status.phase == "canceled")


# --- helpers -----------------------------------------------------------------------------------------------------------


def _resolved(kind: str) -> Receipt:
    """The receipt of a message or report that was accepted."""
    receipt = Receipt(kind)
    receipt.resolve()
    return receipt


def _change_headers(body: bytes, changes: dict[str, msgspec.Raw | None]) -> bytes:
    """An encoded envelope with other headers; None removes a header."""
    envelope = decode(body)
    new_headers = {name: value for name, value in (envelope.headers | changes).items() if value is not None}
    return encode(msgspec.structs.replace(envelope, headers=new_headers))


def _own_limit(hop: Hop) -> timedelta:
    return timedelta(seconds=hop.spec.timeout)


MISTAKES = (
    Mistake("acknowledges after a failed send", substitute(Receipt, "problem", property(lambda _: None)), seed=4),
    Mistake(
        "ignores the Failed entries of a response",
        wrap(SqsClient, "send_message_batch", _answer_without_failures),
        seed=10,
    ),
    Mistake(
        "acknowledges a message whose processing raised", wrap(BatchProcessor, "process", _process_ignoring_errors)
    ),
    Mistake(
        "does not isolate messages that crash the process",
        _process_with_receive_count(lambda _: 1),
        "poison",
        seed=0,
    ),
    Mistake(
        "retries crashing messages in the same order",
        _process_with_receive_count(_same_count_after_first),
        "poison",
        seed=0,
    ),
    Mistake("loses required reports", wrap(RequiredReports, "report", _report_resolved), "errors", seed=1),
    Mistake("does not register tasks", wrap(preflight, "register", lambda *_: {})),
    Mistake(
        "drops the neighbors of a refused report",
        wrap(report_queues, "read_message", _read_all_or_nothing),
        "reports",
        seed=5,
    ),
    Mistake("acknowledges reports that are not written", wrap(Writes, "add", _add_unawaited), "errors", seed=4),
    Mistake("fails overdue tasks while ends wait", substitute(EndsQueue, "delay", lambda _: "none"), "reports"),
    Mistake("passes the reference of a claim check to handlers", wrap(ClaimCheck, "redeem", _redeem_keeping_reference)),
    Mistake(
        "does not save buffered frames",
        (
            substitute(FrameBuffer, "load", lambda *_: None),
            substitute(FrameBuffer, "save", lambda _, __, frames: list(frames)),
        ),
    ),
    Mistake(
        "marks a hop as completed before its handler runs", wrap(CompletedHops, "is_completed", _mark_at_query), seed=6
    ),
    Mistake("repeats completed hops", substitute(CompletedHops, "is_completed", lambda *_: False), seed=6),
    Mistake("claims an end unconditionally", wrap(MemoryDynamo, "update_item", _claim_unconditionally), seed=0),
    Mistake(
        "reports failures in x-sump without claiming them",
        substitute(sump, "claim_end", _skip_claim),
        "repeats",
        seed=9,
    ),
    Mistake(
        "forgets the ends that are refused",
        substitute(ends.CrewEnd, "keep_refused", lambda *_: []),
        "repeats",
        seed=4,
    ),
    Mistake(
        "reports ends with the time of their report",
        substitute(ending, "report_time", lambda _, now: now),
        "outages",
        seed=77,
    ),
    Mistake("overwrites the object of an end", substitute(EndObjects, "write", _write_unconditionally), "repeats"),
    Mistake(
        "acknowledges without a written result",
        (wrap(Results, "write", _write_ignoring_errors), wrap(EndObjects, "write", _write_end_ignoring_errors)),
        seed=54,
    ),
    Mistake("writes records unconditionally", wrap(MemoryDynamo, "put_item", _put_record_unconditionally), seed=1),
    Mistake("drops the deadline at routing", wrap(status, "routed", _without_field("deadline_at")), seed=8),
    Mistake("drops created_at at the start of a hop", wrap(status, "started", _without_field("created_at"))),
    Mistake("does not count attempts", wrap(status, "retrying", _retry_without_count)),
    Mistake("shifts twice", wrap(Route, "shifted", _shift_twice)),
    Mistake("retries without the payload", wrap(outcome, "failed", _retry_without_payload), "fault-free", seed=1),
    Mistake("retries after frame 0 was sent", wrap(outcome, "failed", _fail_ignoring_frames_sent), seed=4),
    Mistake(
        "keeps the header of the first attempt after the hop", wrap(outcome, "frame", _frame_with_first_attempt), seed=1
    ),
    Mistake(
        "gives children ids that differ in each run",
        Patch(ids, "child_id", lambda _: _numbered_child_id(count())),
        seed=10,
    ),
    Mistake("drops the root of children", wrap(outcome, "frame", _frame_without_root), seed=5),
    Mistake("ignores cancellation", wrap(arrival, "start", _start_ignoring_state), seed=3),
    Mistake(
        "lets handlers run after the deadline",
        substitute(Hop, "time_limit", lambda hop, _: (_own_limit(hop), False)),
        seed=26,
    ),
    Mistake("ignores max_hops", wrap(arrival, "start", _start_ignoring_max_hops)),
    Mistake(
        "merges a set more than once",
        (
            wrap(FanInSets, "save_decision", _always_save_decision),
            substitute(FanInSets, "take_lease", lambda *_, **__: True),
        ),
        "mixed",
        seed=4,
    ),
    Mistake("counts a duplicate as another slice", wrap(FanInSets, "count", _count_duplicates), seed=26),
    Mistake(
        "counts slices that are not stored",
        wrap(SliceStore, "store", _count_slices_that_are_not_stored),
        "errors",
        seed=10,
    ),
    Mistake(
        "acknowledges slices whose count failed", wrap(SliceCounter, "add", _acknowledge_uncounted), "errors", seed=5
    ),
    Mistake("merges slices in another order", wrap(set_coordinator, "origin_delivery", _swap_slices), seed=5),
    Mistake("drops the header of the enclosing set", wrap(set_coordinator, "origin_delivery", _leave_all_sets), seed=5),
    Mistake("sends no messages about ended slices", substitute(ends, "slice_end_deliveries", lambda *_: ()), seed=5),
    Mistake("stores slices without claiming their end", substitute(fan_in, "claim_end", _skip_claim), "fault-free"),
    Mistake(
        "checks no waiting sets",
        (wrap(Outbox, "send", _send_without_set_checks), substitute(FanInSweep, "sweep", lambda *_: None)),
        "errors",
        seed=63,
    ),
    Mistake("does not report dead letters", substitute(DeadLetterWatch, "scan", lambda *_: None), seed=86),
    Mistake(
        "does not report canceled children",
        wrap(ending, "is_reported", _is_reported_unless_canceled),
        "fault-free",
        seed=11,
    ),
    Mistake("reports stealth envelopes", substitute(Envelope, "is_stealth", property(lambda _: False))),
)
