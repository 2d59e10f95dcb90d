"""A dead-letter queue, looked at without taking anything away; whoever has sent a message on removes it (`protocol §11`, `§12`)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from asya.messaging.hop import Arrival
from asya.messaging.sqs_limits import BATCH_ENTRIES
from asya.protocol.times import from_epoch_milliseconds

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

# Asks all of a queue's servers: an answer without waiting comes from some of them, and may miss the few messages there are.
_WAIT_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as it was seen.

    Attributes:
        group: the tenant that it counts for in a fair queue.
    """

    arrival: Arrival
    receipt_handle: str
    group: str | None = None

    @property
    def message_id(self) -> str:
        """SQS's id of the message."""
        return self.arrival.message_id


@dataclass(frozen=True, slots=True)
class Count:
    """How many messages there are, about: to be seen, and out of sight because somebody is looking at them."""

    visible: int
    hidden: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.visible + self.hidden


class DeadLetterQueue:
    """One dead-letter queue.

    A receive hides what it gives: that is how a look sees each message once. What was seen is put back at the end; should the
    process die before, it comes back by itself. Receives are counted, but a dead-letter queue moves nothing on.

    Every method raises ClientError or BotoCoreError if SQS does not answer or refuses.
    """

    def __init__(self, sqs: "SQSClient", url: str) -> None:
        self._sqs = sqs
        self._url = url

    def count(self) -> Count:
        """How many messages there are; SQS may be a minute behind."""
        found = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["All"])["Attributes"]
        visible, hidden = found["ApproximateNumberOfMessages"], found["ApproximateNumberOfMessagesNotVisible"]
        return Count(int(visible), int(hidden))

    def look(self, *, hide_seconds: int, goes_on: Callable[[], bool] = lambda: True) -> Iterator[list[Seen]]:
        """All messages that can be seen, some at a time, each once.

        Args:
            hide_seconds: longer than the whole look takes: what comes into sight again meanwhile ends it.
            goes_on: asked before each further call.
        """
        known: set[str] = set()
        while goes_on():
            answer = self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=BATCH_ENTRIES,
                VisibilityTimeout=hide_seconds,
                WaitTimeSeconds=_WAIT_SECONDS,
                MessageSystemAttributeNames=["All"],
            )
            seen = [_seen(message) for message in answer.get("Messages", [])]
            new = [each for each in seen if each.message_id not in known]
            if not new:
                self.put_back(seen)
                return
            known.update(each.message_id for each in new)
            yield new

    def put_back(self, seen: Iterable[Seen]) -> None:
        """Let others see them again."""
        for some in _tens(seen):
            self._sqs.change_message_visibility_batch(
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": each.receipt_handle, "VisibilityTimeout": 0}
                    for number, each in enumerate(some)
                ],
            )

    def remove(self, seen: Seen) -> None:
        """Take a message away for good."""
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=seen.receipt_handle)


def _seen(message: "MessageTypeDef") -> Seen:
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
    return Seen(arrival, message["ReceiptHandle"], attributes.get("MessageGroupId"))


def _tens(items: Iterable[Seen]) -> Iterator[Sequence[Seen]]:
    left = iter(items)
    while some := list(islice(left, BATCH_ENTRIES)):
        yield some
