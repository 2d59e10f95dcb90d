"""Sends webhooks to `x-triggers`, and reads what is known of their tasks before (`protocol §16.webhooks`).

The task itself is the memory: its record, and in a lane the decision about its occurrence.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.capabilities.triggers.aws.lane_items import decision_key
from asya.capabilities.triggers.aws.schedule_states import state_key
from asya.capabilities.triggers.messages import UnusableMessageError, read_webhook_message
from asya.capabilities.triggers.webhooks import Delivery, webhook_message
from asya.function.aws.table import Table
from asya.function.claim_check import PayloadReference, reference_to
from asya.function.sqs import MESSAGE_BYTES, MESSAGE_MARGIN
from asya.protocol import names
from asya.protocol.keys import INBOX_PREFIX
from asya.protocol.table_keys import PAUSED, WEBHOOK_ATTRIBUTES
from asya.tasks.aws.items import is_expired, record_key
from asya.tasks.aws.task_store import TaskStoreError, table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class KnownWebhook:
    """What the tasks table knows about a webhook.

    Attributes:
        has_task: whether its task exists.
        is_decided: whether a lane has decided about it.
        is_paused: whether its trigger is paused.
    """

    has_task: bool = False
    is_decided: bool = False
    is_paused: bool = False

    @property
    def is_repeated(self) -> bool:
        """Whether an earlier one like it has been taken."""
        return self.has_task or self.is_decided


class WebhookMemory:
    """The memory of webhooks.

    Args:
        dynamodb: the client of DynamoDB.
        table: the name of the tasks table.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def read(self, trigger: str, task_id: str, now: datetime) -> KnownWebhook:
        """Read what is known about the webhook with a task id, with one call.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        keys = [record_key(task_id), decision_key(task_id), state_key(trigger)]
        with table_errors("read whether a webhook has started its task"):
            items, left_out = self._table.get_batch(keys, WEBHOOK_ATTRIBUTES)
        if left_out:
            raise TaskStoreError("the tasks table is busy")
        epoch = int(now.timestamp())
        found = {item.key: item for item in items if "expires_at" not in item or not is_expired(item, epoch)}
        task, decision, state = keys
        return KnownWebhook(
            has_task=task in found,
            is_decided=decision in found,
            is_paused=state in found and found[state].flag(PAUSED),
        )


_PLACE = f"{INBOX_PREFIX}{names.TRIGGERS}/"
_LARGEST_MESSAGE = MESSAGE_BYTES - MESSAGE_MARGIN


class TooLargeForLaneError(ValueError):
    """A webhook is larger than a message, and its trigger has lanes."""


class WebhookQueue:
    """The queue of triggers, for webhooks.

    Args:
        sqs: the client of SQS.
        url: the URL of the queue.
        s3: the client of S3.
        bucket: the bucket of the mesh.
    """

    def __init__(self, sqs: "SQSClient", url: str, s3: "S3Client", bucket: str) -> None:
        self._sqs = sqs
        self._url = url
        self._s3 = s3
        self._bucket = bucket

    def send(self, trigger: str, delivery: Delivery, *, may_store: bool) -> None:
        """Send a webhook; it may arrive twice. The key of a stored body derives from it, so storing it is idempotent.

        Args:
            trigger: the name of the trigger.
            delivery: the webhook.
            may_store: whether the body may be stored if it is too large for a message.

        Raises:
            TooLargeForLaneError: the message is too large, and the body may not be stored.
            ClientError, BotoCoreError: it may not be on the queue; the sender has to repeat it.
        """
        message = webhook_message(trigger, delivery)
        if len(message) > _LARGEST_MESSAGE:
            if not may_store:
                raise TooLargeForLaneError
            body = delivery.body.encode()
            stored = reference_to(body, INBOX_PREFIX, names.TRIGGERS)
            self._s3.put_object(Bucket=self._bucket, Key=stored.key, Body=body, ContentType="application/octet-stream")
            message = webhook_message(trigger, replace(delivery, body="", stored=stored))
        self._sqs.send_message(QueueUrl=self._url, MessageBody=message.decode())


class WebhookBodies:
    """The stored bodies of webhooks.

    Args:
        s3: the client of S3.
        bucket: the bucket of the mesh.
    """

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def restored(self, message: bytes) -> bytes:
        """Return a message with the body of its webhook; any other message stays as it is.

        Raises:
            UnusableMessageError: the reference names no body of a webhook, or the object is missing or another one.
            ClientError, BotoCoreError: S3 does not answer; the message must come again.
        """
        webhook = read_webhook_message(message)
        if webhook is None or (stored := webhook.webhook.stored) is None:
            return message
        body = self._body(stored)
        return webhook_message(webhook.trigger, replace(webhook.webhook, body=body, stored=None))

    def _body(self, stored: PayloadReference) -> str:
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=stored.key) if stored.key.startswith(_PLACE) else None
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("NoSuchKey", "404"):
                raise
            answer = None
        if answer is None:
            raise UnusableMessageError(f"the stored body {stored.key!r} of a webhook does not exist")
        # One byte more than announced detects a longer object without reading all of it into memory.
        body = answer["Body"].read(stored.size + 1)
        if reference_to(body, INBOX_PREFIX, names.TRIGGERS) != stored:
            raise UnusableMessageError(f"the stored body {stored.key!r} of a webhook is another one")
        return body.decode()
