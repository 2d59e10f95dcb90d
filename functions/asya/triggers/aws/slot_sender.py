"""Sends slots to the queue `x-triggers` (`protocol §16.due`)."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from asya.messaging.sqs_limits import BATCH_ENTRIES
from asya.tasks.aws.table_calls import chunks
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

    def send(self, trigger: str, slots: Sequence[datetime], *, in_order: bool = False) -> None:
        """Send slots of a trigger, in order; a slot may arrive twice.

        Args:
            trigger: the name of the trigger.
            slots: the slots, oldest first.
            in_order: whether they must enter their lane in this order, and so are one message.

        Raises:
            SlotsNotSentError, ClientError, BotoCoreError: some slots may not be on the queue; send all of them again.
        """
        bodies = [slot_message(trigger, slot) for slot in slots]
        if in_order and slots:
            bodies = [slot_message(trigger, slots[0], slots[1:])]
        for batch in chunks(bodies, BATCH_ENTRIES):
            answer = self._client.send_message_batch(
                QueueUrl=self._url,
                Entries=[{"Id": str(number), "MessageBody": body.decode()} for number, body in enumerate(batch)],
            )
            if failed := answer.get("Failed"):
                raise SlotsNotSentError(
                    f"{len(failed)} slots of the trigger {trigger!r} were not sent: {failed[0].get('Message', failed[0]['Code'])}"
                )
