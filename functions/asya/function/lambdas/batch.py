"""Processes an SQS batch, reports failed messages, and isolates those that crash the process (`protocol §4`)."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.function.aws.outages import is_outage
from asya.function.aws.receipt import Outlet, Receipt
from asya.function.aws.telemetry import Telemetry
from asya.function.hop import FIRST_SENDER, Arrival
from asya.function.lambdas.starts import Starts
from asya.function.nack import nack_seconds
from asya.protocol.codec import ParseError
from asya.protocol.times import from_epoch_milliseconds

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


def release_locals(error: BaseException | None) -> None:
    """Clear the local variables of the finished functions in the traceback of an error and of its causes.

    They may hold large envelopes. The log still shows the lines.
    """
    done: set[int] = set()
    while error is not None and id(error) not in done:
        done.add(id(error))
        trace = error.__traceback__
        while trace is not None:
            _clear_with_callers(trace.tb_frame)
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def _clear_with_callers(frame: FrameType | None) -> None:
    """Clear a frame and its callers up to the first one that still runs."""
    while frame is not None:
        try:
            frame.clear()
        except RuntimeError:  # it still runs
            return
        frame = frame.f_back


BatchResponse = dict[str, list[dict[str, str]]]
_Failure = tuple["Record", Exception]


class Record(msgspec.Struct, frozen=True):
    """One message of an SQS event.

    Attributes:
        problem: why nobody can judge its sender now, so that it stays on its queue.
        group: its message group (the tenant in a fair queue); None without one.
    """

    arrival: Arrival
    receipt_handle: str
    problem: Exception | None = None
    group: str | None = None

    @property
    def message_id(self) -> str:
        """The SQS message id."""
        return self.arrival.message_id

    def raise_problem(self) -> None:
        """Raise the problem, if there is one."""
        if self.problem is not None:
            raise self.problem


def records(event: Mapping[str, Any]) -> list[Record]:
    """The messages of a Lambda SQS event, each once.

    SQS may put two copies of one message into an event. Lambda knows them by one id, so they have one outcome: a copy that
    was dropped as a duplicate would acknowledge the other one, which failed.
    """
    latest: dict[str, Record] = {}
    for record in map(_record, event["Records"]):
        earlier = latest.get(record.message_id)
        if earlier is None or earlier.arrival.receive_count <= record.arrival.receive_count:
            latest[record.message_id] = record
    return list(latest.values())


def _record(item: Mapping[str, Any]) -> Record:
    attributes = item["attributes"]
    body = item["body"].encode("utf-8", "surrogatepass")
    arrival = Arrival(
        body=body,
        message_id=item["messageId"],
        sent_at=from_epoch_milliseconds(int(attributes["SentTimestamp"])),
        receive_count=int(attributes["ApproximateReceiveCount"]),
        sender=attributes.get("SenderId", "").partition(":")[0],
        size=len(body),
        first_sender=_first_sender(item),
    )
    return Record(arrival, item["receiptHandle"], group=attributes.get("MessageGroupId"))


def _first_sender(item: Mapping[str, Any]) -> str:
    given = item.get("messageAttributes", {}).get(FIRST_SENDER, {}).get("stringValue") or ""
    return str(given).partition(":")[0]


class BatchProcessor(msgspec.Struct, frozen=True):
    """Processes the records of an event one by one, and reports partial batch failures to Lambda.

    A record succeeds once everything that it caused has been accepted.

    Attributes:
        queue_url: the URL of the records' queue.
        outlets: the senders that resolve the receipts of the records.
        starts: counts the starts of each message; None where only the receives count.
        chance: gives random numbers in [0, 1).
        note_outages: notes the outages that this process has seen, and whether one has kept a message of this batch.
        slows_down: whether an outage hides messages for longer than other errors.
    """

    sqs: "SQSClient"
    queue_url: str
    outlets: tuple[Outlet, ...]
    telemetry: Telemetry
    starts: Starts | None = None
    chance: Callable[[], float] = random.random
    note_outages: Callable[[bool], None] = lambda _: None
    slows_down: bool = True

    def with_outlet(self, outlet: Outlet, *, first: bool = False) -> "BatchProcessor":
        """A copy with one more outlet.

        Args:
            first: flush it before the others, which then send what it queues in them; otherwise it is flushed last.
        """
        return replace(self, outlets=(outlet, *self.outlets) if first else (*self.outlets, outlet))

    def process(
        self,
        items: Sequence[Record],
        handle: Callable[[Record], list[Receipt]],
        accepted: Callable[[Record], None] | None = None,
        kept: Callable[[Record, Exception], None] | None = None,
    ) -> BatchResponse:
        """Process each record; an unexpected error keeps its own record only.

        A record that was received before may crash the process. So the least-received records come first, the start of each one
        is marked, and each finished record is deleted at once. Records with equal receive counts change their order with each
        receive.

        Args:
            handle: processes one record and returns the receipts of everything that it caused.
            accepted: called for each record whose receipts were all accepted, before its acknowledgement.
            kept: called for each record that stays on the queue, with the cause.
        """
        redelivered = sum(record.arrival.receive_count > 1 for record in items)
        if redelivered:
            self.telemetry.count("Redelivered", redelivered)
            # One of them may crash the process, and with it the metrics that are not written yet.
            self.telemetry.flush()
        failures: list[_Failure] = []
        if redelivered or (self.starts is not None and self.starts.are_single):
            for record in _isolation_order(items):
                failed = self._process_records([record], handle, accepted)
                failures += failed
                if not failed:
                    self._delete(record)
                elif self.starts is not None and is_outage(failed[0][1]):
                    self.starts.take_back(record)
        else:
            failures += self._process_records(items, handle, accepted)
        self._change_visibility(failures)
        self.note_outages(any(is_outage(error) for _, error in failures))
        if kept is not None:
            for record, error in failures:
                kept(record, error)
        return {"batchItemFailures": [{"itemIdentifier": record.message_id} for record, _ in failures]}

    def _process_records(
        self,
        items: Sequence[Record],
        handle: Callable[[Record], list[Receipt]],
        accepted: Callable[[Record], None] | None,
    ) -> list[_Failure]:
        """Process records, flush the outlets, and return the failed records with their errors.

        A kept error must not keep the envelope of its record alive, which may be large.
        """
        failures: list[_Failure] = []
        receipts: list[tuple[Record, list[Receipt]]] = []
        for record in items:
            try:
                record.raise_problem()
                record_receipts = handle(record) if self.starts is None or self.starts.begin(record) else []
            except Exception as error:  # noqa: BLE001 - no error may affect the rest of the batch
                self._log_nack(record, error)
                release_locals(error)
                failures.append((record, error))
            else:
                for receipt in record_receipts:
                    if receipt.error is not None:
                        release_locals(receipt.error)
                receipts.append((record, record_receipts))
        for outlet in self.outlets:
            outlet.flush()
        for record, record_receipts in receipts:
            problems = [receipt.problem for receipt in record_receipts]
            for receipt, problem in zip(record_receipts, problems, strict=True):
                if problem is None:
                    self.telemetry.count("Sent", by=("kind", receipt.kind))
            problem = next((problem for problem in problems if problem is not None), None)
            if problem is not None:
                self._log_nack(record, problem)
                failures.append((record, problem))
            elif accepted is not None:
                accepted(record)
        return failures

    def _delete(self, record: Record) -> None:
        try:
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=record.receipt_handle)
        except (ClientError, BotoCoreError) as error:
            # Lambda deletes the message at the end of the batch. Only a crash before that repeats the record.
            self.telemetry.log.warning("could not delete a finished message early", exc_info=error)

    def _log_nack(self, record: Record, error: Exception) -> None:
        """Log that the message stays on the queue."""
        self.telemetry.log.error(
            "message kept on the queue",
            exc_info=error,
            message_id=record.message_id,
            envelope_id=_envelope_id(record),
            receive_count=record.arrival.receive_count,
        )

    def _change_visibility(self, failures: list[_Failure]) -> None:
        for group in _groups_of_ten(failures):
            try:
                self.sqs.change_message_visibility_batch(
                    QueueUrl=self.queue_url,
                    Entries=[
                        {
                            "Id": str(number),
                            "ReceiptHandle": record.receipt_handle,
                            "VisibilityTimeout": nack_seconds(
                                record.arrival.receive_count,
                                error,
                                is_outage=self.slows_down and is_outage(error),
                                chance=self.chance(),
                            ),
                        }
                        for number, (record, error) in enumerate(group)
                    ],
                )
            except (ClientError, BotoCoreError) as problem:
                # The messages stay on the queue, and return after the queue's own visibility timeout.
                self.telemetry.log.warning("could not change the visibility of kept messages", exc_info=problem)


def _envelope_id(record: Record) -> str | None:
    """The id of the envelope in a message, for the search for lines about its task; None for a message without one."""
    try:
        return record.arrival.envelope().id
    except ParseError as error:
        return error.envelope_id


def _isolation_order(items: Sequence[Record]) -> Iterator[Record]:
    """The records by receive count; among equals by message id, reversed after an even number of receives.

    The messages of one batch tend to return together. So a record that came after a crashing one comes before it the next
    time.
    """
    for count in sorted({record.arrival.receive_count for record in items}):
        equals = [record for record in items if record.arrival.receive_count == count]
        yield from sorted(equals, key=lambda record: record.message_id, reverse=count % 2 == 0)


def _groups_of_ten(items: Sequence[_Failure]) -> Iterator[Sequence[_Failure]]:
    for start in range(0, len(items), 10):
        yield items[start : start + 10]
