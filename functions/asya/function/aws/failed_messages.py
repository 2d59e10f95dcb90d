"""Marks the starts of work on a message, and keeps messages that are given up (`protocol §4.starts`)."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, update
from asya.function.aws.table_items import Key
from asya.function.hop import PROBLEM, Arrival
from asya.function.sqs import attribute_text
from asya.protocol.table_keys import own_starts

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageRequestTypeDef

# Longer than a queue keeps a message, 4 days.
KEEP_SECONDS = 5 * 86400


def is_marked(arrival: Arrival, max_starts: int) -> bool:
    """Whether a start is marked before it: that of each redelivered message, and each one where only one is allowed."""
    return arrival.receive_count > 1 or max_starts == 1


def starts_of(marks: Collection[int], max_starts: int) -> int:
    """The starts of a message. The first receive, which is not marked, counts as a start.

    Args:
        marks: the receives before whose starts a mark was written.
    """
    return len(marks) + (0 if max_starts == 1 else 1)


class StartMarks:
    """Items of the table `asya-{namespace}-sink`: pk = `START#{actor}#{SQS message id}`, sk = `starts`.

    SQS gives out the ids of messages. So no sender can name the message of another one, and a copy has marks of its own. A mark
    is the number of the receive: repeating the write changes nothing.

    Raises:
        ClientError, BotoCoreError: from every method, if the table cannot be written.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str, actor: str) -> None:
        self._table = Table(dynamodb, table)
        self._actor = actor

    def add(self, arrival: Arrival, *, epoch_seconds: float) -> frozenset[int]:
        """Mark the start that follows, and return all marks of the message."""
        until = int(epoch_seconds + KEEP_SECONDS)
        receive = {arrival.receive_count}
        mark = update(self._key(arrival), "SET expires_at = :until ADD receives :receive", receive=receive, until=until)
        return self._table.write(mark, returns="ALL_NEW").item.integers("receives")

    def take_back(self, arrival: Arrival) -> None:
        """Remove the mark of a start that a service has ended, and not the message."""
        self._table.write(update(self._key(arrival), "DELETE receives :receive", receive={arrival.receive_count}))

    def _key(self, arrival: Arrival) -> Key:
        return Key(own_starts(self._actor) + arrival.message_id, "starts")


_PROBLEM_LIMIT = 1024


class FailedMessages:
    """The dead-letter queue of a function.

    Args:
        client: the client of SQS.
        url: the URL of the dead-letter queue.
    """

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def keep(self, body: bytes, problem: str, group: str | None = None) -> None:
        """Keep a message, with what is wrong with it.

        Args:
            group: its message group (the tenant in a fair queue); None without one.

        Raises:
            ClientError, BotoCoreError: SQS does not take it, so the message stays on its own queue.
        """
        request: SendMessageRequestTypeDef = {
            "QueueUrl": self._url,
            "MessageBody": body.decode("utf-8"),
            # The problem may have a part of the message, such as the key of an object.
            "MessageAttributes": {
                PROBLEM: {"DataType": "String", "StringValue": attribute_text(problem[:_PROBLEM_LIMIT])}
            },
        }
        if group is not None:
            request["MessageGroupId"] = group
        self._client.send_message(**request)
