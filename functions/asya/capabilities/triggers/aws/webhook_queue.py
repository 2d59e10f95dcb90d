"""Sends webhooks to the queue `x-triggers`, with large bodies as a claim check (`protocol §16.webhooks.large`)."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.capabilities.triggers.messages import UnusableMessageError, read_webhook_message
from asya.capabilities.triggers.webhooks.deliveries import Delivery, webhook_message
from asya.function.claim_check import PayloadReference, reference_to
from asya.function.sqs_limits import MESSAGE_BYTES, MESSAGE_MARGIN
from asya.protocol import names
from asya.protocol.keys import INBOX_PREFIX

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

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
