"""Planted mistakes about delivery: acknowledgements, batches, reports and repeated hops."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from asya.function.aws.claim_check import ClaimCheck
from asya.function.aws.receipt import Receipt
from asya.function.lambdas.batch import BatchProcessor, Record
from asya.gateway.aws.ends_queue import EndsQueue
from asya.gateway.lambdas import report_queues
from asya.gateway.lambdas.report_queues import Writes
from asya.protocol import headers
from asya.protocol.envelope import Envelope
from asya.sidecar.aws.hop_records import CompletedHops, FrameBuffer
from asya.sidecar.lambdas import intake
from asya.tasks.reporting.aws.report_sender import RequiredReports
from asya.testing.services.queues import SqsClient
from tests.simulation.mistake import Mistake, Patch, substitute, wrap
from tests.simulation.planted.replacements import resolved


def _answer_without_failures(real: Any, self: SqsClient, **request: Any) -> dict[str, Any]:
    real(self, **request)
    return {"Successful": [{"Id": entry["Id"]} for entry in request["Entries"]]}


def _process_ignoring_errors(real: Any, self: Any, items: Any, handle: Any, *args: Any, **more: Any) -> Any:
    def handle_quietly(record: Any) -> list[Receipt]:
        try:
            return handle(record)  # type: ignore[no-any-return]
        except Exception:  # noqa: BLE001 - the mistake
            return []

    return real(self, items, handle_quietly, *args, **more)


def _process_with_receive_count(choose: Callable[[Sequence[Record]], int]) -> Patch:
    """The batch processor sees one receive count for all records of a batch; handlers see the real ones."""

    def process(real: Any, self: Any, items: Any, handle: Any, accepted: Any = None, kept: Any = None) -> Any:
        originals = {record.receipt_handle: record for record in items}
        count = choose(items)
        changed = [
            msgspec.structs.replace(record, arrival=msgspec.structs.replace(record.arrival, receive_count=count))
            for record in items
        ]
        return real(
            self,
            changed,
            lambda record: handle(originals[record.receipt_handle]),
            accepted and (lambda record: accepted(originals[record.receipt_handle])),
            kept and (lambda record, *args: kept(originals[record.receipt_handle], *args)),
        )

    return wrap(BatchProcessor, "process", process)


def _same_count_after_first(items: Sequence[Record]) -> int:
    """A count that isolates the records, but never reverses their order."""
    return 3 if any(record.arrival.receive_count > 1 for record in items) else 1


def _report_resolved(real: Any, self: RequiredReports, *args: Any) -> Receipt:
    real(self, *args)
    return resolved("report")


def _read_all_or_nothing(real: Any, *args: Any, **more: Any) -> Any:
    message = real(*args, **more)
    if message.refused:
        message.reports = []
    return message


def _add_unawaited(real: Any, self: Writes, *args: Any) -> Receipt:
    real(self, *args)
    return resolved("task")


def _look_at_the_first(real: Any, self: Writes, reports: Sequence[Any], *args: Any) -> Receipt:
    real(self, reports[1:], *args)
    receipt: Receipt = real(self, reports[:1], *args)
    return receipt


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


MISTAKES = (
    Mistake("acknowledges after a failed send", substitute(Receipt, "problem", property(lambda _: None)), seed=4),
    Mistake(
        "ignores the Failed entries of a response",
        wrap(SqsClient, "send_message_batch", _answer_without_failures),
        seed=10,
    ),
    Mistake(
        "acknowledges a message whose processing raised",
        wrap(BatchProcessor, "process", _process_ignoring_errors),
        seed=4,
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
    Mistake("loses required reports", wrap(RequiredReports, "report", _report_resolved), "errors", seed=4),
    Mistake("reads the states of a batch only once", substitute(intake, "FRESH_SECONDS", float("inf")), seed=15),
    Mistake("does not register tasks", wrap(intake, "register", lambda *_: {}), seed=1),
    Mistake(
        "drops the neighbors of a refused report",
        wrap(report_queues, "read_message", _read_all_or_nothing),
        "reports",
        seed=2,
    ),
    Mistake(
        "acknowledges a message of reports once it has read the first one",
        wrap(Writes, "add", _look_at_the_first),
        "errors",
        seed=319,
    ),
    Mistake("acknowledges reports that are not written", wrap(Writes, "add", _add_unawaited), "errors", seed=3),
    Mistake("fails overdue tasks while ends wait", substitute(EndsQueue, "delay", lambda _: "none"), "reports"),
    Mistake(
        "passes the reference of a claim check to handlers",
        wrap(ClaimCheck, "redeem", _redeem_keeping_reference),
        seed=2,
    ),
    Mistake(
        "does not save buffered frames",
        (
            substitute(FrameBuffer, "load", lambda *_, **__: None),
            substitute(FrameBuffer, "save", lambda _, __, frames: list(frames)),
        ),
        seed=5,
    ),
    Mistake(
        "marks a hop as completed before its handler runs", wrap(CompletedHops, "is_completed", _mark_at_query), seed=12
    ),
    Mistake("repeats completed hops", substitute(CompletedHops, "is_completed", lambda *_: False), seed=44),
)
