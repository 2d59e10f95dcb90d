"""Stores how long ends wait in the queue `x-ends`, for the deadline sweep (`protocol §13`, backstop).

Two items of the tasks table: `pk` = `SWEEP`, `sk` = `ends-fresh` or `ends-late`, `at` = the time of the last such message.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

MarkKind = Literal["fresh", "late"]


class EndsMarks:
    """The marks of one mesh."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def read(self, kind: MarkKind) -> datetime | None:
        """Read a mark; None before the first one.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the age of ends"):
            item = self._client.get_item(TableName=self._table, Key=_key(kind), ConsistentRead=True).get("Item")
        return parse_time(item["at"]["S"]) if item else None

    def write(self, kind: MarkKind, at: datetime) -> None:
        """Store a mark.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("store the age of ends"):
            self._client.put_item(TableName=self._table, Item=_key(kind) | {"at": {"S": format_time(at)}})


def _key(kind: MarkKind) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": "SWEEP"}, "sk": {"S": f"ends-{kind}"}}
