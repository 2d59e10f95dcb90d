"""Handlers' messages to those who look on, in the tasks table, for an hour (`protocol §7`, FLY).

Items: `pk` = task id, `sk` = `fly#{generation:04d}#{position:06d}#{attempt:06d}#{receive:04d}#{sequence:06d}` with the
sequence of the first message in it; `actor`; `messages` = JSON text `[{sequence, at, data}, …]`. Sort keys put them in the order
of the hops, and of what was said within one. They lie before a task's hops (`hop#…`), so that whoever reads the
task never reads them.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from asya.protocol.events import PartialEvent
from asya.tasks.aws.table_calls import table_errors, write_items
from asya.tasks.partials import Partial, PartialBatch, PartialKey, partial_batches

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    from asya.tasks.aws.items import Item

RETENTION_SECONDS = 3600
_PREFIX = "fly#"
_END = "fly$"
_messages_decoder = msgspec.json.Decoder(tuple[Partial, ...])


class PartialStore:
    """The messages of a mesh's tasks."""

    def __init__(self, client: "DynamoDBClient", table: str, pause: Callable[[float], None]) -> None:
        self._client = client
        self._table = table
        self._pause = pause

    def save(self, events: Sequence[PartialEvent], now: datetime) -> frozenset[str]:
        """Keep messages; written again, nothing changes. Gives the ids of tasks of which some could not be written.

        Raises:
            TaskStoreError: if the table cannot be reached.
        """
        expires_at = int(now.timestamp()) + RETENTION_SECONDS
        items = [_item(part, expires_at) for part in partial_batches(events)]
        return write_items(self._client, self._table, items, self._pause)

    def read(self, task_id: str, now: datetime, after: PartialKey | None = None) -> Iterator[PartialBatch]:
        """What is kept of a task's messages, in order, page by page, as it is now.

        Args:
            after: only parts that begin behind this message. What is written late sorts where it belongs, perhaps before it.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        first = f"{_sort_key(after)}~" if after else _PREFIX
        with table_errors(f"read the messages of task {task_id}"):
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="pk = :id AND sk BETWEEN :first AND :end",
                ExpressionAttributeValues={":id": {"S": task_id}, ":first": {"S": first}, ":end": {"S": _END}},
                ConsistentRead=True,
            )
            for page in pages:
                for item in page["Items"]:
                    if int(item["expires_at"]["N"]) > now.timestamp():
                        yield _part(item)


def _sort_key(place: PartialKey) -> str:
    run = f"{place.generation:04d}#{place.position:06d}#{place.attempt:06d}#{place.receive:04d}"
    return f"{_PREFIX}{run}#{place.sequence:06d}"


def _item(part: PartialBatch, expires_at: int) -> "dict[str, AttributeValueTypeDef]":
    return {
        "pk": {"S": part.id},
        "sk": {"S": _sort_key(part.place)},
        "actor": {"S": part.actor},
        "messages": {"S": msgspec.json.encode(part.messages).decode()},
        "expires_at": {"N": str(expires_at)},
    }


def _part(item: "Item") -> PartialBatch:
    _, generation, position, attempt, receive, _ = item["sk"]["S"].split("#")
    return PartialBatch(
        id=item["pk"]["S"],
        generation=int(generation),
        position=int(position),
        attempt=int(attempt),
        receive=int(receive),
        actor=item["actor"]["S"],
        messages=_messages_decoder.decode(item["messages"]["S"]),
    )
