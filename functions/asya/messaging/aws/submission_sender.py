"""Sending the first message of a task, one at a time, and telling a refusal from not knowing (`protocol §13`, POST)."""

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.messaging.aws import claim_check
from asya.messaging.delivery import Delivery

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageRequestTypeDef


class NotSentError(Exception):
    """The message has not been sent, for certain."""


class MaybeSentError(Exception):
    """There was no answer that says whether the message has been sent."""


class TooLargeError(NotSentError):
    """The message is larger than a queue takes, even without its payload."""


class SubmissionSender:
    """Sends deliveries.

    Args:
        queue_url: tells the queue of an actor.
        offload: makes of a delivery one that a queue takes (the claim check of large payloads, `protocol §4`).
    """

    def __init__(
        self, client: "SQSClient", queue_url: Callable[[str], str], offload: Callable[[Delivery], Delivery]
    ) -> None:
        self._client = client
        self._queue_url = queue_url
        self._offload = offload

    def send(self, delivery: Delivery) -> None:
        """Send one message and return when the queue has it.

        Raises:
            TooLargeError, NotSentError: if it has not been sent.
            MaybeSentError: if nobody knows.
        """
        where = f"to the queue of {delivery.actor!r}"
        light = self._sendable(delivery, where)
        message: SendMessageRequestTypeDef = {
            "QueueUrl": self._queue_url(light.actor),
            "MessageBody": light.body.decode("utf-8"),
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

    def _sendable(self, delivery: Delivery, where: str) -> Delivery:
        try:
            light = self._offload(delivery)
        except claim_check.EnvelopeTooLargeError as error:
            raise TooLargeError(str(error)) from error
        except (ClientError, BotoCoreError) as error:
            raise NotSentError(f"the payload of the message {where} could not be put aside: {error}") from error
        if light.actor != delivery.actor:
            raise TooLargeError("the envelope is too large to be sent even without its payload")
        return light
