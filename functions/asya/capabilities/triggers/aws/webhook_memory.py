"""Reads what is known about the task of a webhook before it is sent (`protocol §16.webhooks.once`).

The task itself is the memory: its record, and in a lane the decision about its occurrence.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from asya.capabilities.triggers.aws.lane_items import decision_key
from asya.capabilities.triggers.aws.schedule_states import state_key
from asya.function.aws.table import Table
from asya.protocol.table_keys import WEBHOOK_ATTRIBUTES
from asya.tasks.aws.items import is_expired, record_key
from asya.tasks.aws.table_calls import table_errors
from asya.tasks.aws.task_store import TaskStoreError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class KnownWebhook:
    """What the tasks table knows about a webhook.

    Attributes:
        has_task: whether its task exists.
        is_decided: whether a lane has decided about it.
        is_paused: whether its trigger is paused.
    """

    has_task: bool = False
    is_decided: bool = False
    is_paused: bool = False

    @property
    def is_repeated(self) -> bool:
        """Whether an earlier one like it has been taken."""
        return self.has_task or self.is_decided


class WebhookMemory:
    """The memory of webhooks.

    Args:
        dynamodb: the client of DynamoDB.
        table: the name of the tasks table.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def read(self, trigger: str, task_id: str, now: datetime) -> KnownWebhook:
        """Read what is known about the webhook with a task id, with one call.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        keys = [record_key(task_id), decision_key(task_id), state_key(trigger)]
        with table_errors("read whether a webhook has started its task"):
            items, left_out = self._table.get_batch(keys, WEBHOOK_ATTRIBUTES)
        if left_out:
            raise TaskStoreError("the tasks table is busy")
        epoch = int(now.timestamp())
        found = {item.key: item for item in items if "expires_at" not in item or not is_expired(item, epoch)}
        task, decision, state = keys
        return KnownWebhook(
            has_task=task in found,
            is_decided=decision in found,
            is_paused=state in found and found[state].flag("paused"),
        )
