"""An SQS batch in, the messages to keep out: acknowledgement, and what one bad neighbour may not do (`protocol §4`)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.messaging.aws.receipt import Outlet, Receipt
from asya.messaging.aws.telemetry import Telemetry
from asya.messaging.hop import Arrival
from asya.protocol.times import from_epoch_milliseconds

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# A deliberate nack is offered again soon: a visibility sized for a running handler would delay recovery for minutes. The pause
# doubles with each receive, so that five receives outlast a short outage.
NACK_SECONDS = 5
MAX_NACK_SECONDS = 80

Answer = dict[str, list[dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Record:
    """One message of a batch, as Lambda hands it over."""

    arrival: Arrival
    receipt_handle: str

    @property
    def message_id(self) -> str:
        """SQS's id of the message."""
        return self.arrival.message_id


def records(event: Mapping[str, Any]) -> list[Record]:
    """The messages of a Lambda SQS event."""
    return [_record(item) for item in event["Records"]]


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
    )
    return Record(arrival, item["receiptHandle"])


@dataclass(frozen=True, slots=True)
class BatchProcessor:
    """Works through the records of an event, one after the other, and tells Lambda which to keep.

    A record is done once everything it caused has been accepted by where it goes.

    Attributes:
        queue_url: of the queue that the records come from.
        outlets: where handlers hand over what their tickets stand for.
    """

    sqs: "SQSClient"
    queue_url: str
    outlets: tuple[Outlet, ...]
    telemetry: Telemetry

    def with_outlet(self, outlet: Outlet) -> "BatchProcessor":
        """The same with one more outlet, which comes last."""
        return replace(self, outlets=(*self.outlets, outlet))

    def process(
        self,
        items: Sequence[Record],
        handle: Callable[[Record], list[Receipt]],
        accepted: Callable[[Record], None] | None = None,
    ) -> Answer:
        """Handle each record; an error that nobody foresaw keeps its record and lets the others go on.

        When any record was received before, it may be the one that ends the process: the most-received go last, and each is
        deleted as it finishes, so that it takes nothing along. Those received equally often change places each time.

        Args:
            accepted: called for each record whose tickets were all accepted, before it is acked.
        """
        suspect = any(record.arrival.receive_count > 1 for record in items)
        kept: list[Record] = []
        if suspect:
            for record in _careful_order(items):
                failed = self._failed([record], handle, accepted)
                kept += failed
                if not failed:
                    self._delete(record)
        else:
            kept += self._failed(items, handle, accepted)
        self._offer_again_soon(kept)
        return {"batchItemFailures": [{"itemIdentifier": record.message_id} for record in kept]}

    def _failed(
        self,
        items: Sequence[Record],
        handle: Callable[[Record], list[Receipt]],
        accepted: Callable[[Record], None] | None,
    ) -> list[Record]:
        """Handle these records and see everything out that they caused; those that have to come again."""
        failed: list[Record] = []
        receipts: list[tuple[Record, list[Receipt]]] = []
        for record in items:
            try:
                receipts.append((record, handle(record)))
            except Exception as error:  # noqa: BLE001 - whatever it is, it may not take the rest of the batch along
                self._note(record, error)
                failed.append(record)
        for outlet in self.outlets:
            outlet.flush()
        for record, some in receipts:
            problems = [receipt.problem for receipt in some]
            for receipt, problem in zip(some, problems, strict=True):
                if problem is None:
                    self.telemetry.count("Sent", by=("kind", receipt.kind))
            problem = next((problem for problem in problems if problem is not None), None)
            if problem is not None:
                self._note(record, problem)
                failed.append(record)
            elif accepted is not None:
                accepted(record)
        return failed

    def _delete(self, record: Record) -> None:
        try:
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=record.receipt_handle)
        except (ClientError, BotoCoreError) as error:
            # Lambda deletes it at the end of the batch; only if the process dies before that is it done once more.
            self.telemetry.log.warning("could not delete a finished message early", exc_info=error)

    def _note(self, record: Record, error: Exception) -> None:
        """Nack: the message stays on the queue and comes again; in the end it lies in the DLQ."""
        self.telemetry.log.error(
            "message kept on the queue",
            exc_info=error,
            message_id=record.message_id,
            receive_count=record.arrival.receive_count,
        )

    def _offer_again_soon(self, kept: list[Record]) -> None:
        for group in _tens(kept):
            try:
                self.sqs.change_message_visibility_batch(
                    QueueUrl=self.queue_url,
                    Entries=[
                        {
                            "Id": str(number),
                            "ReceiptHandle": record.receipt_handle,
                            "VisibilityTimeout": _pause(record.arrival.receive_count),
                        }
                        for number, record in enumerate(group)
                    ],
                )
            except (ClientError, BotoCoreError) as error:
                # They are kept all the same, and come again when the queue's own visibility ends.
                self.telemetry.log.warning("could not shorten the visibility of kept messages", exc_info=error)


def _careful_order(items: Sequence[Record]) -> Iterator[Record]:
    """The least-received first; among equals one way round after an odd number of receives, the other way after an even one.

    What comes in one batch tends to come together again: a neighbour that stood behind the one that ends the process stands before
    it the next time.
    """
    for count in sorted({record.arrival.receive_count for record in items}):
        equals = [record for record in items if record.arrival.receive_count == count]
        yield from sorted(equals, key=lambda record: record.message_id, reverse=count % 2 == 0)


def _pause(receive_count: int) -> int:
    """Seconds until a kept message is offered again."""
    return min(NACK_SECONDS << min(receive_count - 1, 10), MAX_NACK_SECONDS)


def _tens(items: Sequence[Record]) -> Iterator[Sequence[Record]]:
    for start in range(0, len(items), 10):
        yield items[start : start + 10]
