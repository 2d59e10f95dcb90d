"""Sends the first message of a task, and tells refused sends from sends with an unknown outcome (`protocol §13`)."""

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.claim_check import EnvelopeTooLargeError
from asya.function.hop import FIRST_SENDER, Delivery

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageRequestTypeDef


class NotSentError(Exception):
    """The message was certainly not sent."""


class MaybeSentError(Exception):
    """SQS gave no clear answer, so the message may have been sent."""


class TooLargeError(NotSentError):
    """The message exceeds the limit of SQS even without its payload."""


class SubmissionSender:
    """Sends one delivery at a time.

    Args:
        queue_url: returns the queue URL of an actor.
        offload: the claim check of large payloads (`protocol §4`).
        diverts: whether an envelope that is too large without its payload goes to x-sump instead.
    """

    def __init__(
        self,
        client: "SQSClient",
        queue_url: Callable[[str], str],
        offload: Callable[[Delivery], Delivery],
        *,
        diverts: bool = False,
    ) -> None:
        self._client = client
        self._diverts = diverts
        self._queue_url = queue_url
        self._offload = offload

    def send(self, delivery: Delivery, *, first_sender: str = "") -> None:
        """Send one message and return when SQS has accepted it.

        Args:
            delivery: the message.
            first_sender: the `SenderId` of the dead letter that is sent again; empty for other messages.

        Raises:
            TooLargeError, NotSentError: the message was not sent.
            MaybeSentError: the outcome is unknown.
        """
        where = f"to the queue of {delivery.actor!r}"
        offloaded = self._offloaded(delivery, where)
        message: SendMessageRequestTypeDef = {
            "QueueUrl": self._queue_url(offloaded.actor),
            "MessageBody": offloaded.body.decode("utf-8"),
        }
        if delivery.group:
            message["MessageGroupId"] = delivery.group
        if first_sender:
            message["MessageAttributes"] = {FIRST_SENDER: {"DataType": "String", "StringValue": first_sender}}
        try:
            self._client.send_message(**message)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise NotSentError(f"the message {where} was refused: {error}") from error
            raise MaybeSentError(f"sending {where} failed: {error}") from error
        except BotoCoreError as error:
            raise MaybeSentError(f"sending {where} failed: {error}") from error

    def _offloaded(self, delivery: Delivery, where: str) -> Delivery:
        try:
            offloaded = self._offload(delivery)
        except EnvelopeTooLargeError as error:
            raise TooLargeError(str(error)) from error
        except (ClientError, BotoCoreError) as error:
            raise NotSentError(f"the payload of the message {where} could not be stored: {error}") from error
        if offloaded.actor != delivery.actor and not self._diverts:
            raise TooLargeError("the envelope is too large to be sent even without its payload")
        return offloaded
