"""Stores push configurations of tasks, and shares of hosts and owners (`protocol §13`, `/a2a`).

Configurations are items of the tasks table: `pk` = task id, `sk` = `a2a-push#{id}`, `target` = JSON. Their keys sort
before those of the hops, so reads of a task skip them. The record of a task with configurations says so
(`is_watched`).

`asya.capabilities.a2a.push` states what shares mean. Their items: `pk` = `PUSH#host#{digest}` or
`PUSH#owner#{digest}`, `sk` = `window#{number}`, with the time in use as `seconds_used`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from asya.capabilities.a2a.push import WINDOW, PushTarget, Share, ShareUsedError, shares
from asya.function.aws.table import Table, delete, in_partition, put, update
from asya.function.aws.table_items import Item, Key
from asya.function.lambdas.environment import Environment
from asya.tasks.aws.task_store import TaskStoreError, table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PREFIX = "a2a-push#"
MAX_CONFIGS = 10
"""Configurations of one task; each change of status goes to all of them."""

_decoder = msgspec.json.Decoder(PushTarget)


class PushConfigStore:
    """The push configurations of one mesh. All methods raise TaskStoreError if the table cannot be reached.

    Args:
        retention: Seconds for which a task and its configurations are stored after the deadline.
    """

    def __init__(self, client: "DynamoDBClient", table: str, retention: float) -> None:
        self._table = Table(client, table)
        self._retention = retention

    def put(self, task_id: str, config_id: str, target: PushTarget, until: datetime) -> None:
        """Store a configuration; it replaces one with the same id.

        Args:
            until: The deadline of the task, or the current time if that is later.
        """
        expires_at = int(until.timestamp() + self._retention)
        with table_errors(f"store push configuration {config_id!r} of task {task_id}"):
            content = msgspec.json.encode(target).decode()
            self._table.write(put(_key(task_id, config_id), {"target": content, "expires_at": expires_at}))

    def read(self, task_id: str, config_id: str) -> PushTarget | None:
        """Return a configuration; None if it does not exist."""
        with table_errors(f"read push configuration {config_id!r} of task {task_id}"):
            item = self._table.get(_key(task_id, config_id))
        return _target_of(item) if item else None

    def all(self, task_id: str) -> dict[str, PushTarget]:
        """Return all configurations of a task by id."""
        with table_errors(f"read the push configurations of task {task_id}"):
            items = self._table.page(in_partition(task_id, PREFIX)).items
        return {item.key.sk.removeprefix(PREFIX): _target_of(item) for item in items}

    def delete(self, task_id: str, config_id: str) -> None:
        """Delete a configuration if it exists."""
        with table_errors(f"delete push configuration {config_id!r} of task {task_id}"):
            self._table.write(delete(_key(task_id, config_id)))


def _key(task_id: str, config_id: str) -> Key:
    return Key(task_id, PREFIX + config_id)


def _target_of(item: Item) -> PushTarget:
    return _decoder.decode(item.text("target"))


_KEPT_WINDOWS = 10


@dataclass(frozen=True, slots=True)
class PushShares:
    """The shares of a mesh's hosts and owners.

    Attributes:
        table: the tasks table.
        limit: the seconds that one notification may take.
        warn: logs a share that could not be given back.
    """

    table: Table
    environment: Environment
    limit: float
    warn: Callable[[str], None]

    @contextmanager
    def hold(self, host: str, owner: str | None, now: datetime) -> Iterator[None]:
        """Reserve the time of one notification, and give back what it does not use.

        Raises:
            ShareUsedError: the share of the owner is used up, at this host or in all.
            TaskStoreError: the table is unavailable.
        """
        held: list[Share] = []
        used = 0.0
        try:
            for share in shares(host, owner, now):
                self._reserve(share, now)
                held.append(share)
            started = self.environment.monotonic()
            try:
                yield
            finally:
                used = self.environment.monotonic() - started
        finally:
            for share in held:
                self._give_back(share, self.limit - used)

    def _reserve(self, share: Share, now: datetime) -> None:
        change = update(
            Key(share.pk, share.sk),
            "SET expires_at = :expires ADD seconds_used :limit",
            expires=int(now.timestamp()) + _KEPT_WINDOWS * WINDOW,
            limit=round(self.limit, 3),
        )
        has_room = "attribute_not_exists(seconds_used) OR seconds_used <= :most"
        with table_errors("reserve the time of a push notification"):
            written = self.table.write(change.only_if(has_room, most=round(share.seconds - self.limit, 3)))
        if not written:
            problem = f"notifications {share.of} take more than {share.seconds:g} s in {WINDOW} s"
            raise ShareUsedError(f"{problem}; this one waits, so that others are delivered")

    def _give_back(self, share: Share, seconds: float) -> None:
        """Take unused time off a share, or add what a notification took beyond its limit."""
        change = update(Key(share.pk, share.sk), "ADD seconds_used :unused", unused=round(-seconds, 3))
        try:
            with table_errors("give back the time of a push notification"):
                self.table.write(change)
        except TaskStoreError as error:
            self.warn(f"the time of notifications {share.of} stays reserved for this minute: {error}")
