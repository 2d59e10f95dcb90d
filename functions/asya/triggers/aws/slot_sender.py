"""Sends slots to the queue `x-triggers` (`protocol §16.due`)."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from asya.messaging.sqs_limits import BATCH_ENTRIES
from asya.triggers.messages import slot_message

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SlotsNotSentError(RuntimeError):
    """SQS has not accepted some of the slots."""


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
        """Send slots of a trigger, in order; a slot may arrive twice.

        Raises:
            SlotsNotSentError, ClientError, BotoCoreError: some slots may not be on the queue; send all of them again.
        """
        for start in range(0, len(slots), BATCH_ENTRIES):
            answer = self._client.send_message_batch(
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(number), "MessageBody": slot_message(trigger, slot).decode()}
                    for number, slot in enumerate(slots[start : start + BATCH_ENTRIES])
                ],
            )
            if failed := answer.get("Failed"):
                raise SlotsNotSentError(
                    f"{len(failed)} slots of the trigger {trigger!r} were not sent: {failed[0].get('Message', failed[0]['Code'])}"
                )
