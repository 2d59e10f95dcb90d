"""Where push notifications of tasks go, beside the tasks themselves (`protocol §13`, `/a2a`).

Items of the tasks table: `pk` = task id, `sk` = `a2a-push#{id}`, `target` = JSON. They sort before the hops, so that nobody who
reads a task reads them; a task that has any says so in its record (`is_watched`).
"""

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from asya.gateway.a2a.push import PushTarget
from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    from asya.tasks.aws.items import Item

PREFIX = "a2a-push#"
# Each change of a task is sent to all of them.
MOST = 10

_decoder = msgspec.json.Decoder(PushTarget)


class PushConfigStore:
    """Those of one mesh. All methods raise TaskStoreError if the table cannot be reached.

    Args:
        retention: seconds that a task is kept after its deadline, and so one of these.
    """

    def __init__(self, client: "DynamoDBClient", table: str, retention: float) -> None:
        self._client = client
        self._table = table
        self._retention = retention

    def put(self, task_id: str, config_id: str, target: PushTarget, until: datetime) -> None:
        """Keep one; another of the same id gives way.

        Args:
            until: the task's deadline, or now if that has passed, or there is none.
        """
        expires_at = int(until.timestamp() + self._retention)
        with table_errors(f"keep where notifications of task {task_id} go"):
            self._client.put_item(
                TableName=self._table,
                Item=_key(task_id, config_id)
                | {"target": {"S": msgspec.json.encode(target).decode()}, "expires_at": {"N": str(expires_at)}},
            )

    def read(self, task_id: str, config_id: str) -> PushTarget | None:
        """One of a task; None if there is none of this id."""
        with table_errors(f"read where notifications of task {task_id} go"):
            answer = self._client.get_item(TableName=self._table, Key=_key(task_id, config_id), ConsistentRead=True)
        return _target_of(answer["Item"]) if "Item" in answer else None

    def all(self, task_id: str) -> dict[str, PushTarget]:
        """All of a task, by id."""
        with table_errors(f"read where notifications of task {task_id} go"):
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :id AND begins_with(sk, :prefix)",
                ExpressionAttributeValues={":id": {"S": task_id}, ":prefix": {"S": PREFIX}},
                ConsistentRead=True,
            )
        return {item["sk"]["S"].removeprefix(PREFIX): _target_of(item) for item in answer["Items"]}

    def delete(self, task_id: str, config_id: str) -> None:
        """Forget one, if it is there."""
        with table_errors(f"forget where notifications of task {task_id} go"):
            self._client.delete_item(TableName=self._table, Key=_key(task_id, config_id))


def _key(task_id: str, config_id: str) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": task_id}, "sk": {"S": PREFIX + config_id}}


def _target_of(item: "Item") -> PushTarget:
    return _decoder.decode(item["target"]["S"])
