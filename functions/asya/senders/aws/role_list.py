"""The roles of the mesh by their ids, in DynamoDB (`protocol §4.roles`)."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, put, update
from asya.function.aws.table_items import Key
from asya.protocol import names
from asya.protocol.table_keys import ROLE_PREFIX
from asya.senders.roles import KEEP_FORMER, ListChange

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ASK_AGAIN = timedelta(minutes=1)
"""How long a sender that is not listed counts as unlisted: a stranger must not cost a read for each message."""
_COMPLETE = "complete"
_CACHE_SIZE = 1_000


class RoleItems:
    """Items of the table `asya-{namespace}-sink`: pk = `ROLE#{role id}`, sk = `role`, and the name of the function.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def write(self, change: ListChange, now: datetime) -> None:
        """List roles, and let former ones expire once no message of theirs can be left. Writing twice is writing once."""
        for role_id, function in change.listed.items():
            self._table.write(put(_key(role_id), {"function": function}))
        if change.completes:
            self._table.write(put(_key(_COMPLETE), {"function": names.ROLES}))
        expires_at = int((now + KEEP_FORMER).timestamp())
        for role_id in sorted(change.expiring):
            self._table.write(update(_key(role_id), "SET expires_at = :at", at=expires_at))

    def function_of(self, role_id: str) -> str | None:
        """The function of a role; None if it is not listed. Earlier versions listed a role for each step of the clock."""
        function = self._table.get(_key(role_id)).text("function", None)
        return None if function is None else names.runner_of(function)

    def is_complete(self) -> bool:
        """Whether all stacks have listed their roles once."""
        return self.function_of(_COMPLETE) is not None


class RoleList:
    """The listed roles that a process has asked for. A function is listed before its first call, so an answer stays.

    Args:
        items: the list.
        now: the current time.
    """

    def __init__(self, items: RoleItems, now: Callable[[], datetime]) -> None:
        self._items = items
        self._now = now
        self._functions: dict[str, str] = {}
        self._unlisted: dict[str, datetime] = {}
        self._is_complete = False

    def is_listed(self, role_id: str) -> bool:
        """Whether a sender counts as a role of the mesh. Until the list is complete every sender does.

        Raises:
            ClientError, BotoCoreError: the table cannot be read, so nobody knows; keep the message.
        """
        return self.function_of(role_id) is not None or not self.is_complete()

    def is_complete(self) -> bool:
        """Whether all stacks have listed their roles once; the first deployment of the list takes a while.

        Raises:
            ClientError, BotoCoreError: the table cannot be read.
        """
        self._is_complete = self._is_complete or self._items.is_complete()
        return self._is_complete

    def function_of(self, role_id: str) -> str | None:
        """The function of a role of the mesh; None for every other sender.

        Raises:
            ClientError, BotoCoreError: the table cannot be read, so nobody knows; keep the message.
        """
        if role_id in self._functions:
            return self._functions[role_id]
        now = self._now()
        asked_at = self._unlisted.get(role_id)
        if asked_at is not None and now - asked_at < ASK_AGAIN:
            return None
        function = self._items.function_of(role_id)
        if function is not None:
            self._functions[role_id] = function
            self._unlisted.pop(role_id, None)
            return function
        if not self.is_complete():
            return None  # asked again for its next message: the list grows
        if len(self._unlisted) >= _CACHE_SIZE:
            self._unlisted.clear()
        self._unlisted[role_id] = now
        return None


def _key(role_id: str) -> Key:
    return Key(ROLE_PREFIX + role_id, "role")
