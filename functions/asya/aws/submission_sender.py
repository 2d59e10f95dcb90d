"""Sending the first message of a task, one at a time, and telling a refusal from not knowing (`protocol §13`, POST)."""

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.aws.limits import MESSAGE_BYTES, MESSAGE_MARGIN
from asya.routing.delivery import Delivery

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageRequestTypeDef

MESSAGE_LIMIT = MESSAGE_BYTES - MESSAGE_MARGIN


class NotSentError(Exception):
    """The message has not been sent, for certain."""


class MaybeSentError(Exception):
    """There was no answer that says whether the message has been sent."""


class TooLargeError(NotSentError):
    """The message is larger than a queue takes."""


class SubmissionSender:
    """Sends deliveries; `queue_url` tells the queue of an actor."""

    def __init__(self, client: "SQSClient", queue_url: Callable[[str], str]) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, delivery: Delivery) -> None:
        """Send one message and return when the queue has it.

        Raises:
            TooLargeError, NotSentError: if it has not been sent.
            MaybeSentError: if nobody knows.
        """
        if len(delivery.body) > MESSAGE_LIMIT:
            raise TooLargeError(f"the envelope has {len(delivery.body)} bytes; a message holds {MESSAGE_LIMIT}")
        where = f"to the queue of {delivery.actor!r}"
        message: SendMessageRequestTypeDef = {
            "QueueUrl": self._queue_url(delivery.actor),
            "MessageBody": delivery.body.decode("utf-8"),
        }
        if delivery.group:
            message["MessageGroupId"] = delivery.group
        try:
            self._client.send_message(**message)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise NotSentError(f"the message {where} was refused: {error}") from error
            raise MaybeSentError(f"sending {where} failed: {error}") from error
        except BotoCoreError as error:
            raise MaybeSentError(f"sending {where} failed: {error}") from error
