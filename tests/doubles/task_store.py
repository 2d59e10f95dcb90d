"""The task store in memory, for tests with thousands of writes or with faults on demand."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from asya.protocol.hops import HopKey, HopRecord
from asya.protocol.task import TaskRecord
from asya.protocol.times import parse_time
from asya.tasks.aws.task_store import Conflict, StoredRecord, TaskStoreError

ItemKey = tuple[str, int, int, int, str]


@dataclass
class MemoryTaskStore:
    """Implements `TaskStore` without a table.

    Attributes:
        broken: whether every call fails.
        refused_hops: ids of the tasks whose hops the store refuses.
        writes: the number of written records and hops.
        reads: the number of calls of `records`.
    """

    retention: float = 3600.0
    broken: bool = False
    refused_hops: set[str] = field(default_factory=set)
    writes: int = 0
    reads: int = 0
    _records: dict[str, tuple[StoredRecord, datetime]] = field(default_factory=dict)
    _hops: dict[ItemKey, HopRecord] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def records(self, ids: Collection[str], now: datetime, *, consistent: bool = False) -> dict[str, StoredRecord]:
        self._check()
        self.reads += 1
        with self._lock:
            return {task_id: stored for task_id in ids if (stored := self._current(task_id, now))}

    def put_record(self, record: TaskRecord, replaces: StoredRecord | None, now: datetime) -> StoredRecord | Conflict:
        self._check()
        with self._lock:
            current = self._current(record.id, now)
            expected = replaces.revision if replaces else 0
            if (current.revision if current else 0) != expected:
                return Conflict(current)
            until = max(now, parse_time(record.deadline_at)) if record.deadline_at else now
            stored = StoredRecord(record, expected + 1)
            self._records[record.id] = (stored, until + timedelta(seconds=self.retention))
            self.writes += 1
        return stored

    def withdraw(self, task_id: str) -> None:
        self._check()
        with self._lock:
            stored, _ = self._records.get(task_id, (None, None))
            if stored and stored.revision == 1 and stored.record.status == "pending":
                del self._records[task_id]

    def put_hops(self, hops: Sequence[HopRecord], now: datetime) -> frozenset[str]:
        self._check()
        with self._lock:
            for hop in hops:
                if hop.id not in self.refused_hops:
                    self._put_hop(hop)
                    self.writes += 1
        return frozenset(hop.id for hop in hops) & self.refused_hops

    def _put_hop(self, hop: HopRecord) -> None:
        key = (hop.id, hop.generation, hop.position, hop.attempt, hop.stage)
        stored = self._hops.get(key)
        if hop.note_at is None or stored is None or (stored.note_at or "") <= hop.note_at:
            self._hops[key] = hop

    def load(self, task_id: str, now: datetime) -> tuple[TaskRecord, list[HopRecord]] | None:
        self._check()
        with self._lock:
            stored = self._current(task_id, now)
            if stored is None:
                return None
            return stored.record, [hop for key, hop in self._hops.items() if key[0] == task_id]

    def hops(self, task_id: str, now: datetime, after: HopKey | None = None) -> list[HopRecord]:
        self._check()
        with self._lock:
            hops = [hop for key, hop in self._hops.items() if key[0] == task_id]
        return sorted((hop for hop in hops if after is None or hop.key > after), key=lambda hop: (hop.key, hop.stage))

    def _current(self, task_id: str, now: datetime) -> StoredRecord | None:
        stored, expires_at = self._records.get(task_id, (None, now))
        return stored if stored and expires_at > now else None

    def _check(self) -> None:
        if self.broken:
            raise TaskStoreError("the table is down")
