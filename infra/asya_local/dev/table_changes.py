"""Polls the stream of the tasks table and passes the changes of watched tasks on, as Lambda's event source mapping does."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.a2a.lambdas.push_feed import is_watched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PAUSE = 0.5
"""Seconds between two polls."""
_AGAIN = 10.0
"""Seconds until the next poll after a failed one."""


@dataclass(eq=False)
class TableChanges:
    """The changes of one table.

    Attributes:
        streams: A client of DynamoDB Streams.
        table: The name of the table.
        process: Processes an event.
        tell: Takes the level and the text of what the author should know.
    """

    streams: Any
    table: str
    process: Callable[[Mapping[str, Any]], None]
    tell: Callable[[str, str], None]
    _ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Poll in a thread of its own."""
        threading.Thread(target=self._poll, name="changes", daemon=True).start()

    def end(self) -> None:
        """Poll no more."""
        self._ended.set()

    def _poll(self) -> None:
        iterator: str | None = None
        while not self._ended.wait(_PAUSE):
            try:
                iterator = self._pass_on(iterator or self._first())
            except (ClientError, BotoCoreError, IndexError, KeyError) as error:
                iterator = None  # it may have expired; a change that comes again is one notification more
                if not self._ended.wait(_AGAIN):
                    self.tell("error", f"push notifications: the stream of tasks does not answer: {error}")

    def _first(self) -> str:
        """Return the iterator of the first change."""
        stream = self.streams.list_streams(TableName=self.table)["Streams"][0]["StreamArn"]
        shard = self.streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"][0]["ShardId"]
        answer = self.streams.get_shard_iterator(StreamArn=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
        return str(answer["ShardIterator"])

    def _pass_on(self, iterator: str) -> str:
        """Pass on the changes behind an iterator, and return the next one; a batch that fails comes again."""
        answer = self.streams.get_records(ShardIterator=iterator)
        watched = [record for record in answer["Records"] if is_watched(record)]
        if watched:
            try:
                self.process({"Records": watched})
            except Exception as error:  # noqa: BLE001 - as on AWS, the batch of a function that raises comes again
                self.tell("error", f"push notifications: {type(error).__name__}: {error}")
                return iterator
        return str(answer["NextShardIterator"])
