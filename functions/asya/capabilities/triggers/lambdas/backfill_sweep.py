"""Lets each open backfill take a step, every minute: it finds what the loss of a message has left (`protocol §16.backfill`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya.capabilities.triggers.aws.backfills import Backfills
from asya.capabilities.triggers.operators.operator_messages import backfill_message
from asya.sidecar.lambdas.services import Services

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class BackfillSweep:
    """Sends the ids of open backfills to `x-triggers`.

    Attributes:
        queue_url: the URL of that queue.
    """

    services: Services
    backfills: Backfills
    sqs: "SQSClient"
    queue_url: str

    def sweep(self) -> None:
        """Send the ids of the open backfills. A mesh without schedules has none, and reads nothing.

        Raises:
            TaskStoreError: the states cannot be read.
            ClientError, BotoCoreError: SQS does not take a message; the next sweep repeats it.
        """
        triggers = self.services.settings.table.triggers.values()
        if not any(trigger.schedule is not None for trigger in triggers):
            return
        for backfill in self.backfills.read_all(self.services.now()):
            if backfill.is_open:
                self.sqs.send_message(QueueUrl=self.queue_url, MessageBody=backfill_message(backfill.id).decode())
