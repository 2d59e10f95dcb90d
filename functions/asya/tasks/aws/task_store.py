"""The storage port of tasks, and the errors of its calls; `asya.tasks.aws.tasks` depends only on this interface."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws.table import ThrottledError
from asya.function.nack import ServiceError
from asya.protocol.hops import HopKey, HopRecord
from asya.protocol.task import TaskRecord


class TaskStoreError(ServiceError):
    """The table is unavailable or rejects a call; a retry may succeed."""


class UnreadableRecordError(TaskStoreError):
    """A record exists, but this version cannot decode it: another program or a later version wrote it.

    Attributes:
        owner: the owner of the task, if readable.
        created_at: the creation time, if readable.
    """

    def __init__(self, task_id: str, problem: str, owner: str | None, created_at: str | None) -> None:
        super().__init__(f"the record of task {task_id} cannot be read: {problem}")
        self.task_id = task_id
        self.owner = owner
        self.created_at = created_at


class StoredRecord(msgspec.Struct, frozen=True):
    """A record with its revision, which counts the writes; a replacement must name the current revision."""

    record: TaskRecord
    revision: int


class Conflict(msgspec.Struct, frozen=True):
    """A concurrent write won; `current` is the present record, None if it no longer exists."""

    current: StoredRecord | None


class TaskStore(Protocol):
    """Records by id, written conditionally; hops by key, written unconditionally, except those of running jobs.

    Reads ignore expired items, even before DynamoDB removes them. Every method raises `TaskStoreError` if the table is
    unavailable. Methods that return a single record raise `UnreadableRecordError` if they cannot decode it.
    """

    def records(self, ids: Collection[str], now: datetime, *, consistent: bool = False) -> dict[str, StoredRecord]:
        """Read the records of tasks, without missing and unreadable ones; `consistent` reads the latest revisions."""

    def summaries(self, ids: Collection[str], now: datetime) -> dict[str, TaskRecord]:
        """Read the records of tasks as `records` does, but only what lists decide by: no route and no result."""

    def put_record(self, record: TaskRecord, replaces: StoredRecord | None, now: datetime) -> StoredRecord | Conflict:
        """Write a record if `replaces` is still the current one (None: no record exists)."""

    def withdraw(self, task_id: str) -> None:
        """Remove a record that has not changed since its creation; any other stays."""

    def put_hops(self, hops: Sequence[HopRecord], now: datetime) -> frozenset[str]:
        """Write hop records with distinct keys; returns the ids of tasks with unwritten ones.

        A hop of a running job whose note is older than that of the stored hop is dropped (`HopRecord.note_at`).
        """

    def load(self, task_id: str, now: datetime) -> "tuple[TaskRecord, Iterable[HopRecord]] | None":
        """Read the record and the hops of its generation consistently; the hops have no defined order."""

    def hops(self, task_id: str, now: datetime, after: HopKey | None = None) -> Iterable[HopRecord]:
        """Read the hop records of all generations in order, starting after a key if one is given."""


@contextmanager
def table_errors(doing: str) -> Iterator[None]:
    """Convert AWS errors into `TaskStoreError`.

    Args:
        doing: what the call does, as in "read task a".
    """
    try:
        yield
    except (ClientError, BotoCoreError, ThrottledError) as error:
        raise TaskStoreError(f"cannot {doing}: {error}") from error
