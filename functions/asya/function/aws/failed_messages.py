"""Keeps messages that their function gives up, in its own dead-letter queue (`protocol §4.starts.end`, `§16.failures`)."""

from typing import TYPE_CHECKING

from asya.function.delivery import PROBLEM
from asya.function.sqs_limits import attribute_text

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageRequestTypeDef

_PROBLEM_LIMIT = 1024


class FailedMessages:
    """The dead-letter queue of a function.

    Args:
        client: the client of SQS.
        url: the URL of the dead-letter queue.
    """

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def keep(self, body: bytes, problem: str, group: str | None = None) -> None:
        """Keep a message, with what is wrong with it.

        Args:
            group: its message group (the tenant in a fair queue); None without one.

        Raises:
            ClientError, BotoCoreError: SQS does not take it, so the message stays on its own queue.
        """
        request: SendMessageRequestTypeDef = {
            "QueueUrl": self._url,
            "MessageBody": body.decode("utf-8"),
            # The problem may have a part of the message, such as the key of an object.
            "MessageAttributes": {
                PROBLEM: {"DataType": "String", "StringValue": attribute_text(problem[:_PROBLEM_LIMIT])}
            },
        }
        if group is not None:
            request["MessageGroupId"] = group
        self._client.send_message(**request)
