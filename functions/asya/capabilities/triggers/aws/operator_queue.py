"""Sends the messages that operators cause to the queue `x-triggers` (`protocol §16.fire.queue`)."""

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.protocol.api_errors import ApiError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class OperatorQueue:
    """The queue of triggers.

    Args:
        client: the client of SQS.
        url: the URL of the queue.
    """

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def send(self, message: bytes) -> None:
        """Send a message.

        Raises:
            ApiError: 503 if SQS does not take it; the same call may be repeated.
        """
        try:
            self._client.send_message(QueueUrl=self._url, MessageBody=message.decode())
        except (ClientError, BotoCoreError) as error:
            raise ApiError(503, "unavailable", "the queue x-triggers is unavailable; try again") from error
