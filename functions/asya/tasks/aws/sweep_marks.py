"""How far the sweep of deadlines has come; one item of the tasks table: `pk` = `SWEEP`, `sk` = `due`."""

from datetime import datetime
from typing import TYPE_CHECKING

from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


class SweepMarks:
    """The mark of one mesh. Two sweeps at once may set it back: then a minute is looked at twice."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def read(self) -> datetime | None:
        """The last minute that was looked at; None if none ever was.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        with table_errors("read how far the sweep has come"):
            item = self._client.get_item(TableName=self._table, Key=_key(), ConsistentRead=True).get("Item")
        return parse_time(item["until"]["S"]) if item else None

    def write(self, until: datetime) -> None:
        """Note that a minute has been looked at.

        Raises:
            TaskStoreError: if the table does not take it.
        """
        with table_errors("note how far the sweep has come"):
            self._client.put_item(TableName=self._table, Item=_key() | {"until": {"S": format_time(until)}})


def _key() -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": "SWEEP"}, "sk": {"S": "due"}}
