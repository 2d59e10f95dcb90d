"""The states of backfills in the tasks table: `pk` = `BACKFILLS`, `sk` = `backfill#{id}` (`protocol §16.backfill.state`)."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from asya.capabilities.triggers.operators.backfill import Backfill
from asya.function.aws.table import Change, Table, in_partition, put
from asya.function.aws.table_items import Item, Key, Value
from asya.tasks.aws.task_store import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

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
        self._table = Table(client, table)
        self._retention = retention

    def create(self, backfill: Backfill, now: datetime) -> bool:
        """Write a new backfill; False if there is one with its id.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("write a backfill"):
            return bool(self._table.write(self._put(backfill, 1, now).if_absent()))

    def read(self, backfill_id: str) -> StoredBackfill | None:
        """Read the latest state of a backfill; None if it does not exist.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read a backfill"):
            item = self._table.get(_key(backfill_id))
        return _stored(item) if item else None

    def read_all(self, now: datetime) -> list[Backfill]:
        """Read all backfills, the newest first.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the backfills"):
            items = list(self._table.query(in_partition(PARTITION, _PREFIX)))
        alive = [item for item in items if item.number("expires_at", math.inf) > now.timestamp()]
        return sorted((_stored(item).backfill for item in alive), key=lambda each: each.created_at, reverse=True)

    def replace(self, seen: StoredBackfill, backfill: Backfill, now: datetime) -> StoredBackfill | None:
        """Replace the state that was seen; None if another process has changed it.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        revision = seen.revision + 1
        change = self._put(backfill, revision, now).only_if("revision = :seen", seen=seen.revision)
        with table_errors("write a backfill"):
            return StoredBackfill(backfill, revision) if self._table.write(change) else None

    def _put(self, backfill: Backfill, revision: int, now: datetime) -> Change:
        has_ended = not backfill.is_open and not backfill.is_stopped
        attributes: dict[str, Value] = {
            "revision": revision,
            "backfill": msgspec.json.encode(backfill).decode(),
            "expires_at": int(now.timestamp() + self._retention) if has_ended else None,
        }
        return put(_key(backfill.id), attributes)


def _key(backfill_id: str) -> Key:
    return Key(PARTITION, f"{_PREFIX}{backfill_id}")


def _stored(item: Item) -> StoredBackfill:
    return StoredBackfill(_decoder.decode(item.text("backfill")), item.integer("revision"))
