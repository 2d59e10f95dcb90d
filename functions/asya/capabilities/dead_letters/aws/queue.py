"""A dead-letter queue: scanned without loss; only a redrive deletes its message (`protocol §11`, `§12`)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from asya.function.delivery import PROBLEM
from asya.function.hop import Arrival
from asya.function.sqs_limits import BATCH_ENTRIES
from asya.protocol.times import from_epoch_milliseconds

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

# Long polling asks all servers of a queue. Short polling asks some of them and may miss messages.
_WAIT_SECONDS = 1


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message received from a dead-letter queue.

    Attributes:
        group: its message group (the tenant in a fair queue); None without one.
        problem: why a function gave it up, as the message says; None if SQS has delivered it too often.
    """

    arrival: Arrival
    receipt_handle: str
    group: str | None = None
    problem: str | None = None

    @property
    def message_id(self) -> str:
        """SQS's id of the message."""
        return self.arrival.message_id


@dataclass(frozen=True, slots=True)
class MessageCount:
    """The approximate number of messages: visible ones, and ones hidden by a reader's visibility timeout."""

    visible: int
    hidden: int

    @property
    def total(self) -> int:
        """Visible and hidden messages."""
        return self.visible + self.hidden


class DeadLetterQueue:
    """One dead-letter queue.

    A receive hides its messages, so a scan returns each message once. The scan's end releases them; after a crash they become
    visible again by themselves. Receives count, but a dead-letter queue has no redrive policy of its own.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to SQS fails.
    """

    def __init__(self, sqs: "SQSClient", url: str) -> None:
        self._sqs = sqs
        self._url = url

    def count(self) -> MessageCount:
        """The approximate number of messages; SQS may be a minute late."""
        attributes = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["All"])["Attributes"]
        visible, hidden = attributes["ApproximateNumberOfMessages"], attributes["ApproximateNumberOfMessagesNotVisible"]
        return MessageCount(int(visible), int(hidden))

    def scan(
        self, *, hide_seconds: int, may_continue: Callable[[], bool] = lambda: True
    ) -> Iterator[list[ReceivedMessage]]:
        """Receive all visible messages in batches, each message once.

        Args:
            hide_seconds: the visibility timeout; longer than the whole scan, which ends at a repeated message.
            may_continue: called before each receive; False ends the scan.
        """
        ids: set[str] = set()
        while may_continue():
            answer = self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=BATCH_ENTRIES,
                VisibilityTimeout=hide_seconds,
                WaitTimeSeconds=_WAIT_SECONDS,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=[PROBLEM],
            )
            messages = [_received(message) for message in answer.get("Messages", [])]
            new = [message for message in messages if message.message_id not in ids]
            if not new:
                self.release(messages)
                return
            ids.update(message.message_id for message in new)
            yield new

    def release(self, messages: Iterable[ReceivedMessage]) -> None:
        """Make messages visible again."""
        for batch in _batches(messages):
            self._sqs.change_message_visibility_batch(
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": message.receipt_handle, "VisibilityTimeout": 0}
                    for number, message in enumerate(batch)
                ],
            )

    def delete(self, message: ReceivedMessage) -> None:
        """Delete a message."""
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message.receipt_handle)


def _received(message: "MessageTypeDef") -> ReceivedMessage:
    attributes = message.get("Attributes", {})
    body = message["Body"].encode("utf-8", "surrogatepass")
    arrival = Arrival(
        body=body,
        message_id=message["MessageId"],
        sent_at=from_epoch_milliseconds(int(attributes["SentTimestamp"])),
        receive_count=int(attributes.get("ApproximateReceiveCount", "1")),
        sender=attributes.get("SenderId", "").partition(":")[0],
        size=len(body),
    )
    given = message.get("MessageAttributes", {})
    problem = given[PROBLEM].get("StringValue") if PROBLEM in given else None
    return ReceivedMessage(arrival, message["ReceiptHandle"], attributes.get("MessageGroupId"), problem)


def _batches(items: Iterable[ReceivedMessage]) -> Iterator[Sequence[ReceivedMessage]]:
    remaining = iter(items)
    while batch := list(islice(remaining, BATCH_ENTRIES)):
        yield batch
