"""Planted mistakes: patches of the mesh that the simulation must detect, one at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Any
from unittest import mock

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from asya.crew import ending
from asya.crew.aws.end_claims import Claim, ClaimResult, EndClaims
from asya.crew.aws.results import Results
from asya.crew.lambdas import sink, sump
from asya.dead_letters.lambdas.dlq import DeadLetterWatch
from asya.fan_in import sets as fan_in_routing
from asya.fan_in.aws import items as fan_in_items
from asya.fan_in.aws.sets import FanInSets
from asya.fan_in.lambdas import fan_in, set_coordinator
from asya.fan_in.lambdas.set_coordinator import SetCoordinator
from asya.fan_in.lambdas.sweep import FanInSweep
from asya.messaging.aws.claim_check import ClaimCheck
from asya.messaging.aws.outbox import Outbox
from asya.messaging.aws.receipt import Receipt
from asya.messaging.hop import Hop
from asya.messaging.lambdas import batch
from asya.messaging.lambdas.batch import BatchProcessor
from asya.protocol import headers, ids, status
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import NULL, Envelope
from asya.protocol.route import Route
from asya.reporting.aws.gateway_client import GatewayError
from asya.reporting.aws.required_reports import RequiredReports
from asya.sidecar import arrival, outcome
from asya.sidecar.aws.deduplication import CompletedHops
from asya.sidecar.aws.frame_buffer import FrameBuffer
from asya.sidecar.lambdas import preflight
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.task_store import StoredRecord
from tests.simulation.mistake import Mistake, substitute, wrap

# --- delivery ----------------------------------------------------------------------------------------------------------


def _send_group_ignoring_failed(self: Any, actor: str, group: list[Any]) -> None:
    entries = [{"Id": str(number), "MessageBody": item.delivery.body.decode()} for number, item in enumerate(group)]
    self._sqs.send_message_batch(QueueUrl=self._queue_url(actor), Entries=entries)
    for item in group:
        item.receipt.resolve()


def _process_in_order(self: Any, items: Any, handle: Any, accepted: Any = None) -> Any:
    failures = self._process_records(items, handle, accepted)
    self._shorten_visibility(failures)
    return {"batchItemFailures": [{"itemIdentifier": record.message_id} for record in failures]}


def _process_ignoring_errors(real: Any, self: Any, items: Any, handle: Any, accepted: Any = None) -> Any:
    def handle_quietly(record: Any) -> list[Receipt]:
        try:
            return handle(record)  # type: ignore[no-any-return]
        except Exception:  # noqa: BLE001 - the mistake
            return []

    return real(self, items, handle_quietly, accepted)


def _flush_losing_reports(self: Any) -> None:
    waiting = dict(self._waiting)
    self._waiting.clear()
    for base_url, pairs in waiting.items():
        with suppress(GatewayError):
            self._client.report(base_url, [event for event, _ in pairs])
        for _, receipt in pairs:
            receipt.resolve()


def _redeem_keeping_reference(real: Any, self: Any, body: bytes) -> bytes:
    redeemed: bytes = real(self, body)
    if redeemed is body:
        return body
    reference = decode(body).headers[headers.PAYLOAD_REF]
    envelope = decode(redeemed)
    return encode(msgspec.structs.replace(envelope, headers=envelope.headers | {headers.PAYLOAD_REF: reference}))


@contextmanager
def _without_frame_buffer() -> Iterator[None]:
    with (
        mock.patch.object(FrameBuffer, "load", lambda *_: None),
        mock.patch.object(FrameBuffer, "save", lambda _, __, frames: list(frames)),
    ):
        yield


def _mark_at_query(real: Any, self: Any, hop: Any) -> bool:
    was_done: bool = real(self, hop)
    self.mark(hop, epoch_seconds=0)
    return was_done


# --- ends --------------------------------------------------------------------------------------------------------------


def _claim_unconditionally(self: Any, claim: Claim, *, epoch_seconds: float) -> ClaimResult:
    self._dynamodb.put_item(
        TableName=self._table,
        Item={
            "pk": {"S": claim.envelope_id},
            "sk": {"S": "claim"},
            "key": {"S": claim.key},
            "generation": {"N": str(claim.generation)},
            "phase": {"S": claim.phase},
            "replaced_key": {"S": ""},
            "expires_at": {"N": str(int(epoch_seconds))},
        },
    )
    return ClaimResult("taken", claim)


def _write_ignoring_errors(real: Any, self: Results, key: str, *args: Any, **more: Any) -> str:
    try:
        return real(self, key, *args, **more)  # type: ignore[no-any-return]
    except (ClientError, BotoCoreError):
        return self.uri(key)


def _skip_claim(_: Any, envelope: Envelope) -> ClaimResult:
    return ClaimResult("taken", Claim(envelope.id, envelope.generation, "failed", ""))


def _put_record_unconditionally(self: Any, record: Any, replaces: Any, now: Any) -> StoredRecord:
    from asya.tasks.aws import items as task_items

    revision = (replaces.revision if replaces else 0) + 1
    item = task_items.record_item(record, revision, int(now.timestamp()) + 10_000)
    self._client.put_item(TableName=self._table, Item=item)
    return StoredRecord(record, revision)


# --- routing -----------------------------------------------------------------------------------------------------------


def _without_field(name: str) -> Callable[..., Any]:
    """The status that a function makes, without one of its fields."""
    return lambda real, *args, **more: msgspec.structs.replace(real(*args, **more), **{name: None})


def _retry_without_count(real: Any, was: status.Status, **more: Any) -> status.Status:
    counted: status.Status = real(was, **more)
    return msgspec.structs.replace(counted, attempt=was.attempt)


def _shift_twice(real: Any, self: Route, ahead: Any = None) -> Route:
    once: Route = real(self, ahead)
    twice: Route = real(once)
    return twice if once.next else once


def _retry_without_payload(real: Any, hop: Any, *args: Any) -> Any:
    return real(msgspec.structs.replace(hop, envelope=msgspec.structs.replace(hop.envelope, payload=NULL)), *args)


def _fail_ignoring_frames_sent(real: Any, *args: Any, frames_sent: int = 0, **more: Any) -> Any:
    return real(*args, **more)


def _numbered_child_id(numbers: "count[int]") -> Callable[..., str]:
    return lambda *_: f"child-{next(numbers)}"


def _child_without_root(envelope: Envelope, child_id: str) -> Envelope:
    return msgspec.structs.replace(envelope, id=child_id, parent_id=envelope.id)


# --- sets --------------------------------------------------------------------------------------------------------------


@contextmanager
def _decide_unconditionally() -> Iterator[None]:
    def save_decision(self: Any, set_id: str, decision: Any, *, lease_from: float | None) -> Any:
        return self._change(set_id, "SET decision = :decision", {":decision": fan_in_items.decision_value(decision)})

    with (
        mock.patch.object(FanInSets, "save_decision", save_decision),
        mock.patch.object(FanInSets, "take_lease", lambda *_, **__: True),
    ):
        yield


def _swap_slices(real: Any, origin: Any, decision: Any, items: dict[int, Any]) -> Any:
    first, second = items.get(1), items.get(2)
    swapped = items | ({1: second, 2: first} if first is not None and second is not None else {})
    return real(origin, decision, swapped)


@contextmanager
def _without_set_checks() -> Iterator[None]:
    with (
        mock.patch.object(SetCoordinator, "_ensure_check", lambda *_: None),
        mock.patch.object(FanInSweep, "sweep", lambda _: None),
    ):
        yield


def _is_reported_unless_canceled(real: Any, envelope: Envelope) -> bool:
    return bool(real(envelope)) and not (envelope.status is not None and envelope.status.phase == "canceled")


MISTAKES = (
    Mistake("acknowledges after a failed send", substitute(Receipt, "problem", property(lambda _: None)), seed=10),
    Mistake("ignores the Failed entries of a response", substitute(Outbox, "_send_group", _send_group_ignoring_failed)),
    Mistake(
        "acknowledges a message whose processing raised", wrap(BatchProcessor, "process", _process_ignoring_errors)
    ),
    Mistake(
        "does not isolate messages that crash the process",
        substitute(BatchProcessor, "process", _process_in_order),
        "poison",
        seed=9,
    ),
    Mistake(
        "retries crashing messages in the same order",
        substitute(batch, "_isolation_order", lambda items: sorted(items, key=_message_id)),
        "poison",
        seed=19,
    ),
    Mistake("loses required reports", substitute(RequiredReports, "flush", _flush_losing_reports)),
    Mistake("continues without a registered task", wrap(preflight, "register", lambda *_: set())),
    Mistake("passes the reference of a claim check to handlers", wrap(ClaimCheck, "redeem", _redeem_keeping_reference)),
    Mistake("does not save buffered frames", _without_frame_buffer),
    Mistake("marks a hop as completed before its handler runs", wrap(CompletedHops, "is_completed", _mark_at_query)),
    Mistake("repeats completed hops", substitute(CompletedHops, "is_completed", lambda *_: False)),
    Mistake("claims an end unconditionally", substitute(EndClaims, "take", _claim_unconditionally), seed=9),
    Mistake(
        "reports failures in x-sump without claiming them",
        substitute(sump, "claim_end", _skip_claim),
        "repeats",
        seed=21,
    ),
    Mistake("acknowledges without a written result", wrap(Results, "write", _write_ignoring_errors), seed=14),
    Mistake("writes records unconditionally", substitute(DynamoTaskStore, "put_record", _put_record_unconditionally)),
    Mistake("drops the deadline at routing", wrap(status, "routed", _without_field("deadline_at"))),
    Mistake("drops created_at at the start of a hop", wrap(status, "started", _without_field("created_at"))),
    Mistake("does not count attempts", wrap(status, "retrying", _retry_without_count)),
    Mistake("shifts twice", wrap(Route, "shifted", _shift_twice)),
    Mistake("retries without the payload", wrap(outcome, "_retry", _retry_without_payload), "calm"),
    Mistake("retries after frame 0 was sent", wrap(outcome, "failed", _fail_ignoring_frames_sent), seed=49),
    Mistake("keeps the header of the first attempt after the hop", substitute(outcome, "_ENDS_WITH_THE_HOP", ())),
    Mistake(
        "gives children ids that differ in each run",
        lambda: mock.patch.object(ids, "child_id", _numbered_child_id(count())),
    ),
    Mistake("drops the root of children", substitute(outcome, "_child", _child_without_root)),
    Mistake("ignores cancellation", substitute(arrival, "_check_task_state", lambda *_: None), seed=13),
    Mistake(
        "lets handlers run after the deadline", substitute(Hop, "time_limit", lambda hop, _: (_own_limit(hop), False))
    ),
    Mistake("ignores max_hops", wrap(arrival, "_check_route", lambda real, hop, now: None)),
    Mistake("merges a set more than once", _decide_unconditionally, "storm", seed=22),
    Mistake("merges slices in another order", wrap(set_coordinator, "origin_delivery", _swap_slices)),
    Mistake("drops the header of the enclosing set", substitute(fan_in_routing, "_outer", lambda _: None)),
    Mistake("sends no messages about ended slices", substitute(sink, "slice_end_deliveries", lambda *_: ())),
    Mistake(
        "stores slices without claiming their end", substitute(fan_in, "claim_end", _skip_claim), "repeats", seed=9
    ),
    Mistake("does not check waiting sets", _without_set_checks, "calm"),
    Mistake("does not report dead letters", substitute(DeadLetterWatch, "_report_batch", lambda *_: None), seed=27),
    Mistake("does not report canceled children", wrap(ending, "is_reported", _is_reported_unless_canceled), "calm"),
    Mistake("reports stealth envelopes", substitute(Envelope, "is_stealth", property(lambda _: False))),
)


def _own_limit(hop: Hop) -> timedelta:
    return timedelta(seconds=hop.spec.timeout)


def _message_id(record: Any) -> str:
    return str(record.message_id)
