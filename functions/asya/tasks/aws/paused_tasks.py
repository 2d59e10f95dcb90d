"""Finds paused tasks, tasks whose pause release is unfinished, and waits that are due, by an index (`protocol §11`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, where
from asya.protocol import states
from asya.protocol.table_keys import WAITING_INDEX
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.items import waiting_key, waiting_shards
from asya.tasks.aws.task_store import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class PausedTask:
    """An entry of the index.

    Attributes:
        actor: the pause actor; empty if the record does not name it.
        since: when the pause began, its release was written, or the wait is due.
    """

    task_id: str
    actor: str
    since: datetime


class PausedTasks:
    """The index `waiting` of the tasks table; its reads are eventually consistent."""

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def paused(self, until: datetime) -> Iterator[PausedTask]:
        """Find the tasks that were paused before `until`.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        return self._waiting(states.PAUSED, until)

    def pause_releases(self, until: datetime) -> Iterator[PausedTask]:
        """Find the tasks with an unfinished pause release that was written before `until`.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        return self._waiting("handover", until)

    def due_waits(self, now: datetime) -> Iterator[PausedTask]:
        """Find the tasks whose wait for a time is due, the oldest of each shard first.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        return self._waiting("wait", now)

    def _waiting(self, state: str, until: datetime) -> Iterator[PausedTask]:
        with table_errors("read the waiting tasks"):
            for shard in waiting_shards(until):
                key = waiting_key(state, shard)
                condition = "waits_in = :key AND waits_since <= :until"
                query = where(condition, key=key, until=format_time(until), index=WAITING_INDEX)
                for item in self._table.query(query):
                    yield PausedTask(item.key.pk, item.text("actor", ""), parse_time(item.text("waits_since")))
