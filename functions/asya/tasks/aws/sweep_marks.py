"""Stores the progress of sweeps in items of the tasks table: `pk` = `SWEEP`, `sk` = `due`, or `lost`."""

from datetime import datetime
from typing import TYPE_CHECKING

from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.index import ListKey
from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


class SweepMarks:
    """The mark of one mesh. Concurrent sweeps may set it back; then a sweep processes a minute twice."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def read(self) -> datetime | None:
        """Read the last processed minute; None before the first sweep.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the progress of the deadline sweep"):
            item = self._client.get_item(TableName=self._table, Key=_key(), ConsistentRead=True).get("Item")
        return parse_time(item["until"]["S"]) if item else None

    def write(self, until: datetime) -> None:
        """Store the last processed minute.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("store the progress of the deadline sweep"):
            self._client.put_item(TableName=self._table, Item=_key() | {"until": {"S": format_time(until)}})


class LostMarks:
    """How far the sweep of lost tasks has come in its round through the open tasks, newest first."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def read(self) -> ListKey | None:
        """The last task of the sweep before; None at the beginning of a round.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the progress of the sweep of lost tasks"):
            item = self._client.get_item(TableName=self._table, Key=_key("lost"), ConsistentRead=True).get("Item")
        return ListKey(item["listed_at"]["S"], item["task"]["S"]) if item and item["listed_at"]["S"] else None

    def write(self, key: ListKey | None) -> None:
        """Store the last task of a sweep.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        listed_at, task_id = key or ("", "")
        item = _key("lost") | {"listed_at": {"S": listed_at}, "task": {"S": task_id}}
        with table_errors("store the progress of the sweep of lost tasks"):
            self._client.put_item(TableName=self._table, Item=item)


def _key(name: str = "due") -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": "SWEEP"}, "sk": {"S": name}}
