"""The states of backfills in the tasks table: `pk` = `BACKFILLS`, `sk` = `backfill#{id}` (`protocol §16.backfill.state`)."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from asya.capabilities.triggers.operators.backfill import Backfill
from asya.tasks.aws.table_calls import read_items, table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    from asya.tasks.aws.items import Item

PARTITION = "BACKFILLS"
# Keeps the items apart from a task whose sender chose `BACKFILLS` as its id.
_PREFIX = "backfill#"

_decoder = msgspec.json.Decoder(Backfill)


@dataclass(frozen=True, slots=True)
class StoredBackfill:
    """A backfill with its revision, which counts the writes."""

    backfill: Backfill
    revision: int


class Backfills:
    """The backfills of a mesh. All lie in one partition, which a sweep reads with one query.

    Args:
        client: the client of DynamoDB.
        table: the name of the tasks table.
        retention: seconds for which an ended backfill is kept, as tasks are.
    """

    def __init__(self, client: "DynamoDBClient", table: str, retention: float) -> None:
        self._client = client
        self._table = table
        self._retention = retention

    def create(self, backfill: Backfill, now: datetime) -> bool:
        """Write a new backfill; False if there is one with its id.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("write a backfill"):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=self._item(backfill, 1, now),
                    ConditionExpression="attribute_not_exists(pk)",
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def read(self, backfill_id: str) -> StoredBackfill | None:
        """Read the latest state of a backfill; None if it does not exist.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read a backfill"):
            item = self._client.get_item(TableName=self._table, Key=_key(backfill_id), ConsistentRead=True).get("Item")
        return _stored(item) if item else None

    def read_all(self, now: datetime) -> list[Backfill]:
        """Read all backfills, the newest first.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the backfills"):
            items = list(read_items(self._client, self._table, PARTITION, _PREFIX))
        alive = [item for item in items if int(item.get("expires_at", _NEVER)["N"]) > now.timestamp()]
        return sorted((_stored(item).backfill for item in alive), key=lambda each: each.created_at, reverse=True)

    def replace(self, seen: StoredBackfill, backfill: Backfill, now: datetime) -> StoredBackfill | None:
        """Replace the state that was seen; None if another process has changed it.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        revision = seen.revision + 1
        with table_errors("write a backfill"):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=self._item(backfill, revision, now),
                    ConditionExpression="revision = :seen",
                    ExpressionAttributeValues={":seen": {"N": str(seen.revision)}},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return None
        return StoredBackfill(backfill, revision)

    def _item(self, backfill: Backfill, revision: int, now: datetime) -> "dict[str, AttributeValueTypeDef]":
        item: dict[str, AttributeValueTypeDef] = {
            **_key(backfill.id),
            "revision": {"N": str(revision)},
            "backfill": {"S": msgspec.json.encode(backfill).decode()},
        }
        if not backfill.is_open and backfill.state != "stopped":
            item["expires_at"] = {"N": str(int(now.timestamp() + self._retention))}
        return item


_NEVER = {"N": "99999999999"}


def _key(backfill_id: str) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": PARTITION}, "sk": {"S": f"{_PREFIX}{backfill_id}"}}


def _stored(item: "Item") -> StoredBackfill:
    return StoredBackfill(_decoder.decode(item["backfill"]["S"]), int(item["revision"]["N"]))
