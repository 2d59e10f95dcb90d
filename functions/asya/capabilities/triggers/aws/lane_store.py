"""The lanes of triggers in the tasks table (`protocol §16.lane`)."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import ClientError

from asya.capabilities.triggers.aws import lane_items
from asya.capabilities.triggers.aws.lane_items import Decision, StoredLane
from asya.capabilities.triggers.lane_changes import Change
from asya.capabilities.triggers.lanes import Entry, Lane, LaneKey, Start
from asya.capabilities.triggers.occurrences import Occurrence
from asya.function.aws.conditional_writes import failed_conditions
from asya.protocol.table_keys import WAITING_INDEX
from asya.protocol.times import format_time
from asya.tasks.aws.items import waiting_key, waiting_shards
from asya.tasks.aws.table_calls import chunks, read_items, table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import PutTypeDef, TransactWriteItemTypeDef

    from asya.tasks.aws.items import Item

# Somebody else was faster, or is at work on one of the items.
_CONFLICTS = frozenset({"None", "TransactionConflict", "ConditionalCheckFailed"})

_READ_BATCH = 100  # the limit of BatchGetItem

Refused = Literal["conflict", "decided"]


class LaneStore:
    """The lanes of a mesh.

    Args:
        client: the client of DynamoDB.
        table: the name of the tasks table.
        retention: seconds until what a lane keeps expires, as for tasks.
    """

    def __init__(self, client: "DynamoDBClient", table: str, retention: float) -> None:
        self._client = client
        self._table = table
        self._retention = retention

    def read(self, key: LaneKey) -> StoredLane:
        """Read a lane consistently.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the lane of a trigger"):
            item = self._client.get_item(TableName=self._table, Key=lane_items.lane_key(key), ConsistentRead=True).get(
                "Item"
            )
        return lane_items.stored_lane(item) if item else StoredLane(Lane(), 0)

    def decision(self, task_id: str) -> Decision | None:
        """What was decided about the occurrence, or the window, of a task; None if nothing was.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read a decision about an occurrence"):
            item = self._client.get_item(
                TableName=self._table, Key=lane_items.decision_key(task_id), ConsistentRead=True
            ).get("Item")
        return lane_items.decision_of(item) if item else None

    def oldest(self, key: LaneKey) -> Start | None:
        """The oldest start that waits in a lane.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the starts that wait in a lane"):
            items = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
                ExpressionAttributeValues={
                    ":pk": {"S": lane_items.partition(key.digest)},
                    ":prefix": {"S": lane_items.QUEUED_PREFIX},
                },
                ConsistentRead=True,
                Limit=1,
            )["Items"]
        return lane_items.queued_start(items[0]) if items else None

    def waits(self, key: LaneKey, start: Start) -> bool:
        """Whether a start waits in a lane.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read a start that waits in a lane"):
            return "Item" in self._client.get_item(
                TableName=self._table, Key=lane_items.queued_key(key, start), ConsistentRead=True
            )

    def decide(
        self, key: LaneKey, seen: StoredLane, change: Change, entry: Entry, now: datetime
    ) -> StoredLane | Refused:
        """Write the decision about an occurrence with all that it changes, or nothing.

        Args:
            key: the lane.
            seen: the lane that was seen.
            change: the decision.
            entry: the occurrence.
            now: the time.

        Returns:
            `decided` if the occurrence has a decision already, `conflict` if somebody else has changed the lane.

        Raises:
            TaskStoreError: the table is unavailable; everything or nothing was written.
        """
        expires_at = self._expiry(now)
        parts = [
            self._put(
                lane_items.decision_item(entry.start.id, key, change.outcome, expires_at),
                "attribute_not_exists(pk) OR expires_at <= :now",
                {":now": {"N": str(int(now.timestamp()))}},
            )
        ]
        if change.kept_for is not None:
            kept = lane_items.payload_items(key, change.kept_for, entry, expires_at)
            parts += [self._put(item) for item in kept]
        if change.lane != seen.lane:
            parts += self._changes(key, seen, change, now)
        failed = self._transact(parts)
        if failed is None:
            return StoredLane(change.lane, seen.revision + (change.lane != seen.lane), expires_at)
        return "decided" if 0 in failed else "conflict"

    def change(self, key: LaneKey, seen: StoredLane, change: Change, now: datetime) -> StoredLane | None:
        """Write a change that no occurrence causes; None if somebody else has changed the lane.

        Args:
            key: the lane.
            seen: the lane that was seen.
            change: the change.
            now: the time.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        expires_at = self._expiry(now)
        parts = self._changes(key, seen, change, now)
        if change.closed is not None:
            # Its end belongs to the lane too.
            parts.append(self._put(lane_items.decision_item(change.closed.id, key, change.outcome, expires_at)))
        if self._transact(parts) is not None:
            return None
        return StoredLane(change.lane, seen.revision + 1, expires_at)

    def load(self, key: LaneKey, start: Start) -> list[Occurrence]:
        """The occurrences of a start in their order; none if they have expired.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the payloads of a start"):
            return lane_items.occurrences_of(key, self._payloads(key, start))

    def forget(self, key: LaneKey, start: Start) -> None:
        """Delete the payloads of a start.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("delete the payloads of a start"):
            for item in list(self._payloads(key, start)):
                self._client.delete_item(TableName=self._table, Key={"pk": item["pk"], "sk": item["sk"]})

    def due(self, until: datetime) -> "Iterator[tuple[LaneKey, StoredLane]]":
        """The lanes that somebody must look at since a time, read consistently.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the lanes that wait"):
            for shard in waiting_shards(until):
                pages = self._client.get_paginator("query").paginate(
                    TableName=self._table,
                    IndexName=WAITING_INDEX,
                    KeyConditionExpression="waits_in = :key AND waits_since <= :until",
                    ExpressionAttributeValues={
                        ":key": {"S": waiting_key(lane_items.WAITS_IN, shard)},
                        ":until": {"S": format_time(until)},
                    },
                )
                for page in pages:
                    for entries in chunks(page["Items"], _READ_BATCH):
                        for item in self._items([{"pk": entry["pk"], "sk": entry["sk"]} for entry in entries]):
                            yield lane_items.key_of(item), lane_items.stored_lane(item)

    def prolong(self, key: LaneKey, seen: StoredLane, now: datetime) -> None:
        """Keep a lane that nobody has written for long. The sweep does so again if somebody else writes it.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        if seen.expires_at < now.timestamp() + self._retention / 2:
            self.change(key, seen, Change(seen.lane, "started"), now)

    def _items(self, keys: "Sequence[Item]") -> "Iterator[Item]":
        """Read up to 100 items consistently."""
        while keys:
            answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}})
            yield from answer["Responses"].get(self._table, [])
            # DynamoDB returns at most 16 MB in one answer, and names the keys that it has left out.
            keys = answer["UnprocessedKeys"].get(self._table, {"Keys": []})["Keys"]

    def _payloads(self, key: LaneKey, start: Start) -> "Iterator[Item]":
        prefix = lane_items.payload_prefix(start)
        return read_items(self._client, self._table, lane_items.partition(key.digest), prefix)

    def _changes(
        self, key: LaneKey, seen: StoredLane, change: Change, now: datetime
    ) -> "list[TransactWriteItemTypeDef]":
        """The parts of a transaction that replace a lane which was seen."""
        expires_at = self._expiry(now)
        item = lane_items.lane_item(key, change.lane, seen.revision + 1, now, expires_at)
        if seen.revision:
            parts = [self._put(item, "revision = :seen", {":seen": {"N": str(seen.revision)}})]
        else:
            parts = [self._put(item, "attribute_not_exists(pk)")]
        if change.queued is not None:
            parts.append(self._put(lane_items.queued_item(key, change.queued, expires_at)))
        if change.released is not None:
            parts.append({"Delete": {"TableName": self._table, "Key": lane_items.queued_key(key, change.released)}})
        return parts

    def _put(self, item: "Item", condition: str = "", values: "Item | None" = None) -> "TransactWriteItemTypeDef":
        put: PutTypeDef = {"TableName": self._table, "Item": item}
        if condition:
            put["ConditionExpression"] = condition
        if values:
            put["ExpressionAttributeValues"] = values
        return {"Put": put}

    def _transact(self, parts: "Sequence[TransactWriteItemTypeDef]") -> set[int] | None:
        """Write all or nothing; returns None, or the indexes of the failed conditions if somebody else was faster."""
        with table_errors("write the lane of a trigger"):
            try:
                self._client.transact_write_items(TransactItems=parts)
            except ClientError as error:
                codes = {reason.get("Code", "None") for reason in error.response.get("CancellationReasons", [])}
                if not codes or codes - _CONFLICTS:
                    raise
                return failed_conditions(error)
        return None

    def _expiry(self, now: datetime) -> int:
        return int(now.timestamp() + self._retention)
