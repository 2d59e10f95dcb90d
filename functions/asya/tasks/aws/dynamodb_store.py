"""The tasks table in DynamoDB.

| access pattern | call |
|---|---|
| records by ids | BatchGetItem |
| a record with its hops, record first | one Query, backwards |
| all hops of a task, in order | Query |
| replace a record of a known revision | conditional PutItem, which returns the present record on a conflict |
| write hops by key | BatchWriteItem, unconditional |
| write the hop of a running job | conditional PutItem: an older note on the run replaces no newer one |

`asya.tasks.aws.index` finds tasks by other attributes than the id.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from itertools import chain, takewhile
from typing import TYPE_CHECKING, cast

from asya.protocol.hops import HopKey, HopRecord
from asya.protocol.task import TaskRecord
from asya.protocol.times import parse_time
from asya.tasks.aws import items as task_items
from asya.tasks.aws.index import ListedHours
from asya.tasks.aws.table_calls import backoff_delays, chunks, table_errors, write_items
from asya.tasks.aws.task_store import Conflict, StoredRecord, TaskStoreError, UnreadableRecordError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import KeysAndAttributesTypeDef

    from asya.tasks.aws.items import Item

READ_BATCH = 100  # the limit of BatchGetItem
_THREADS = 8


# Some of the attributes have names that expressions reserve.
_SUMMARY_NAMES = {f"#{name}": name for name in task_items.SUMMARY}


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
        self._client = client
        self._table = table
        self._retention = retention
        self._sleep = sleep
        self._hours = ListedHours(client, table)
        self._map = ThreadPoolExecutor(_THREADS, thread_name_prefix="tasks").map if threaded else map

    def records(self, ids: Collection[str], now: datetime, *, consistent: bool = False) -> dict[str, StoredRecord]:
        """See `TaskStore`. The whole read fails if keys stay unprocessed after the retries."""
        records: dict[str, StoredRecord] = {}
        for batch in chunks(sorted(set(ids)), READ_BATCH):
            for item in self._read([task_items.record_key(task_id) for task_id in batch], consistent=consistent):
                if not task_items.is_expired(item, _epoch(now)):
                    with suppress(UnreadableRecordError):
                        records[item["pk"]["S"]] = _stored(item)
        return records

    def summaries(self, ids: Collection[str], now: datetime) -> dict[str, TaskRecord]:
        """See `TaskStore`. The batches are read concurrently."""

        def read(batch: list[str]) -> list[TaskRecord]:
            records: list[TaskRecord] = []
            for item in self._read([task_items.record_key(task_id) for task_id in batch], is_summary=True):
                if not task_items.is_expired(item, _epoch(now)):
                    with suppress(UnreadableRecordError):
                        records.append(task_items.record_of(item))
            return records

        batches = chunks(sorted(set(ids)), READ_BATCH)
        return {record.id: record for record in chain.from_iterable(self._map(read, batches))}

    def put_record(self, record: TaskRecord, replaces: StoredRecord | None, now: datetime) -> StoredRecord | Conflict:
        """See `TaskStore`. A retry of a write whose response was lost returns a conflict with an equal record."""
        revision = replaces.revision if replaces else 0
        if replaces:
            condition, values = "revision = :seen", {":seen": {"N": str(revision)}}
        else:
            condition, values = "attribute_not_exists(pk) OR expires_at <= :now", {":now": {"N": str(_epoch(now))}}
        expires_at = self._expiry(record, now)
        self._hours.ensure(record, expires_at)
        with table_errors(f"write the record of task {record.id}"):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=task_items.record_item(record, revision + 1, expires_at),
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except self._client.exceptions.ConditionalCheckFailedException as conflict:
                item = cast("Item | None", conflict.response.get("Item"))
                return Conflict(_stored(item) if item else None)
        return StoredRecord(record, revision + 1)

    def withdraw(self, task_id: str) -> None:
        """See `TaskStore`."""
        with table_errors(f"withdraw task {task_id}"):
            try:
                self._client.delete_item(**task_items.withdrawal(self._table, task_id))
            except self._client.exceptions.ConditionalCheckFailedException:
                return  # the record does not exist, or has changed since its creation

    def put_hops(self, hops: Sequence[HopRecord], now: datetime) -> frozenset[str]:
        """See `TaskStore`. A batch has no conditions, so each hop of a running job takes a call of its own."""
        expires_at = _epoch(now) + round(self._retention)
        items = [task_items.hop_item(hop, expires_at) for hop in hops if hop.note_at is None]
        unwritten = write_items(self._client, self._table, items, self._sleep)
        noted = [task_items.hop_item(hop, expires_at) for hop in hops if hop.note_at is not None]
        for _ in self._map(self._put_noted_hop, noted):
            pass  # the iteration raises the errors
        return unwritten

    def _put_noted_hop(self, item: "Item") -> None:
        with (
            table_errors(f"write a hop of task {item['pk']['S']}"),
            suppress(self._client.exceptions.ConditionalCheckFailedException),
        ):
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression=f"attribute_not_exists({task_items.NOTE_AT}) OR {task_items.NOTE_AT} <= :at",
                ExpressionAttributeValues={":at": item[task_items.NOTE_AT]},
            )

    def load(self, task_id: str, now: datetime) -> tuple[TaskRecord, Iterator[HopRecord]] | None:
        """See `TaskStore`. The backward query returns the record first, then its hops from the newest generation down."""
        items = self._partition(task_id)
        first = next(items, None)
        if first is None or first["sk"]["S"] != task_items.RECORD or task_items.is_expired(first, _epoch(now)):
            return None
        record = task_items.record_of(first)
        hops = map(task_items.hop_of, filter(task_items.is_hop, items))
        return record, takewhile(lambda hop: hop.generation >= record.generation, hops)

    def hops(self, task_id: str, now: datetime, after: HopKey | None = None) -> Iterator[HopRecord]:
        """See `TaskStore`."""
        first = task_items.after_hop(after) if after else task_items.HOP_PREFIX
        with table_errors(f"read the hops of task {task_id}"):
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="pk = :id AND sk BETWEEN :first AND :end",
                ExpressionAttributeValues={
                    ":id": {"S": task_id},
                    ":first": {"S": first},
                    ":end": {"S": task_items.HOPS_END},
                },
                ConsistentRead=True,
            )
            for item in chain.from_iterable(page["Items"] for page in pages):
                if not task_items.is_expired(item, _epoch(now)):
                    yield task_items.hop_of(item)

    def _expiry(self, record: TaskRecord, now: datetime) -> int:
        start = max(now, parse_time(record.deadline_at)) if record.deadline_at else now
        return _epoch(start) + round(self._retention)

    def _read(self, keys: "list[Item]", *, consistent: bool = False, is_summary: bool = False) -> "Iterator[Item]":
        for delay in backoff_delays():
            request: KeysAndAttributesTypeDef = {"Keys": keys, "ConsistentRead": consistent}
            if is_summary:
                request["ProjectionExpression"] = ",".join(_SUMMARY_NAMES)
                request["ExpressionAttributeNames"] = _SUMMARY_NAMES
            with table_errors("read the records of tasks"):
                answer = self._client.batch_get_item(RequestItems={self._table: request})
            yield from answer["Responses"].get(self._table, [])
            if self._table not in answer["UnprocessedKeys"]:
                return
            keys = list(answer["UnprocessedKeys"][self._table]["Keys"])
            self._sleep(delay)
        raise TaskStoreError(f"cannot read the records of tasks: the table {self._table} throttles the reads")

    def _partition(self, task_id: str) -> "Iterator[Item]":
        with table_errors(f"read task {task_id}"):
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="pk = :id AND sk BETWEEN :hops AND :record",
                ExpressionAttributeValues={
                    ":id": {"S": task_id},
                    ":hops": {"S": task_items.HOP_PREFIX},
                    ":record": {"S": task_items.RECORD},
                },
                ScanIndexForward=False,
                ConsistentRead=True,
            )
            yield from chain.from_iterable(page["Items"] for page in pages)


def _stored(item: "Item") -> StoredRecord:
    return StoredRecord(task_items.record_of(item), int(item["revision"]["N"]))


def _epoch(moment: datetime) -> int:
    return int(moment.timestamp())
