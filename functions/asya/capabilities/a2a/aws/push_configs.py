"""Stores the push configurations of tasks (`protocol §13`, `/a2a`).

Items of the tasks table: `pk` = task id, `sk` = `a2a-push#{id}`, `target` = JSON. Their keys sort before those of the
hops, so reads of a task skip them. The record of a task with configurations says so (`is_watched`).
"""

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from asya.capabilities.a2a.push import PushTarget
from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    from asya.tasks.aws.items import Item

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
        self._client = client
        self._table = table
        self._retention = retention

    def put(self, task_id: str, config_id: str, target: PushTarget, until: datetime) -> None:
        """Store a configuration; it replaces one with the same id.

        Args:
            until: The deadline of the task, or the current time if that is later.
        """
        expires_at = int(until.timestamp() + self._retention)
        with table_errors(f"store push configuration {config_id!r} of task {task_id}"):
            self._client.put_item(
                TableName=self._table,
                Item=_key(task_id, config_id)
                | {"target": {"S": msgspec.json.encode(target).decode()}, "expires_at": {"N": str(expires_at)}},
            )

    def read(self, task_id: str, config_id: str) -> PushTarget | None:
        """Return a configuration; None if it does not exist."""
        with table_errors(f"read push configuration {config_id!r} of task {task_id}"):
            response = self._client.get_item(TableName=self._table, Key=_key(task_id, config_id), ConsistentRead=True)
        return _target_of(response["Item"]) if "Item" in response else None

    def all(self, task_id: str) -> dict[str, PushTarget]:
        """Return all configurations of a task by id."""
        with table_errors(f"read the push configurations of task {task_id}"):
            response = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :id AND begins_with(sk, :prefix)",
                ExpressionAttributeValues={":id": {"S": task_id}, ":prefix": {"S": PREFIX}},
                ConsistentRead=True,
            )
        return {item["sk"]["S"].removeprefix(PREFIX): _target_of(item) for item in response["Items"]}

    def delete(self, task_id: str, config_id: str) -> None:
        """Delete a configuration if it exists."""
        with table_errors(f"delete push configuration {config_id!r} of task {task_id}"):
            self._client.delete_item(TableName=self._table, Key=_key(task_id, config_id))


def _key(task_id: str, config_id: str) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": task_id}, "sk": {"S": PREFIX + config_id}}


def _target_of(item: "Item") -> PushTarget:
    return _decoder.decode(item["target"]["S"])
