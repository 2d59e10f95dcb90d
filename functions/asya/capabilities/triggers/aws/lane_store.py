"""The lanes of triggers in the tasks table (`protocol §16.lane`)."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from asya.capabilities.triggers.aws import lane_items
from asya.capabilities.triggers.aws.lane_items import Decision, StoredLane
from asya.capabilities.triggers.lane_changes import Change
from asya.capabilities.triggers.lanes import Entry, Lane, LaneKey, Start
from asya.capabilities.triggers.occurrences import Occurrence
from asya.function.aws.table import Change as ItemChange
from asya.function.aws.table import Table, Written, delete, in_partition, where
from asya.function.aws.table_items import Item
from asya.protocol.table_keys import WAITING_INDEX
from asya.protocol.times import format_time
from asya.tasks.aws.items import waiting_key, waiting_shards
from asya.tasks.aws.task_store import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Refused = Literal["conflict", "decided"]


class LaneStore:
    """The lanes of a mesh.

    Args:
        client: the client of DynamoDB.
        table: the name of the tasks table.
        retention: seconds until what a lane keeps expires, as for tasks.
        pause: sleeps for about so many seconds, with jitter.
    """

    def __init__(
        self, client: "DynamoDBClient", table: str, retention: float, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._table = Table(client, table)
        self._retention = retention
        self._pause = pause

    def read(self, key: LaneKey) -> StoredLane:
        """Read a lane consistently.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the lane of a trigger"):
            item = self._table.get(lane_items.lane_key(key))
        return lane_items.stored_lane(item) if item else StoredLane(Lane(), 0)

    def decision(self, task_id: str) -> Decision | None:
        """What was decided about the occurrence, or the window, of a task; None if nothing was.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read a decision about an occurrence"):
            item = self._table.get(lane_items.decision_key(task_id))
        return lane_items.decision_of(item) if item else None

    def oldest(self, key: LaneKey) -> Start | None:
        """The oldest start that waits in a lane.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the starts that wait in a lane"):
            queued = in_partition(lane_items.partition(key.digest), lane_items.QUEUED_PREFIX)
            items = self._table.page(queued, limit=1).items
        return lane_items.queued_start(items[0]) if items else None

    def waits(self, key: LaneKey, start: Start) -> bool:
        """Whether a start waits in a lane.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read a start that waits in a lane"):
            return bool(self._table.get(lane_items.queued_key(key, start)))

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
        decision = lane_items.put_decision(entry.start.id, key, change.outcome, expires_at)
        parts = [decision.only_if("attribute_not_exists(pk) OR expires_at <= :now", now=int(now.timestamp()))]
        if change.kept_for is not None:
            parts += lane_items.put_payload(key, change.kept_for, entry, expires_at)
        if change.lane != seen.lane:
            parts += self._changes(key, seen, change, now)
        written = self._transact(parts)
        if written:
            return StoredLane(change.lane, seen.revision + (change.lane != seen.lane), expires_at)
        return "decided" if 0 in written.failed else "conflict"

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
            parts.append(lane_items.put_decision(change.closed.id, key, change.outcome, expires_at))
        if not self._transact(parts):
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
                self._table.write(delete(item.key))

    def due(self, until: datetime) -> Iterator[tuple[LaneKey, StoredLane]]:
        """The lanes that somebody must look at since a time, read consistently.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read the lanes that wait"):
            for shard in waiting_shards(until):
                key = waiting_key(lane_items.WAITS_IN, shard)
                condition = "waits_in = :key AND waits_since <= :until"
                waiting = where(condition, key=key, until=format_time(until), index=WAITING_INDEX)
                for page in self._table.pages(waiting):
                    for item in self._table.get_many([entry.key for entry in page], pause=self._pause):
                        yield lane_items.key_of(item), lane_items.stored_lane(item)

    def prolong(self, key: LaneKey, seen: StoredLane, now: datetime) -> None:
        """Keep a lane that nobody has written for long. The sweep does so again if somebody else writes it.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        if seen.expires_at < now.timestamp() + self._retention / 2:
            self.change(key, seen, Change(seen.lane, "started"), now)

    def _payloads(self, key: LaneKey, start: Start) -> Iterator[Item]:
        return self._table.query(in_partition(lane_items.partition(key.digest), lane_items.payload_prefix(start)))

    def _changes(self, key: LaneKey, seen: StoredLane, change: Change, now: datetime) -> list[ItemChange]:
        """The parts of a transaction that replace a lane which was seen."""
        expires_at = self._expiry(now)
        lane = lane_items.put_lane(key, change.lane, seen.revision + 1, now, expires_at)
        parts = [lane.only_if("revision = :seen", seen=seen.revision) if seen.revision else lane.if_absent()]
        if change.queued is not None:
            parts.append(lane_items.put_queued(key, change.queued, expires_at))
        if change.released is not None:
            parts.append(delete(lane_items.queued_key(key, change.released)))
        return parts

    def _transact(self, parts: Sequence[ItemChange]) -> Written:
        """Write all or nothing: nothing if somebody else was faster, or is at work on one of the items."""
        with table_errors("write the lane of a trigger"):
            return self._table.transact(parts, yields=True)

    def _expiry(self, now: datetime) -> int:
        return int(now.timestamp() + self._retention)
