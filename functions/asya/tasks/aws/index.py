"""Finds tasks by state, parent or deadline (`protocol §13`).

The tasks table has three sparse KEYS_ONLY indexes of records. Every key is spread over shards, because a hot key of an index
throttles the whole table.

- `listed`: `listed_in` = `{state}#{hour of creation}#{shard}`, `listed_at` = `{created_at}#{owner}`. A task begins as `recent`
  and stays there if it succeeds within minutes, so that its end costs no index write. One that is open for longer moves to
  `open` (`asya.tasks.aws.lasting`), and to `succeeded` at its end. One that fails or is canceled moves to `failed`. Separate items
  (`pk` = `LISTED`, `sk` = `hour#{hour}`) name the hours that contain tasks; each process writes one item per hour.
- `children`: `child_of` = `{shard}#{parent id}`, sorted by `listed_at`.
- `due`: `due_in` = `{minute of the deadline}#{shard}`, sorted by `deadline_at`. A task with a late deadline enters it when it moves
  to `open`. The end of a task does not change it: the deadline sweep reads the records anyway.

Reads of an index are eventually consistent.
"""

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from heapq import merge
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from asya.function.aws.table import Page, Table, put, where
from asya.function.aws.table_items import Item, Key, Value
from asya.protocol import states
from asya.protocol.table_keys import CHILDREN_INDEX, DUE_INDEX, LISTED_INDEX
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.task_store import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SHARDS = 4
LASTING_AGE = timedelta(minutes=10)
"""A sweep moves the open tasks of this age from `recent` to `open`."""
WRITTEN_AGE = LASTING_AGE / 2
"""A write of an open task of this age also moves its entry, because the sweep may have passed before the write arrives."""
SOON = 2 * LASTING_AGE
"""A deadline within this time after the creation is in `due` from the beginning. So `due` has all deadlines of open tasks up to so
long after the time before which all open tasks have moved."""
EPOCH = parse_time("1970-01-01T00:00:00Z")
"""The time before all tasks."""
HOURS = "LISTED"
HOUR_PREFIX = "hour#"
# Items per query of a shard at least: smaller pages cost the same.
MIN_PAGE_SIZE = 50
# Characters of the owner in a key; a sort key may have 1,024 bytes.
OWNER_LENGTH = 128
_READERS = 8
_HOUR_LENGTH = len("2026-11-20T09")
_MINUTE_LENGTH = len("2026-11-20T09:30")

ListState = Literal["recent", "open", "succeeded", "failed"]
A = TypeVar("A")
B = TypeVar("B")


class ListKey(NamedTuple):
    """The key of a task in a list; the newest task has the greatest key. An empty id stands below all tasks of its time."""

    listed_at: str
    task_id: str

    @property
    def created_at(self) -> str:
        """When the task began."""
        return self.listed_at.partition("#")[0]

    @property
    def hour(self) -> str:
        """The hour of creation."""
        return self.listed_at[:_HOUR_LENGTH]

    def is_of(self, owner: str) -> bool:
        """Whether the task may belong to this owner; the key may be truncated, so the record decides."""
        return self.listed_at.partition("#")[2] == owner[:OWNER_LENGTH]

    def for_owner(self, owner: str) -> "ListKey":
        """The key without the task and the principal of another owner: it has the same tasks of this owner below it."""
        created_at = self.listed_at.partition("#")[0]
        own = f"{created_at}#{owner[:OWNER_LENGTH]}"
        if self.listed_at == own:
            return self
        return ListKey(own, LAST_ID) if self.listed_at > own else ListKey(created_at, "")


class DueKey(NamedTuple):
    """The key of a task in the index `due`."""

    due_in: str
    deadline_at: str
    task_id: str

    @property
    def minute(self) -> str:
        """The minute of the deadline."""
        return self.due_in[:_MINUTE_LENGTH]


LAST_ID = "\U0010ffff"
NEWEST = ListKey("9999", LAST_ID)


class IndexPage(msgspec.Struct, frozen=True):
    """A page of an index.

    Attributes:
        keys: the keys on the page, newest first.
        complete_to: the key down to which the page is complete; None at the end of the list.
    """

    keys: list[ListKey]
    complete_to: ListKey | None


def index_attributes(record: TaskRecord) -> dict[str, Value]:
    """The attributes of a record that the indexes use as keys."""
    shard = shard_of(record.id)
    attributes: dict[str, Value] = {
        "listed_in": _listed_key(_state(record), hour_of(record), shard),
        "listed_at": list_key(record).listed_at,
    }
    if record.parent_id is not None:
        attributes["child_of"] = f"{shard}#{record.parent_id}"
    if record.deadline_at is not None and (record.lasts or record.due_at is not None or _is_soon(record)):
        # A task may be overdue when its first report arrives; a later sweep must still find it.
        due = max(record.deadline_at, record.created_at, record.due_at or "")
        attributes["due_in"] = f"{due[:_MINUTE_LENGTH]}#{shard}"
    return attributes


def with_age(record: TaskRecord, now: datetime) -> TaskRecord:
    """The record as it is written: an open task that began some minutes ago lasts."""
    if record.lasts or record.is_terminal or now - parse_time(record.created_at) < WRITTEN_AGE:
        return record
    return replace(record, lasts=True)


def list_key(record: TaskRecord) -> ListKey:
    """The key of a task in the lists."""
    return ListKey(f"{record.created_at}#{(record.owner or '')[:OWNER_LENGTH]}", record.id)


def hour_of(record: TaskRecord) -> str:
    """The hour in which a task was created."""
    return record.created_at[:_HOUR_LENGTH]


def minute_of(text: str) -> str:
    """The minute of a time."""
    return text[:_MINUTE_LENGTH]


def shard_of(task_id: str) -> int:
    """The shard of a task."""
    return zlib.crc32(task_id.encode("utf-8", "surrogatepass")) % SHARDS


class TaskIndex:
    """The indexes of one tasks table; every method raises `TaskStoreError` if the table is unavailable.

    Args:
        client: the client of DynamoDB.
        table: the name of the table.
        threaded: whether to read the shards concurrently.
    """

    def __init__(self, client: "DynamoDBClient", table: str, *, threaded: bool = True) -> None:
        self._table = Table(client, table)
        self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="index") if threaded else None

    def hours(self, before: ListKey, now: datetime) -> Iterator[str]:
        """The hours that contain tasks, newest first, starting with the hour of a key."""
        with table_errors("read the hours that contain tasks"):
            query = where(
                "pk = :hours AND sk BETWEEN :first AND :last",
                hours=HOURS,
                first=HOUR_PREFIX,
                last=HOUR_PREFIX + before.hour,
                consistent=False,
                backwards=True,
            )
            for item in self._table.query(query):
                if item.integer("expires_at") > now.timestamp():
                    yield item.key.sk.removeprefix(HOUR_PREFIX)

    def listed(
        self, hour: str, listed: Collection[ListState], before: ListKey, limit: int, recent_since: str = ""
    ) -> IndexPage:
        """Read a page of the tasks of an hour; `limit` is a target, and the page may be longer or shorter.

        Tasks of one time and owner are never on two pages.

        Args:
            recent_since: the time before which no task of the state `recent` is read.
        """
        partitions = {
            _listed_key(state, hour, shard): recent_since if state == "recent" else ""
            for state in listed
            for shard in range(SHARDS)
        }
        return self._page(LISTED_INDEX, "listed_in", partitions, before, limit)

    def recent(self, since: datetime, until: datetime, now: datetime) -> Iterator[ListKey]:
        """The tasks of the state `recent` that began from one time to before another, oldest first."""
        first, last = format_time(since), format_time(until)
        hours = [hour for hour in self.hours(ListKey(last, ""), now) if hour >= first[:_HOUR_LENGTH]]
        for hour in reversed(hours):
            yield from merge(*(self._recent(hour, shard, first, last) for shard in range(SHARDS)))

    def _recent(self, hour: str, shard: int, first: str, last: str) -> Iterator[ListKey]:
        condition = "listed_in = :key AND listed_at BETWEEN :first AND :last"
        key = _listed_key("recent", hour, shard)
        with table_errors("read the recent tasks"):
            for item in self._table.query(where(condition, key=key, first=first, last=last, index=LISTED_INDEX)):
                yield ListKey(item.text("listed_at"), item.key.pk)

    def children(self, parent_id: str, before: ListKey, limit: int) -> IndexPage:
        """Read a page of the children of a task, as `listed` does."""
        partitions = {f"{shard}#{parent_id}": "" for shard in range(SHARDS)}
        return self._page(CHILDREN_INDEX, "child_of", partitions, before, limit)

    def due(self, minute: str, after: DueKey | None = None) -> Iterator[DueKey]:
        """The tasks whose deadline is in a minute, including ended tasks.

        Args:
            after: the task behind which to begin; None for the first one.
        """
        with table_errors("read the tasks that are due"):
            for partition in _due_partitions(minute):
                query = where("due_in = :key", key=partition, index=DUE_INDEX)
                if after is not None and partition <= after.due_in:
                    if partition < after.due_in:
                        continue
                    record = {"pk": after.task_id, "sk": "record"}
                    query = query.behind({"due_in": after.due_in, "deadline_at": after.deadline_at, **record})
                for item in self._table.query(query):
                    yield DueKey(partition, item.text("deadline_at"), item.key.pk)

    def due_in(self, minutes: Iterable[str], limit: int) -> list[str] | None:
        """The ids of the tasks whose deadlines are in these minutes, including ended tasks; None if there are many.

        Args:
            minutes: the minutes.
            limit: the most tasks of one shard of a minute.
        """

        def read(partition: str) -> Page:
            return self._table.page(where("due_in = :key", key=partition, index=DUE_INDEX), limit + 1)

        with table_errors("read the tasks that are due"):
            pages = self._map(read, chain.from_iterable(map(_due_partitions, minutes)))
        if any(len(page.items) > limit or page.has_more for page in pages):
            return None
        return [item.key.pk for page in pages for item in page.items]

    def _page(
        self, index: str, attribute: str, partitions: Mapping[str, str], before: ListKey, limit: int
    ) -> IndexPage:
        """Merge one query per partition, down to the key to which all of them are complete.

        Args:
            partitions: the time before which nothing is read, by partition; empty for everything.
        """
        limit = max(limit, MIN_PAGE_SIZE)
        read = [partition for partition, since in partitions.items() if before.listed_at >= since]
        pages = self._map(
            lambda partition: _since(partitions[partition], self._query(index, attribute, partition, before, limit)),
            read,
        )
        ends = [page.complete_to for page in pages if page.complete_to is not None]
        complete_to = max(ends) if ends else None
        # A task that moves meanwhile, because its status changes, may stand in two partitions.
        keys = sorted({key for page in pages for key in page.keys}, reverse=True)
        return IndexPage([key for key in keys if complete_to is None or key >= complete_to], complete_to)

    def _query(self, index: str, attribute: str, partition: str, before: ListKey, limit: int) -> IndexPage:
        # No id is below the empty one: the tasks of that time have been read.
        sign = "<=" if before.task_id else "<"
        condition = f"{attribute} = :key AND listed_at {sign} :before"
        query = where(condition, key=partition, before=before.listed_at, index=index, backwards=True)
        with table_errors(f"read the index {index} of tasks"):
            page = self._table.page(query, limit)
        keys = _keys(page.items)
        if not page.has_more or not keys:
            return IndexPage([key for key in keys if key < before], None)
        # The page may lack tasks with the same time as its last one; the next page reads all of them.
        last = keys[-1].listed_at
        complete = [key for key in keys if key.listed_at > last]
        complete_to = ListKey(last, LAST_ID)
        if not complete:
            complete, complete_to = self._of_time(index, attribute, partition, last), ListKey(last, "")
        return IndexPage([key for key in complete if key < before], complete_to)

    def _of_time(self, index: str, attribute: str, partition: str, listed_at: str) -> list[ListKey]:
        """Read all tasks of a partition with the same sort key: their order is undefined, so no page can end among them."""
        with table_errors(f"read the index {index} of tasks"):
            condition = f"{attribute} = :key AND listed_at = :listed_at"
            return _keys(self._table.query(where(condition, key=partition, listed_at=listed_at, index=index)))

    def _map(self, function: Callable[[A], B], values: Iterable[A]) -> list[B]:
        return list(self._pool.map(function, values) if self._pool else map(function, values))


class ListedHours:
    """Registers the hours that contain tasks, before the first record of an hour is written."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)
        self._registered: dict[str, int] = {}

    def ensure(self, record: TaskRecord, expires_at: int) -> None:
        """Register a record's hour at least until the record expires; a cached hour costs no call.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        hour = hour_of(record)
        if self._registered.get(hour, 0) >= expires_at:
            return
        until = expires_at + 86400
        change = put(Key(HOURS, HOUR_PREFIX + hour), {"expires_at": until})
        with table_errors("register an hour that contains tasks"):
            # A refusal means that it is registered for longer.
            self._table.write(change.only_if("attribute_not_exists(pk) OR expires_at < :until", until=until))
        self._registered[hour] = until


def _due_partitions(minute: str) -> list[str]:
    return [f"{minute}#{shard}" for shard in range(SHARDS)]


def _keys(items: Iterable[Item]) -> list[ListKey]:
    return [ListKey(item.text("listed_at"), item.key.pk) for item in items]


def _since(since: str, page: IndexPage) -> IndexPage:
    """The part of a page from a time on; it is the end of the list if the page goes further back."""
    keys = [key for key in page.keys if key.listed_at >= since]
    is_end = page.complete_to is None or page.complete_to.listed_at < since
    return IndexPage(keys, None if is_end else page.complete_to)


def _state(record: TaskRecord) -> ListState:
    if record.is_terminal and not record.has_succeeded:
        return states.FAILED
    if not record.lasts:
        return "recent"
    return states.SUCCEEDED if record.has_succeeded else "open"


def _is_soon(record: TaskRecord) -> bool:
    """Whether a deadline may come before a sweep has moved the task to `open`."""
    return parse_time(record.deadline_at or record.created_at) - parse_time(record.created_at) < SOON


def _listed_key(state: ListState, hour: str, shard: int) -> str:
    return f"{state}#{hour}#{shard}"
