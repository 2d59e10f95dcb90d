"""The shares of hosts and owners in the tasks table (`protocol §13.a2a.push.shares`).

`asya.capabilities.a2a.push_shares` states what they mean. Items: `pk` = `PUSH#host#{digest}` or `PUSH#owner#{digest}`, `sk` =
`window#{number}`, with the time in use as `seconds_used`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from asya.capabilities.a2a.push_shares import WINDOW, Share, ShareUsedError, shares
from asya.function.aws.table import Table, update
from asya.function.aws.table_items import Key
from asya.function.lambdas.environment import Environment
from asya.tasks.aws.table_calls import table_errors
from asya.tasks.aws.task_store import TaskStoreError

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
