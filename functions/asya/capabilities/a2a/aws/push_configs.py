"""Stores the push configurations of tasks (`protocol §13`, `/a2a`).

Items of the tasks table: `pk` = task id, `sk` = `a2a-push#{id}`, `target` = JSON. Their keys sort before those of the
hops, so reads of a task skip them. The record of a task with configurations says so (`is_watched`).
"""

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from asya.capabilities.a2a.push import PushTarget
from asya.function.aws.table import Table, delete, in_partition, put
from asya.function.aws.table_items import Item, Key
from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PREFIX = "a2a-push#"
MAX_CONFIGS = 10
"""Configurations of one task; each change of status goes to all of them."""

_decoder = msgspec.json.Decoder(PushTarget)


class PushConfigStore:
    """The push configurations of one mesh. All methods raise TaskStoreError if the table cannot be reached.

    Args:
        retention: Seconds for which a task and its configurations are stored after the deadline.
    """

    def __init__(self, client: "DynamoDBClient", table: str, retention: float) -> None:
        self._table = Table(client, table)
        self._retention = retention

    def put(self, task_id: str, config_id: str, target: PushTarget, until: datetime) -> None:
        """Store a configuration; it replaces one with the same id.

        Args:
            until: The deadline of the task, or the current time if that is later.
        """
        expires_at = int(until.timestamp() + self._retention)
        with table_errors(f"store push configuration {config_id!r} of task {task_id}"):
            content = msgspec.json.encode(target).decode()
            self._table.write(put(_key(task_id, config_id), {"target": content, "expires_at": expires_at}))

    def read(self, task_id: str, config_id: str) -> PushTarget | None:
        """Return a configuration; None if it does not exist."""
        with table_errors(f"read push configuration {config_id!r} of task {task_id}"):
            item = self._table.get(_key(task_id, config_id))
        return _target_of(item) if item else None

    def all(self, task_id: str) -> dict[str, PushTarget]:
        """Return all configurations of a task by id."""
        with table_errors(f"read the push configurations of task {task_id}"):
            items = self._table.page(in_partition(task_id, PREFIX)).items
        return {item.key.sk.removeprefix(PREFIX): _target_of(item) for item in items}

    def delete(self, task_id: str, config_id: str) -> None:
        """Delete a configuration if it exists."""
        with table_errors(f"delete push configuration {config_id!r} of task {task_id}"):
            self._table.write(delete(_key(task_id, config_id)))


def _key(task_id: str, config_id: str) -> Key:
    return Key(task_id, PREFIX + config_id)


def _target_of(item: Item) -> PushTarget:
    return _decoder.decode(item.text("target"))
