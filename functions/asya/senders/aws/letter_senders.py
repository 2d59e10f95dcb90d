"""The first senders of dead letters, in DynamoDB: SQS's own redrive makes its caller the sender (`protocol §4.entry.moved`)."""

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING

from asya.senders.roles import KEEP_FORMER

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

LETTER_PREFIX = "LETTER#"
_SORT_KEY = "sender"


class LetterSenders:
    """Items of the table `asya-{namespace}-sink`: pk = `LETTER#{SHA-256 of the body}`, sk = `sender`, and who sent the letter.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def note(self, body: bytes, sender: str, now: datetime) -> None:
        """Note who sent a dead letter. The note stays as long as the letter can."""
        expires_at = str(int((now + KEEP_FORMER).timestamp()))
        item: dict[str, AttributeValueTypeDef] = {"sender": {"S": sender}, "expires_at": {"N": expires_at}}
        self._dynamodb.put_item(TableName=self._table, Item=_key(body) | item)

    def sender_of(self, body: bytes) -> str | None:
        """The principal that sent a dead letter with this body first; None without such a letter."""
        item = self._dynamodb.get_item(TableName=self._table, Key=_key(body), ConsistentRead=True).get("Item", {})
        return item["sender"]["S"] if "sender" in item else None


def _key(body: bytes) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": LETTER_PREFIX + hashlib.sha256(body).hexdigest()}, "sk": {"S": _SORT_KEY}}
