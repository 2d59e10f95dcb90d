"""Finding tasks without knowing their ids: by what has become of them, by parent, by deadline (`protocol §13`).

Three sparse indexes of the tasks table, on records only, KEYS_ONLY; every key is spread over shards, because a hot key of an
index throttles the whole table.

- `listed`: `listed_in` = `{state}#{hour of creation}#{shard}`, `listed_at` = `{created_at}#{owner}`. The states are open, succeeded
  and failed (canceled too): while a task is open no report costs the index anything. Which hours hold any task is noted in items
  of their own (`pk` = `LISTED`, `sk` = `hour#{hour}`), one write per hour and process.
- `children`: `child_of` = `{shard}#{parent id}`, sorted by `listed_at`.
- `due`: `due_in` = `{minute of the deadline}#{shard}`, sorted by `deadline_at`. Never changed when a task ends: whoever looks
  into a minute reads the records anyway.

Reads of an index follow the table within a moment.
"""

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from asya.protocol.task import TaskRecord
from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

LISTED_INDEX, CHILDREN_INDEX, DUE_INDEX = "listed", "children", "due"
SHARDS = 4
HOURS = "LISTED"
HOUR_PREFIX = "hour#"
# What one look into a shard reads at the least: the rest of the page is paid for anyway.
MIN_PAGE_SIZE = 50
# Of an owner's name in a key, which may not be longer than 1,024 bytes.
OWNER_LENGTH = 128
_READERS = 8
_HOUR_LENGTH = len("2026-11-20T09")
_MINUTE_LENGTH = len("2026-11-20T09:30")

ListState = Literal["open", "succeeded", "failed"]
A = TypeVar("A")
B = TypeVar("B")


class ListKey(NamedTuple):
    """Where a task stands in a list; the newest has the greatest."""

    listed_at: str
    task_id: str

    @property
    def hour(self) -> str:
        """The hour it was created in."""
        return self.listed_at[:_HOUR_LENGTH]

    def is_of(self, owner: str) -> bool:
        """Whether it may be this owner's task; only its record says so for sure."""
        return self.listed_at.partition("#")[2] == owner[:OWNER_LENGTH]


LAST_ID = "\U0010ffff"
NEWEST = ListKey("9999", LAST_ID)


@dataclass(frozen=True, slots=True)
class IndexPage:
    """What one look found, newest first, and down to where it has seen everything; None if to the end."""

    found: list[ListKey]
    seen_to: ListKey | None


def index_attributes(record: TaskRecord) -> "dict[str, AttributeValueTypeDef]":
    """What places a record in the indexes."""
    shard = shard_of(record.id)
    placed: dict[str, AttributeValueTypeDef] = {
        "listed_in": {"S": _listed_key(_state(record), hour_of(record), shard)},
        "listed_at": {"S": f"{record.created_at}#{(record.owner or '')[:OWNER_LENGTH]}"},
    }
    if record.parent_id is not None:
        placed["child_of"] = {"S": f"{shard}#{record.parent_id}"}
    if record.deadline_at is not None:
        # A task that is only now heard of may be late already; its minute is one that is still to be looked into.
        due = max(record.deadline_at, record.created_at)
        placed["due_in"] = {"S": f"{due[:_MINUTE_LENGTH]}#{shard}"}
    return placed


def hour_of(record: TaskRecord) -> str:
    """The hour a task was created in."""
    return record.created_at[:_HOUR_LENGTH]


def minute_of(text: str) -> str:
    """The minute of a time."""
    return text[:_MINUTE_LENGTH]


def shard_of(task_id: str) -> int:
    """Which of the shards a task is in."""
    return zlib.crc32(task_id.encode("utf-8", "surrogatepass")) % SHARDS


class TaskIndex:
    """The indexes of one tasks table.

    Args:
        threaded: whether several shards may be read at once.
    """

    def __init__(self, client: "DynamoDBClient", table: str, *, threaded: bool = True) -> None:
        self._client = client
        self._table = table
        self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="index") if threaded else None

    def hours(self, before: ListKey, now: datetime) -> Iterator[str]:
        """The hours that hold tasks, newest first, from that of a place on.

        Raises:
            TaskStoreError: if the table cannot be read; all methods do.
        """
        with table_errors("read which hours hold tasks"):
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="pk = :hours AND sk BETWEEN :first AND :last",
                ExpressionAttributeValues={
                    ":hours": {"S": HOURS},
                    ":first": {"S": HOUR_PREFIX},
                    ":last": {"S": HOUR_PREFIX + before.hour},
                },
                ScanIndexForward=False,
            )
            for page in pages:
                for item in page["Items"]:
                    if int(item["expires_at"]["N"]) > now.timestamp():
                        yield item["sk"]["S"].removeprefix(HOUR_PREFIX)

    def listed(self, hour: str, states: Collection[ListState], before: ListKey, limit: int) -> IndexPage:
        """IndexPage for tasks of an hour.

        Args:
            limit: about so many are wanted.
        """
        keys = [_listed_key(state, hour, shard) for state in states for shard in range(SHARDS)]
        return self._look(LISTED_INDEX, "listed_in", keys, before, limit)

    def children(self, parent_id: str, before: ListKey, limit: int) -> IndexPage:
        """IndexPage for children of a task."""
        keys = [f"{shard}#{parent_id}" for shard in range(SHARDS)]
        return self._look(CHILDREN_INDEX, "child_of", keys, before, limit)

    def due(self, minute: str) -> Iterator[str]:
        """The tasks whose deadline is in a minute, ended or not."""
        with table_errors("read what is due"):
            for shard in range(SHARDS):
                pages = self._client.get_paginator("query").paginate(
                    TableName=self._table,
                    IndexName=DUE_INDEX,
                    KeyConditionExpression="due_in = :key",
                    ExpressionAttributeValues={":key": {"S": f"{minute}#{shard}"}},
                )
                for page in pages:
                    yield from (item["pk"]["S"] for item in page["Items"])

    def _look(self, index: str, attribute: str, keys: Sequence[str], before: ListKey, limit: int) -> IndexPage:
        """One query per shard, put together: no further down than where every shard has been seen."""
        limit = max(limit, MIN_PAGE_SIZE)
        looks = self._each(lambda key: self._query(index, attribute, key, before, limit), keys)
        ends = [look.seen_to for look in looks if look.seen_to is not None]
        seen_to = max(ends) if ends else None
        found = sorted((place for look in looks for place in look.found), reverse=True)
        return IndexPage([place for place in found if seen_to is None or place >= seen_to], seen_to)

    def _query(self, index: str, attribute: str, key: str, before: ListKey, limit: int) -> IndexPage:
        with table_errors(f"read the index {index} of tasks"):
            page = self._client.query(
                TableName=self._table,
                IndexName=index,
                KeyConditionExpression=f"{attribute} = :key AND listed_at <= :before",
                ExpressionAttributeValues={":key": {"S": key}, ":before": {"S": before.listed_at}},
                ScanIndexForward=False,
                Limit=limit,
            )
        places = [ListKey(item["listed_at"]["S"], item["pk"]["S"]) for item in page["Items"]]
        if "LastEvaluatedKey" not in page or not places:
            return IndexPage([place for place in places if place < before], None)
        # Of several tasks of the very same time some may not have been seen; they are left for the next look.
        last = places[-1].listed_at
        kept = [place for place in places if place.listed_at > last]
        seen_to = ListKey(last, LAST_ID) if kept else min(places)
        return IndexPage([place for place in (kept or places) if place < before], seen_to)

    def _each(self, look: Callable[[A], B], keys: Iterable[A]) -> list[B]:
        return list(self._pool.map(look, keys) if self._pool else map(look, keys))


class ListedHours:
    """Notes which hours hold tasks, before the first record of an hour is written."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table
        self._noted: dict[str, int] = {}

    def ensure(self, record: TaskRecord, expires_at: int) -> None:
        """Make sure that a record's hour is noted for as long as the record is kept; nearly always it is known to be.

        Raises:
            TaskStoreError: if the table does not take it.
        """
        hour = hour_of(record)
        if self._noted.get(hour, 0) >= expires_at:
            return
        until = expires_at + 86400
        noted_for_longer = suppress(self._client.exceptions.ConditionalCheckFailedException)
        with table_errors("note an hour that holds tasks"), noted_for_longer:
            self._client.put_item(
                TableName=self._table,
                Item={"pk": {"S": HOURS}, "sk": {"S": HOUR_PREFIX + hour}, "expires_at": {"N": str(until)}},
                ConditionExpression="attribute_not_exists(pk) OR expires_at < :until",
                ExpressionAttributeValues={":until": {"N": str(until)}},
            )
        self._noted[hour] = until


def _state(record: TaskRecord) -> ListState:
    if record.status == "succeeded":
        return "succeeded"
    return "failed" if record.is_terminal else "open"


def _listed_key(state: ListState, hour: str, shard: int) -> str:
    return f"{state}#{hour}#{shard}"
