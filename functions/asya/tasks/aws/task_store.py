"""The port to where tasks are kept: whoever decides about tasks (`asya.tasks.aws.tasks`) knows no more of a table than this."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from asya.protocol.hops import HopKey, HopRecord
from asya.protocol.task import TaskRecord


class TaskStoreError(Exception):
    """The table could not be read or written just now; the same call may work later."""


class UnreadableRecordError(TaskStoreError):
    """A record is there, but makes no sense to this version: something else has written it, or a later one.

    Attributes:
        owner: whose task it is, as far as that can be told.
        created_at: likewise when it was created.
    """

    def __init__(self, task_id: str, problem: str, owner: str | None, created_at: str | None) -> None:
        super().__init__(f"the record of task {task_id} cannot be read: {problem}")
        self.task_id = task_id
        self.owner = owner
        self.created_at = created_at


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as it is kept, and how often it has been written: whoever replaces it must have seen its last revision."""

    record: TaskRecord
    revision: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """Somebody else has written the record in between; `current` is what it is now, None if it is gone."""

    current: StoredRecord | None


class TaskStore(Protocol):
    """Records by id, replaced only by those who know what they replace; hops by key, written blindly.

    What has outlived its retention is not there, whether or not it has been removed yet.
    Every method raises `TaskStoreError` if the table cannot be reached or does not take it, and `UnreadableRecordError` where it
    would have to give a single record that cannot be read.
    """

    def records(self, ids: Collection[str], now: datetime, *, consistent: bool = False) -> dict[str, StoredRecord]:
        """The records of these tasks, as far as there are any that can be read; the latest ones for sure only if `consistent`."""

    def put_record(self, record: TaskRecord, replaces: StoredRecord | None, now: datetime) -> StoredRecord | Conflict:
        """Write a record in the place of the one that was read, or of none; gives it as it is kept then."""

    def withdraw(self, task_id: str) -> None:
        """Remove a record that has never been anything but freshly created; any other stays."""

    def put_hops(self, hops: Sequence[HopRecord], now: datetime) -> frozenset[str]:
        """Write parts of hops, no two of the same key; gives the ids of tasks of which some could not be written."""

    def load(self, task_id: str, now: datetime) -> "tuple[TaskRecord, Iterable[HopRecord]] | None":
        """The record and the hops of its generation, read as they are now; hops come page by page, in no promised order."""

    def hops(self, task_id: str, now: datetime, after: HopKey | None = None) -> Iterable[HopRecord]:
        """The parts of all hops of all generations, in the order of the hops; those behind a place, if one is given."""
