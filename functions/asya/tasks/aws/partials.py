"""Stores partials in the tasks table for an hour (`protocol §7`, FLY).

Items: `pk` = task id, `sk` = `fly#{generation:04d}#{position:06d}#{attempt:06d}#{receive:04d}#{first:06d}-{last:06d}` with the
sequences of the first and the last partial in the batch, so the same key means the same partials; `actor`;
`messages` = JSON text `[{sequence, at, data}, …]`. The items sort by hop, then by publication. They sort before the hops of a
task (`hop#…`), so reads of the task do not include them.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from asya.function.aws.table import Change, Table, put, where
from asya.function.aws.table_items import Item, Key
from asya.protocol.events import PartialEvent
from asya.tasks.aws.task_store import table_errors
from asya.tasks.stream_events import Partial, PartialBatch, PartialKey, partial_batches

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

RETENTION = 3600  # seconds
_PREFIX = "fly#"
_END = "fly$"
_messages_decoder = msgspec.json.Decoder(tuple[Partial, ...])


class PartialStore:
    """The partials of a mesh's tasks."""

    def __init__(self, client: "DynamoDBClient", table: str, sleep: Callable[[float], None]) -> None:
        self._table = Table(client, table)
        self._sleep = sleep

    def save(self, events: Sequence[PartialEvent], now: datetime) -> frozenset[str]:
        """Store partials idempotently; returns the ids of tasks with unwritten ones.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        expires_at = int(now.timestamp()) + RETENTION
        changes = [_put(batch, expires_at) for batch in partial_batches(events)]
        with table_errors("write to the table of tasks"):
            unwritten = self._table.write_many(changes, pause=self._sleep)
        return frozenset(key.pk for key in unwritten)

    def read(self, task_id: str, now: datetime, after: PartialKey | None = None) -> Iterator[PartialBatch]:
        """Read the stored partials of a task consistently, in order.

        Args:
            task_id: the id of the task.
            now: the time for the expiry check.
            after: read only batches that start after this key. A batch that is written late may sort before it.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        first = f"{_sort_key(after)}~" if after else _PREFIX
        with table_errors(f"read the partials of task {task_id}"):
            stored = where("pk = :id AND sk BETWEEN :first AND :end", id=task_id, first=first, end=_END)
            for item in self._table.query(stored):
                if item.integer("expires_at") > now.timestamp():
                    yield _batch(item)


def _sort_key(key: PartialKey) -> str:
    run = f"{key.generation:04d}#{key.position:06d}#{key.attempt:06d}#{key.receive:04d}"
    return f"{_PREFIX}{run}#{key.sequence:06d}"


def _put(batch: PartialBatch, expires_at: int) -> Change:
    messages = msgspec.json.encode(batch.messages).decode()
    key = Key(batch.id, f"{_sort_key(batch.key)}-{batch.messages[-1].sequence:06d}")
    return put(key, {"actor": batch.actor, "messages": messages, "expires_at": expires_at})


def _batch(item: Item) -> PartialBatch:
    _, generation, position, attempt, receive, _ = item.key.sk.split("#")
    return PartialBatch(
        id=item.key.pk,
        generation=int(generation),
        position=int(position),
        attempt=int(attempt),
        receive=int(receive),
        actor=item.text("actor"),
        messages=_messages_decoder.decode(item.text("messages")),
        stored_at=item.integer("expires_at") - RETENTION,
    )
