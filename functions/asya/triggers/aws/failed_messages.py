"""Keeps the messages that start nothing, as dead letters of `x-triggers` (`protocol §16.failures`)."""

from typing import TYPE_CHECKING

from asya.messaging.delivery import PROBLEM
from asya.messaging.sqs_limits import attribute_text

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_PROBLEM_LIMIT = 1024


class FailedMessages:
    """The dead-letter queue of `x-triggers`.

    Args:
        client: the client of SQS.
        url: the URL of the dead-letter queue.
    """

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def keep(self, body: bytes, problem: str) -> None:
        """Keep a message, with what is wrong with it.

        Raises:
            ClientError, BotoCoreError: SQS does not take it, so the message stays on its own queue.
        """
        self._client.send_message(
            QueueUrl=self._url,
            MessageBody=body.decode("utf-8"),
            # The problem may have a part of the message, such as the key of an object.
            MessageAttributes={
                PROBLEM: {"DataType": "String", "StringValue": attribute_text(problem[:_PROBLEM_LIMIT])}
            },
        )
