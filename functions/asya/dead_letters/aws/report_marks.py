"""Marks of reported dead letters: each is reported once, although every scan finds it again (`protocol §11`)."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from asya.protocol.table_keys import REPORTED_PREFIX

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

# Longer than the longest retention of a queue, 14 days.
KEEP_SECONDS = 15 * 86400
_SORT_KEY = "reported"


class ReportMarks:
    """Items of the table `asya-{namespace}-sink`: pk = `DLQ#{SQS message id}`, sk = `reported`.

    A mark is written after the report is accepted. It only saves repetition, because reports are idempotent.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def find(self, message_ids: Collection[str]) -> frozenset[str]:
        """Those of these messages (ten at most) that have a mark; a throttled table may leave some out."""
        # SQS may deliver a message twice in one batch, but a request must not repeat a key.
        keys = [_key(message_id) for message_id in sorted(set(message_ids))]
        answer = self._dynamodb.batch_get_item(RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}})
        return frozenset(
            item["pk"]["S"].removeprefix(REPORTED_PREFIX) for item in answer["Responses"].get(self._table, [])
        )

    def add(self, message_id: str, *, epoch_seconds: float) -> None:
        """Mark a message as reported."""
        expires_at = str(int(epoch_seconds + KEEP_SECONDS))
        self._dynamodb.put_item(TableName=self._table, Item={**_key(message_id), "expires_at": {"N": expires_at}})


def _key(message_id: str) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": REPORTED_PREFIX + message_id}, "sk": {"S": _SORT_KEY}}
