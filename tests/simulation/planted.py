"""Mistakes that one could make in the mesh, planted one at a time: a simulation that does not find them shows nothing."""

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
from tests.simulation.planting import Planted, around, instead

# --- delivery ----------------------------------------------------------------------------------------------------------


def _send_group_ignoring_failed(self: Any, actor: str, group: list[Any]) -> None:
    entries = [{"Id": str(number), "MessageBody": item.delivery.body.decode()} for number, item in enumerate(group)]
    self._sqs.send_message_batch(QueueUrl=self._queue_url(actor), Entries=entries)
    for item in group:
        item.receipt.resolve()


def _work_in_order(self: Any, items: Any, handle: Any, accepted: Any = None) -> Any:
    kept = self._process_records(items, handle, accepted)
    self._shorten_visibility(kept)
    return {"batchItemFailures": [{"itemIdentifier": record.message_id} for record in kept]}


def _acks_what_raised(real: Any, self: Any, items: Any, handle: Any, accepted: Any = None) -> Any:
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


def _redeemed_with_reference(real: Any, self: Any, body: bytes) -> bytes:
    redeemed: bytes = real(self, body)
    if redeemed is body:
        return body
    reference = decode(body).headers[headers.PAYLOAD_REF]
    envelope = decode(redeemed)
    return encode(msgspec.structs.replace(envelope, headers=envelope.headers | {headers.PAYLOAD_REF: reference}))


@contextmanager
def _frames_not_kept() -> Iterator[None]:
    with (
        mock.patch.object(FrameBuffer, "load", lambda *_: None),
        mock.patch.object(FrameBuffer, "save", lambda _, __, frames: list(frames)),
    ):
        yield


def _marked_when_asked(real: Any, self: Any, hop: Any) -> bool:
    was_done: bool = real(self, hop)
    self.mark(hop, epoch_seconds=0)
    return was_done


# --- ends --------------------------------------------------------------------------------------------------------------


def _claimed_always(self: Any, claim: Claim, *, epoch_seconds: float) -> ClaimResult:
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


def _written_or_not(real: Any, self: Results, key: str, *args: Any, **more: Any) -> str:
    try:
        return real(self, key, *args, **more)  # type: ignore[no-any-return]
    except (ClientError, BotoCoreError):
        return self.uri(key)


def _taken(_: Any, envelope: Envelope) -> ClaimResult:
    return ClaimResult("taken", Claim(envelope.id, envelope.generation, "failed", ""))


def _record_put_blindly(self: Any, record: Any, replaces: Any, now: Any) -> StoredRecord:
    from asya.tasks.aws import items as task_items

    revision = (replaces.revision if replaces else 0) + 1
    item = task_items.record_item(record, revision, int(now.timestamp()) + 10_000)
    self._client.put_item(TableName=self._table, Item=item)
    return StoredRecord(record, revision)


# --- routing -----------------------------------------------------------------------------------------------------------


def _without(name: str) -> Callable[..., Any]:
    """The status that a function makes, without one of its fields."""
    return lambda real, *args, **more: msgspec.structs.replace(real(*args, **more), **{name: None})


def _attempt_kept(real: Any, was: status.Status, **more: Any) -> status.Status:
    counted: status.Status = real(was, **more)
    return msgspec.structs.replace(counted, attempt=was.attempt)


def _shifted_twice(real: Any, self: Route, ahead: Any = None) -> Route:
    once: Route = real(self, ahead)
    twice: Route = real(once)
    return twice if once.next else once


def _retried_without_payload(real: Any, hop: Any, *args: Any) -> Any:
    return real(msgspec.structs.replace(hop, envelope=msgspec.structs.replace(hop.envelope, payload=NULL)), *args)


def _frames_sent_forgotten(real: Any, *args: Any, frames_sent: int = 0, **more: Any) -> Any:
    return real(*args, **more)


def _numbered_child(numbers: "count[int]") -> Callable[..., str]:
    return lambda *_: f"child-{next(numbers)}"


def _rootless(envelope: Envelope, child_id: str) -> Envelope:
    return msgspec.structs.replace(envelope, id=child_id, parent_id=envelope.id)


# --- sets --------------------------------------------------------------------------------------------------------------


@contextmanager
def _decided_always() -> Iterator[None]:
    def save_decision(self: Any, set_id: str, decision: Any, *, lease_from: float | None) -> Any:
        return self._change(set_id, "SET decision = :decision", {":decision": fan_in_items.decision_value(decision)})

    with (
        mock.patch.object(FanInSets, "save_decision", save_decision),
        mock.patch.object(FanInSets, "take_lease", lambda *_, **__: True),
    ):
        yield


def _swapped(real: Any, origin: Any, decision: Any, items: dict[int, Any]) -> Any:
    first, second = items.get(1), items.get(2)
    swapped = items | ({1: second, 2: first} if first is not None and second is not None else {})
    return real(origin, decision, swapped)


@contextmanager
def _sets_asleep() -> Iterator[None]:
    with (
        mock.patch.object(SetCoordinator, "_ensure_check", lambda *_: None),
        mock.patch.object(FanInSweep, "sweep", lambda _: None),
    ):
        yield


def _unless_canceled(real: Any, envelope: Envelope) -> bool:
    return bool(real(envelope)) and not (envelope.status is not None and envelope.status.phase == "canceled")


PLANTED = (
    Planted("acks although a send was refused", instead(Receipt, "problem", property(lambda _: None)), seed=10),
    Planted("ignores the Failed entries of an answer", instead(Outbox, "_send_group", _send_group_ignoring_failed)),
    Planted("acks what raised", around(BatchProcessor, "process", _acks_what_raised)),
    Planted("does not put suspects last", instead(BatchProcessor, "process", _work_in_order), "poison", seed=9),
    Planted(
        "keeps suspects in the same order",
        instead(batch, "_isolation_order", lambda items: sorted(items, key=_id)),
        "poison",
        seed=19,
    ),
    Planted("loses must-arrive reports", instead(RequiredReports, "flush", _flush_losing_reports)),
    Planted("goes on although the task is not registered", around(preflight, "register", lambda *_: set())),
    Planted("shows a claim check's reference to handlers", around(ClaimCheck, "redeem", _redeemed_with_reference)),
    Planted("does not keep buffered frames", _frames_not_kept),
    Planted("marks a hop as done before it is", around(CompletedHops, "is_completed", _marked_when_asked)),
    Planted("runs finished hops again", instead(CompletedHops, "is_completed", lambda *_: False)),
    Planted("claims an end unconditionally", instead(EndClaims, "take", _claimed_always), seed=9),
    Planted("reports failures in x-sump without claiming them", instead(sump, "claim_end", _taken), "repeats", seed=21),
    Planted("acks what was not written", around(Results, "write", _written_or_not), seed=14),
    Planted("writes records unconditionally", instead(DynamoTaskStore, "put_record", _record_put_blindly)),
    Planted("drops the deadline at routing", around(status, "routed", _without("deadline_at"))),
    Planted("drops created_at at a start", around(status, "started", _without("created_at"))),
    Planted("does not count attempts", around(status, "retrying", _attempt_kept)),
    Planted("shifts twice", around(Route, "shifted", _shifted_twice)),
    Planted("retries without the payload", around(outcome, "_retry", _retried_without_payload), "calm"),
    Planted("retries after a frame has left", around(outcome, "failed", _frames_sent_forgotten), seed=49),
    Planted("lets the first attempt's time pass on", instead(outcome, "_ENDS_WITH_THE_HOP", ())),
    Planted("gives children ids of chance", lambda: mock.patch.object(ids, "child_id", _numbered_child(count()))),
    Planted("forgets the root of children", instead(outcome, "_child", _rootless)),
    Planted("does not heed cancellation", instead(arrival, "_check_task_state", lambda *_: None), seed=13),
    Planted(
        "lets handlers run beyond the deadline", instead(Hop, "time_limit", lambda hop, _: (_own_limit(hop), False))
    ),
    Planted("does not heed max_hops", around(arrival, "_check_route", lambda real, hop, now: None)),
    Planted("puts a set together more than once", _decided_always, "storm", seed=22),
    Planted("merges in another order", around(set_coordinator, "origin_delivery", _swapped)),
    Planted("forgets the enclosing set", instead(fan_in_routing, "_outer", lambda _: None)),
    Planted("does not tell sets of slices that ended", instead(sink, "slice_end_deliveries", lambda *_: ())),
    Planted("takes slices without claiming their end", instead(fan_in, "claim_end", _taken), "repeats", seed=9),
    Planted("does not wake sets that wait", _sets_asleep, "calm"),
    Planted("says nothing about dead letters", instead(DeadLetterWatch, "_report_batch", lambda *_: None), seed=27),
    Planted("does not report canceled children", around(ending, "is_reported", _unless_canceled), "calm"),
    Planted("reports on stealth envelopes", instead(Envelope, "is_stealth", property(lambda _: False))),
)


def _own_limit(hop: Hop) -> timedelta:
    return timedelta(seconds=hop.spec.timeout)


def _id(record: Any) -> str:
    return str(record.message_id)
