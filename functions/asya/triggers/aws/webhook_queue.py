"""Sends webhooks to the queue `x-triggers`, and notes which were sent (`protocol §16.webhooks.once`).

Items of the tasks table: `pk` = `WEBHOOK#{digest of trigger and key}`, `sk` = `webhook`.
"""

import hashlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef
    from mypy_boto3_sqs import SQSClient

KEPT = timedelta(days=7)
"""How long a repetition is known."""
WEBHOOK_PREFIX = "WEBHOOK#"
_SORT_KEY = "webhook"


class WebhookQueue:
    """The queue of triggers, for webhooks.

    Args:
        sqs: the client of SQS.
        url: the URL of the queue.
    """

    def __init__(self, sqs: "SQSClient", url: str) -> None:
        self._sqs = sqs
        self._url = url

    def send(self, message: bytes) -> None:
        """Send a webhook; it may arrive twice.

        Raises:
            ClientError, BotoCoreError: it may not be on the queue; the sender has to repeat it.
        """
        self._sqs.send_message(QueueUrl=self._url, MessageBody=message.decode())


class SentWebhooks:
    """The webhooks that were sent in the last seven days.

    Args:
        dynamodb: the client of DynamoDB.
        table: the name of the tasks table.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def has(self, trigger: str, key: str, now: datetime) -> bool:
        """Whether a webhook was noted as sent.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read whether a webhook was sent"):
            answer = self._dynamodb.get_item(TableName=self._table, Key=_key(trigger, key), ConsistentRead=True)
        item = answer.get("Item")
        return item is not None and float(item["expires_at"]["N"]) > now.timestamp()

    def note(self, trigger: str, key: str, now: datetime) -> None:
        """Note a webhook as sent. To note it twice is to note it once.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        expires_at = str(int((now + KEPT).timestamp()))
        with table_errors("note that a webhook was sent"):
            self._dynamodb.put_item(TableName=self._table, Item={**_key(trigger, key), "expires_at": {"N": expires_at}})


def _key(trigger: str, key: str) -> "dict[str, AttributeValueTypeDef]":
    # Names of triggers contain no newline, so different pairs have different digests.
    digest = hashlib.sha256(f"{trigger}\n{key}".encode()).hexdigest()
    return {"pk": {"S": f"{WEBHOOK_PREFIX}{digest}"}, "sk": {"S": _SORT_KEY}}
