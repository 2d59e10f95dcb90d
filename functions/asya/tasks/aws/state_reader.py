"""Reads states of tasks, and nothing else, without holding up envelopes (`protocol §5.4`, `§13.states`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import msgspec
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnectionError

from asya.function.aws.table import Batch, Table
from asya.function.aws.table_items import Item
from asya.protocol.table_keys import STATE_ATTRIBUTES
from asya.tasks.aws.items import is_expired, record_key
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.task_state import UNKNOWN, StateQuery, TaskState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# The limit of BatchGetItem.
READ_LIMIT = 100


class NoAnswerError(TaskStoreError):
    """The table did not answer in time."""


class StateReader:
    """Reads states from the tasks table.

    Args:
        client: a client that gives up soon and does not retry: no envelope waits for an answer.
        table: the name of the table.
    """

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def read(self, queries: Sequence[StateQuery], now: datetime) -> dict[str, TaskState]:
        """The states by task id, read consistently with one call; those that a busy table leaves out are missing.

        Args:
            queries: they name at most `READ_LIMIT` tasks together, roots included.
            now: the time for the expiry check.

        Raises:
            NoAnswerError: the table did not answer in time.
            TaskStoreError: the table refused the call.
        """
        ids = sorted(task_ids(queries))
        items, unread = self._call(ids)
        epoch = int(now.timestamp())
        records = {record.id: record for item in items if (record := _record(item, epoch)) is not None}
        left_out = {key.pk for key in unread}
        return {query.id: _state(query, records) for query in queries if left_out.isdisjoint(task_ids([query]))}

    def _call(self, ids: Sequence[str]) -> Batch:
        try:
            try:
                return self._batch_get(ids)
            except ConnectionClosedError:
                # A frozen function does not learn that its idle connections were closed; a new one may work.
                return self._batch_get(ids)
        except (NoConnectionError, HTTPClientError) as error:
            raise NoAnswerError(f"no answer from the tasks table: {error}") from error
        except (ClientError, BotoCoreError) as error:
            raise TaskStoreError(f"cannot read the states of tasks: {error}") from error

    def _batch_get(self, ids: Sequence[str]) -> Batch:
        return self._table.get_batch(map(record_key, ids), STATE_ATTRIBUTES)


def task_ids(queries: Iterable[StateQuery]) -> set[str]:
    """The ids of the queried tasks and of their roots."""
    return {task_id for query in queries for task_id in (query.id, query.root_id) if task_id is not None}


class _Record(msgspec.Struct, frozen=True):
    """The attributes of a record that a pre-flight reads."""

    id: str
    status: str
    generation: int
    pause_epoch: int | None


def _record(item: Item, epoch: int) -> _Record | None:
    """The record of an item; None if it has expired, or another version wrote it in a way that this one cannot read."""
    try:
        if is_expired(item, epoch):
            return None
        pauses = [item.integer(name) for name in ("pause_epoch", "resumed_epoch") if name in item]
        return _Record(item.text("pk"), item.text("status"), item.integer("generation"), max(pauses, default=None))
    except (KeyError, ValueError):
        return None


def _state(query: StateQuery, records: Mapping[str, _Record]) -> TaskState:
    record = records.get(query.id)
    root = records.get(query.root_id) if query.root_id is not None else None
    return TaskState(
        id=query.id,
        status=record.status if record else UNKNOWN,
        generation=record.generation if record else 0,
        pause_epoch=record.pause_epoch if record else None,
        root_status=None if query.root_id is None else root.status if root else UNKNOWN,
    )


# No call begins later; a call gives up after as long.
QUERY_SECONDS = 2.0
# After a call without an answer the table is left alone: each batch would wait for it again.
PAUSE_SECONDS = 30.0


class Notices(Protocol):
    """What operators learn of queries without an answer."""

    def failed(self, problem: str) -> None:
        """The table gave no usable answer."""

    def skipped(self) -> None:
        """A batch proceeds without a query, because the table did not answer lately."""


class StateQueries:
    """The queries of one process.

    Args:
        monotonic: seconds since an unspecified start.
    """

    def __init__(self, reader: StateReader, monotonic: Callable[[], float], notices: Notices) -> None:
        self._reader = reader
        self._monotonic = monotonic
        self._notices = notices
        self._paused_until = 0.0

    def ask(self, queries: Sequence[StateQuery], now: datetime) -> dict[str, TaskState]:
        """The states by task id; those that the table does not give in time are left out.

        Args:
            now: the time for the expiry check.
        """
        began = self._monotonic()
        states: dict[str, TaskState] = {}
        for group in _groups(queries):
            if self._monotonic() < self._paused_until:
                self._notices.skipped()
                break
            if self._monotonic() - began >= QUERY_SECONDS:
                break
            try:
                states |= self._reader.read(group, now)
            except NoAnswerError as error:
                self._paused_until = self._monotonic() + PAUSE_SECONDS
                self._notices.failed(f"{error}; not asked again for {PAUSE_SECONDS:g} s")
                break
            except TaskStoreError as error:
                self._notices.failed(str(error))
        return states


def _groups(queries: Sequence[StateQuery]) -> Iterator[Sequence[StateQuery]]:
    """Groups of queries that one call can answer; each query names a task and perhaps its root."""
    size = READ_LIMIT // 2
    return (queries[start : start + size] for start in range(0, len(queries), size))
