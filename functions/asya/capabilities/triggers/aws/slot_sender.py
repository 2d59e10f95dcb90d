"""Sends slots to the queue `x-triggers` (`protocol §16.due`)."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from asya.capabilities.triggers.messages import slot_message

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SlotSender:
    """The queue of triggers, for slots.

    Args:
        client: the client of SQS.
        url: the URL of the queue.
    """

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def send(self, trigger: str, slots: Sequence[datetime]) -> None:
        """Send slots of a trigger in one message, because a queue keeps no order; it may arrive twice.

        Args:
            trigger: the name of the trigger.
            slots: the slots, oldest first.

        Raises:
            ClientError, BotoCoreError: the slots may not be on the queue; send them again.
        """
        if slots:
            body = slot_message(trigger, slots[0], slots[1:]).decode()
            self._client.send_message(QueueUrl=self._url, MessageBody=body)
