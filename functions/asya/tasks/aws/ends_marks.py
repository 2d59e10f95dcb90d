"""Stores how long ends wait in the queue `x-ends`, for the deadline sweep (`protocol §13`, backstop).

Two items of the tasks table: `pk` = `SWEEP`, `sk` = `ends-fresh` or `ends-late`, `at` = the time of the last such message.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Key
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MarkKind = Literal["fresh", "late"]


class EndsMarks:
    """The marks of one mesh."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def read(self, kind: MarkKind) -> datetime | None:
        """Read a mark; None before the first one.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the age of ends"):
            item = self._table.get(_key(kind))
        return parse_time(item.text("at")) if item else None

    def write(self, kind: MarkKind, at: datetime) -> None:
        """Store a mark.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("store the age of ends"):
            self._table.write(put(_key(kind), {"at": format_time(at)}))


def _key(kind: MarkKind) -> Key:
    return Key("SWEEP", f"ends-{kind}")
