"""The tasks table in DynamoDB.

| access pattern | call |
|---|---|
| records by ids | BatchGetItem |
| a record with its hops, record first | one Query, backwards |
| all hops of a task, in order | two Queries: of hops alone and of groups |
| replace a record of a known revision | conditional PutItem, which returns the present record on a conflict |
| write hops, those of one task in one item | BatchWriteItem, unconditional |
| write the hop of a running job | conditional PutItem: an older note on the run replaces no newer one |

`asya.tasks.aws.index` finds tasks by other attributes than the id.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from heapq import merge
from itertools import chain
from typing import TYPE_CHECKING

from asya.function.aws.table import READ_BATCH, Change, Table, chunks, where
from asya.function.aws.table_items import Item
from asya.protocol.hops import HopKey, HopRecord
from asya.protocol.task import TaskRecord
from asya.protocol.times import deadline_after, parse_time
from asya.tasks.aws import items as task_items
from asya.tasks.aws.index import ListedHours, with_age
from asya.tasks.aws.task_store import Conflict, StoredRecord, UnreadableRecordError, table_errors
from asya.tasks.hop_groups import hop_groups, in_order

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_THREADS = 8
# An older note on a running job replaces no newer one.
_IS_NEWER = f"attribute_not_exists({task_items.NOTE_AT}) OR {task_items.NOTE_AT} <= :at"


class DynamoTaskStore:
    """`TaskStore` in a DynamoDB table.

    Args:
        client: the client of DynamoDB.
        table: the name of the table.
        retention: seconds from a task's last change, or its later deadline, to its expiry.
        sleep: waits for seconds, with jitter, so that throttled callers do not retry in lockstep.
        threaded: whether to write the hops of running jobs, and to read summaries, concurrently.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        retention: float,
        sleep: Callable[[float], None] = time.sleep,
        *,
        threaded: bool = False,
    ) -> None:
        self._table = Table(client, table)
        self._retention = retention
        self._sleep = sleep
        self._hours = ListedHours(client, table)
        self._map = ThreadPoolExecutor(_THREADS, thread_name_prefix="tasks").map if threaded else map

    def records(self, ids: Collection[str], now: datetime, *, consistent: bool = False) -> dict[str, StoredRecord]:
        """See `TaskStore`. The whole read fails if keys stay unprocessed after the retries."""
        records: dict[str, StoredRecord] = {}
        for item in self._read(sorted(set(ids)), consistent=consistent):
            if not task_items.is_expired(item, _epoch(now)):
                with suppress(UnreadableRecordError):
                    records[item.key.pk] = _stored(item)
        return records

    def summaries(self, ids: Collection[str], now: datetime) -> dict[str, TaskRecord]:
        """See `TaskStore`. The batches are read concurrently."""

        def read(batch: list[str]) -> list[TaskRecord]:
            records: list[TaskRecord] = []
            for item in self._read(batch, task_items.SUMMARY):
                if not task_items.is_expired(item, _epoch(now)):
                    with suppress(UnreadableRecordError):
                        records.append(task_items.record_of(item))
            return records

        batches = chunks(sorted(set(ids)), READ_BATCH)
        return {record.id: record for record in chain.from_iterable(self._map(read, batches))}

    def put_record(self, record: TaskRecord, replaces: StoredRecord | None, now: datetime) -> StoredRecord | Conflict:
        """See `TaskStore`. A retry of a write whose response was lost returns a conflict with an equal record."""
        record = with_age(record, now)
        revision = replaces.revision if replaces else 0
        expires_at = self._expiry(record, now)
        self._hours.ensure(record, expires_at)
        change = task_items.put_record(record, revision + 1, expires_at)
        if replaces:
            change = change.only_if("revision = :seen", seen=revision)
        else:
            change = change.only_if("attribute_not_exists(pk) OR expires_at <= :now", now=_epoch(now))
        with table_errors(f"write the record of task {record.id}"):
            written = self._table.write(change, shows_present=True)
        if written:
            return StoredRecord(record, revision + 1)
        return Conflict(_stored(written.item) if written.item else None)

    def withdraw(self, task_id: str) -> None:
        """See `TaskStore`."""
        with table_errors(f"withdraw task {task_id}"):
            # A refusal means that the record does not exist, or has changed since its creation.
            self._table.write(task_items.withdrawal(task_id))

    def put_hops(self, hops: Sequence[HopRecord], now: datetime) -> frozenset[str]:
        """See `TaskStore`. A batch has no conditions, so each hop of a running job takes a call of its own."""
        expires_at = _epoch(now) + round(self._retention)
        plain: list[Change] = []
        noted: list[Change] = []
        for group in hop_groups(hops):
            change = task_items.put_hops(group, expires_at)
            if (note_at := group[0].note_at) is None:
                plain.append(change)
            else:
                noted.append(change.only_if(_IS_NEWER, at=note_at))
        with table_errors("write to the table of tasks"):
            unwritten = self._table.write_many(plain, pause=self._sleep)
        for _ in self._map(self._put_noted_hop, noted):
            pass  # the iteration raises the errors
        return frozenset(key.pk for key in unwritten)

    def _put_noted_hop(self, change: Change) -> None:
        with table_errors(f"write a hop of task {change.key.pk}"):
            self._table.write(change)

    def load(self, task_id: str, now: datetime) -> tuple[TaskRecord, Iterator[HopRecord]] | None:
        """See `TaskStore`. The backward query returns the record first, then groups and hops from the newest generation down."""
        items = self._partition(task_id)
        first = next(items, None)
        if first is None or first.key.sk != task_items.RECORD or task_items.is_expired(first, _epoch(now)):
            return None
        record = task_items.record_of(first)
        return record, _of_generation(filter(task_items.is_hop, items), record.generation)

    def hops(self, task_id: str, now: datetime, after: HopKey | None = None) -> Iterator[HopRecord]:
        """See `TaskStore`."""
        first = task_items.after_hop(after) if after else task_items.HOP_PREFIX
        alone = self._hop_items(task_id, first, task_items.HOPS_END, now)
        first = task_items.first_group(after) if after else task_items.GROUP_PREFIX
        groups = self._hop_items(task_id, first, task_items.GROUPS_END, now)
        for hop in merge(in_order(alone), in_order(groups), key=lambda hop: (hop.key, hop.stage)):
            if after is None or hop.key > after:
                yield hop

    def _hop_items(self, task_id: str, first: str, end: str, now: datetime) -> Iterator[tuple[HopRecord, ...]]:
        with table_errors(f"read the hops of task {task_id}"):
            query = where("pk = :id AND sk BETWEEN :first AND :end", id=task_id, first=first, end=end)
            for item in self._table.query(query):
                if not task_items.is_expired(item, _epoch(now)):
                    yield task_items.hops_of(item)

    def _expiry(self, record: TaskRecord, now: datetime) -> int:
        deadline = parse_time(record.deadline_at) if record.deadline_at else now
        # The code of an actor may have written any deadline into its envelope.
        start = min(max(now, deadline), deadline_after(now))
        return _epoch(start) + round(self._retention)

    def _read(self, ids: Sequence[str], attributes: Sequence[str] = (), *, consistent: bool = False) -> Iterator[Item]:
        keys = map(task_items.record_key, ids)
        with table_errors("read the records of tasks"):
            yield from self._table.get_many(keys, attributes, consistent=consistent, pause=self._sleep)

    def _partition(self, task_id: str) -> Iterator[Item]:
        first, last = task_items.HOP_PREFIX, task_items.RECORD
        query = where("pk = :id AND sk BETWEEN :first AND :last", id=task_id, first=first, last=last, backwards=True)
        with table_errors(f"read task {task_id}"):
            yield from self._table.query(query)


def _of_generation(items: Iterator[Item], generation: int) -> Iterator[HopRecord]:
    """The hops of a generation and of later ones; the items are groups and then hops, each from the newest generation down."""
    for item in items:
        hops = task_items.hops_of(item)
        if hops[0].generation >= generation:
            yield from hops
        elif not task_items.is_group(item):
            return


def _stored(item: Item) -> StoredRecord:
    return StoredRecord(task_items.record_of(item), item.integer("revision"))


def _epoch(moment: datetime) -> int:
    return int(moment.timestamp())
