"""Dead letters: their queue, scanned without loss, copies, and marks of reported ones (`protocol §11`, `§12`)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from asya.capabilities.dead_letters.letters import DeadLetter
from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Key
from asya.function.hop import PROBLEM, Arrival
from asya.function.sqs import BATCH_ENTRIES
from asya.protocol.keys import DEAD_LETTERS_PREFIX, hop_key, safe_segment
from asya.protocol.table_keys import REPORTED_PREFIX
from asya.protocol.times import from_epoch_milliseconds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

WAIT_SECONDS = 1
"""Seconds of a long poll. It asks all servers of a queue; short polling asks some of them and may miss messages."""


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
                WaitTimeSeconds=WAIT_SECONDS,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=[PROBLEM],
            )
            messages = [_received(message) for message in answer.get("Messages", [])]
            new = [message for message in messages if message.message_id not in ids]
            if not new:
                self.release([message.receipt_handle for message in messages])
                return
            ids.update(message.message_id for message in new)
            yield new

    def release(self, receipt_handles: Iterable[str]) -> None:
        """Make messages visible again. A whole scan is released by its handles alone: its bodies may be larger than the memory."""
        for batch in _batches(receipt_handles):
            self._sqs.change_message_visibility_batch(
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": receipt_handle, "VisibilityTimeout": 0}
                    for number, receipt_handle in enumerate(batch)
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


def _batches(items: Iterable[str]) -> Iterator[Sequence[str]]:
    remaining = iter(items)
    while batch := list(islice(remaining, BATCH_ENTRIES)):
        yield batch


def copy_key(letter: DeadLetter) -> str:
    """`dlq/{id}/{generation}/{position}.json`, or `dlq/unreadable/{message id}` for a message without an envelope."""
    if letter.envelope is None or not letter.readable:
        return f"{DEAD_LETTERS_PREFIX}unreadable/{safe_segment(letter.arrival.message_id)}"
    return hop_key(DEAD_LETTERS_PREFIX, letter.envelope)


class DeadLetterCopies:
    """Objects in the mesh's bucket with the bytes of the message."""

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def save(self, letter: DeadLetter, body: bytes) -> None:
        """Write the copy of a dead letter; idempotent.

        Args:
            body: the message as it was sent.

        Raises:
            ClientError, BotoCoreError: the object cannot be written.
        """
        self._s3.put_object(Bucket=self._bucket, Key=copy_key(letter), Body=body, ContentType="application/json")


# Longer than the longest retention of a queue, 14 days.
KEEP_SECONDS = 15 * 86400


class ReportMarks:
    """Items of the table `asya-{namespace}-sink`: pk = `DLQ#{SQS message id}`, sk = `reported`.

    A mark is written after the report is accepted. It only saves repetition, because reports are idempotent.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def find(self, message_ids: Collection[str]) -> frozenset[str]:
        """Those of these messages (ten at most) that have a mark; a throttled table may leave some out."""
        # SQS may deliver a message twice in one batch, but a request must not repeat a key.
        marks = self._table.get_batch(map(_key, sorted(set(message_ids)))).items
        return frozenset(mark.key.pk.removeprefix(REPORTED_PREFIX) for mark in marks)

    def add(self, message_id: str, *, epoch_seconds: float) -> None:
        """Mark a message as reported."""
        self._table.write(put(_key(message_id), {"expires_at": int(epoch_seconds + KEEP_SECONDS)}))


def _key(message_id: str) -> Key:
    return Key(REPORTED_PREFIX + message_id, "reported")
