"""Which dead letters have been reported, so that each is once although every look finds it again (`protocol §11`)."""

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

# A message is no older than its queue keeps it, and no queue keeps one for longer than 14 days.
KEEP_SECONDS = 15 * 86400
_PREFIX = "DLQ#"
_SORT_KEY = "reported"


class ReportMarks:
    """Items of the table `asya-{namespace}-sink`: pk = `DLQ#{SQS message id}`, sk = `reported`.

    A note is written when the report has been taken. It only saves repetition: a report that is made again changes nothing.

    Every method raises ClientError or BotoCoreError if the table cannot be used now.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def reported(self, message_ids: Collection[str]) -> frozenset[str]:
        """Of some messages (ten at most) those that are noted. A busy table may leave some out."""
        # SQS may deliver a message twice at once; a request may not name a key twice.
        keys = [_key(message_id) for message_id in sorted(set(message_ids))]
        answer = self._dynamodb.batch_get_item(RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}})
        return frozenset(item["pk"]["S"].removeprefix(_PREFIX) for item in answer["Responses"].get(self._table, []))

    def note(self, message_id: str, *, epoch_seconds: float) -> None:
        """Note that a message has been reported."""
        expires_at = str(int(epoch_seconds + KEEP_SECONDS))
        self._dynamodb.put_item(TableName=self._table, Item={**_key(message_id), "expires_at": {"N": expires_at}})


def _key(message_id: str) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": _PREFIX + message_id}, "sk": {"S": _SORT_KEY}}
