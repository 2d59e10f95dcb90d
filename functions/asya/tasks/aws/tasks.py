"""Merges reports into tasks, writes reports of all kinds, and answers queries for tasks (`protocol §13`).

Writes per task: the record at its creation, at each retry and at the end, and at the start of the first hop if something goes by
the record alone (`is_shown_by_hops`); one hop record per hop, and more only for slow hops. A cache of records saves the read for
progress reports. A stale cache entry causes a conflict on the next write.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from http import HTTPStatus
from threading import Lock

from msgspec.structs import replace

from asya.protocol import states
from asya.protocol.events import EventResult, PartialEvent, Report, TaskEvent, is_end, report_order
from asya.protocol.hops import HopFold, HopRecord, fold, hop_records, is_step
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import is_shown_by_hops, merge
from asya.protocol.times import format_time
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.task_store import StoredRecord, TaskStore, TaskStoreError, UnreadableRecordError
from asya.tasks.resolution import Settled, related, settled
from asya.tasks.view import TaskView, task_view, unknown_view

# A record changes only a few times, so repeated conflicts end well before this limit.
MERGE_ATTEMPTS = 10
CACHE_SIZE = 2_000  # records
WRITERS = 8  # threads


class Tasks:
    """The tasks of one mesh.

    Args:
        store: the storage of the tasks.
        log: logs the cause of a failure that the caller sees only as a 503.
        threaded: whether to write records concurrently.
        on_ends: is told which tasks have ended or paused, after the write. It raises nothing. A repeated report tells it again.
    """

    def __init__(
        self,
        store: TaskStore,
        log: Callable[[str], None],
        *,
        threaded: bool = True,
        on_ends: Callable[[Sequence[TaskRecord]], None] | None = None,
    ) -> None:
        self._store = store
        self._log = log
        self._on_ends = on_ends or _ignore
        self._cache = _RecordCache(CACHE_SIZE)
        self._map = ThreadPoolExecutor(WRITERS, thread_name_prefix="records").map if threaded else map

    def create(self, record: TaskRecord, now: datetime) -> bool:
        """Store a new task; False if another one exists, which stays unchanged.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        outcome = self._store.put_record(record, None, now)
        if isinstance(outcome, StoredRecord):
            return True
        # A write whose answer was lost is repeated, and finds its own record. A sweep may have entered it into lists meanwhile.
        return outcome.current is not None and replace(outcome.current.record, lasts=record.lasts) == record

    def withdraw(self, task_id: str) -> None:
        """Remove a task that was created but never started.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        self._store.withdraw(task_id)

    def read(self, task_id: str, now: datetime) -> TaskView | None:
        """Read the view of a task, `unknown` for an unreadable record; None if the task does not exist.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        try:
            task = self._store.load(task_id, now)
        except UnreadableRecordError as error:
            self._log(str(error))
            return unknown_view(task_id, error.owner, error.created_at or format_time(now))
        if task is None:
            return None
        record, hops = task
        return self._resolved(task_view(record, fold(hops, record.generation), now), record, now)

    def read_with_hops(self, task_id: str, now: datetime) -> tuple[TaskView, tuple[HopRecord, ...]] | None:
        """Read the view of a task and the hop records of its generation; None if the task does not exist.

        Raises:
            TaskStoreError: the table is unavailable, or the record is unreadable.
        """
        task = self._store.load(task_id, now)
        if task is None:
            return None
        record, records = task
        hops = tuple(hop for hop in records if hop.generation == record.generation)
        return self._resolved(task_view(record, fold(hops, record.generation), now), record, now), hops

    def hops(self, task_id: str, now: datetime) -> Iterable[HopRecord]:
        """Read the hop records of a task, of all generations, in order.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        return self._store.hops(task_id, now)

    def settled(self, record: TaskRecord, now: datetime) -> Settled | None:
        """What became of a failed or replayed task, from the latest records; None for the others.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        return settled(record, related([record], lambda ids: self._latest(ids, now), now), now)

    def _latest(self, ids: Collection[str], now: datetime) -> dict[str, TaskRecord]:
        stored = self._store.records(ids, now, consistent=True)
        return {task_id: each.record for task_id, each in stored.items()}

    def _resolved(self, view: TaskView, record: TaskRecord, now: datetime) -> TaskView:
        found = self.settled(record, now)
        return replace(view, resolution=found.resolution) if found is not None else view

    def existing(self, ids: Collection[str], now: datetime) -> set[str]:
        """The ids of the tasks that exist.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        return set(self._store.records(ids, now, consistent=True))

    def update(
        self, task_id: str, decide: Callable[[TaskRecord, HopFold], TaskRecord], now: datetime
    ) -> TaskRecord | None:
        """Update a record and return it; None if the task does not exist.

        Args:
            task_id: the id of the task.
            decide: computes the new record from the present one and the hops of its generation; called again on a conflict.
            now: the time for the expiry check.

        Raises:
            TaskStoreError: the table is unavailable.
            Exception: an exception of `decide`; the record is unchanged.
        """
        for _ in range(MERGE_ATTEMPTS):
            stored = self._store.records([task_id], now, consistent=True).get(task_id)
            task = self._store.load(task_id, now)
            if stored is None or task is None:
                return None
            record = decide(stored.record, fold(task[1], stored.record.generation))
            if record == stored.record or isinstance(self._store.put_record(record, stored, now), StoredRecord):
                if record.is_terminal:
                    self._on_ends((record,))
                return record
        raise TaskStoreError(f"the update of task {task_id} failed: {MERGE_ATTEMPTS} attempts met concurrent writes")

    def report(self, events: Sequence[TaskEvent], now: datetime, *, may_create: bool) -> list[EventResult]:
        """Merge reports into records and hops; returns their results in order.

        The status of a result is 204 (merged or without effect), 404 (unknown task) or 503 (send it again).

        Args:
            events: the reports.
            now: the time for the expiry check.
            may_create: whether a report on an unknown task creates the task.
        """
        by_task: dict[str, list[TaskEvent]] = {}
        for event in sorted(events, key=report_order):
            by_task.setdefault(event.id, []).append(event)
        outcomes = self._merge_records(by_task, now, may_create=may_create)
        merged = [event for event in events if outcomes[event.id] is HTTPStatus.NO_CONTENT and self._is_of_owner(event)]
        for task_id in self._write_hops(merged, now):
            outcomes[task_id] = HTTPStatus.SERVICE_UNAVAILABLE
        return [_result(event.id, outcomes[event.id]) for event in events]

    def _merge_records(
        self, by_task: dict[str, list[TaskEvent]], now: datetime, *, may_create: bool
    ) -> dict[str, HTTPStatus]:
        outcomes = dict.fromkeys(by_task, HTTPStatus.NO_CONTENT)
        changes = {task_id: reports for task_id, reports in by_task.items() if not self._is_progress_only(reports)}
        try:
            records = self._records(changes.values(), now, may_create=may_create)
        except TaskStoreError as error:
            self._log(str(error))
            return outcomes | dict.fromkeys(changes, HTTPStatus.SERVICE_UNAVAILABLE)

        ended: list[TaskRecord] = []

        def merge_reports(reports: list[TaskEvent]) -> HTTPStatus:
            stored = records.get(reports[0].id)
            if stored is None and not may_create:
                return HTTPStatus.NOT_FOUND
            root = next((records[event.root_id].record for event in reports if event.root_id in records), None)
            merged = self._merge_record(reports, stored, root, now)
            if merged is None:
                return HTTPStatus.SERVICE_UNAVAILABLE
            self._cache.add(merged)
            if merged.record.is_at_rest and any(map(is_end, reports)):
                ended.append(merged.record)
            return HTTPStatus.NO_CONTENT

        outcomes |= dict(zip(changes, self._map(merge_reports, changes.values()), strict=True))
        if ended:
            self._on_ends(ended)
        return outcomes

    def _records(
        self, groups: Iterable[list[TaskEvent]], now: datetime, *, may_create: bool
    ) -> dict[str, StoredRecord]:
        """The records of tasks and their roots, from the cache or the table; a registered task counts as new."""
        reports = [event for group in groups for event in group]
        ids = {event.id for event in reports} | {event.root_id for event in reports if event.root_id}
        cached = {task_id: stored for task_id in ids if (stored := self._cache.get(task_id))}
        new = {event.id for event in reports if event.status == states.REGISTERED and may_create}
        missing = ids - cached.keys() - new
        return cached | (self._store.records(missing, now, consistent=not may_create) if missing else {})

    def _merge_record(
        self, reports: list[TaskEvent], stored: StoredRecord | None, root: TaskRecord | None, now: datetime
    ) -> StoredRecord | None:
        """Merge the reports of a task and return its record; None if they must come again."""
        task_id = reports[0].id
        for _ in range(MERGE_ATTEMPTS):
            record = reduce(
                lambda merged, event: merge(merged, event, root=root), reports, stored.record if stored else None
            )
            if record is None:
                raise ValueError(f"no report on task {task_id}")
            record = _with_due_time(record, stored, now)
            if stored and (record == stored.record or _is_shown(stored.record, record, reports)):
                return stored
            try:
                outcome = self._store.put_record(record, stored, now)
            except TaskStoreError as error:
                self._log(str(error))
                return None
            if isinstance(outcome, StoredRecord):
                return outcome
            stored = outcome.current
        self._log(f"reports on task {task_id} were not merged: {MERGE_ATTEMPTS} attempts met concurrent writes")
        return None

    def _is_progress_only(self, reports: Iterable[TaskEvent]) -> bool:
        """Whether the reports cannot change the record: progress of a task that has started or ended, and no retry."""
        return all(
            event.status in states.PROGRESS
            and event.data.retry is None
            and self._cache.has_generation(event.id, event.generation)
            for event in reports
        )

    def _is_of_owner(self, event: TaskEvent) -> bool:
        """Whether a report is of an envelope of the owner of its task (`protocol §13.owner.reports`)."""
        if self._cache.has_owner(event.id, event.data.owner):
            return True
        self._log(f"a report on task {event.id} is of an envelope of another owner and does not count")
        return False

    def _write_hops(self, events: list[TaskEvent], now: datetime) -> frozenset[str]:
        hops = hop_records(events)
        if not hops:
            return frozenset()
        try:
            return self._store.put_hops(hops, now)
        except TaskStoreError as error:
            self._log(str(error))
            return frozenset(hop.id for hop in hops)


class _RecordCache:
    """The most recently used tasks: their generations, and until the end also their records."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._tasks: OrderedDict[str, tuple[int, str | None, StoredRecord | None]] = OrderedDict()

    def add(self, stored: StoredRecord) -> None:
        record = stored.record
        with self._lock:
            # The record of an ended task may hold a large result, and few reports follow.
            self._tasks[record.id] = (record.generation, record.owner, None if record.is_terminal else stored)
            self._tasks.move_to_end(record.id)
            if len(self._tasks) > self._limit:
                self._tasks.popitem(last=False)

    def get(self, task_id: str) -> StoredRecord | None:
        return self._tasks.get(task_id, (0, None, None))[2]

    def has_generation(self, task_id: str, generation: int) -> bool:
        """Whether the task has started in this generation or a later one."""
        return self._tasks.get(task_id, (-1, None, None))[0] >= generation

    def has_owner(self, task_id: str, owner: str | None) -> bool:
        """Whether the task may belong to an owner; True if either is unknown."""
        return owner is None or self._tasks.get(task_id, (0, None, None))[1] in (None, owner)


def _ignore(_records: Sequence[TaskRecord]) -> None:
    """Tell nobody of ended tasks."""


def _is_shown(before: TaskRecord, after: TaskRecord, reports: Iterable[TaskEvent]) -> bool:
    """Whether the hops of these reports, which are written next, show all that they change about a record."""
    has_step = any(is_step(event) and event.generation == after.generation for event in reports)
    return has_step and is_shown_by_hops(before, after)


def _with_due_time(record: TaskRecord, stored: StoredRecord | None, now: datetime) -> TaskRecord:
    """The record with the time at which its deadline became known, if that has passed: reports may arrive late."""
    known = stored.record.deadline_at if stored else None
    if (
        record.is_terminal
        or record.deadline_at in (None, known)
        or (record.deadline_at or "") > (at := format_time(now))
    ):
        return record
    return replace(record, due_at=at)


def _result(task_id: str, outcome: HTTPStatus) -> EventResult:
    explanations = {
        HTTPStatus.NOT_FOUND: f"there is no task {task_id}",
        HTTPStatus.SERVICE_UNAVAILABLE: "the tasks table is unavailable; send the report again",
    }
    return EventResult(id=task_id, status=outcome.value, error=explanations.get(outcome))


@dataclass(frozen=True)
class ReportWriter:
    """Writes the reports of one mesh.

    Attributes:
        warn: logs the cause of a failure that the reporter sees only as a 503.
    """

    tasks: Tasks
    partials: PartialStore
    warn: Callable[[str], None]

    def write(self, reports: Sequence[Report], now: datetime, *, may_create: bool) -> list[EventResult]:
        """Write reports; returns their results in order, 204, 404 or 503 (`asya.tasks.aws.tasks.Tasks.report`).

        Args:
            may_create: whether a report on an unknown task creates the task.
        """
        events = [report for report in reports if isinstance(report, TaskEvent)]
        partials = [report for report in reports if isinstance(report, PartialEvent)]
        # Partials are stored before the end of their hop, so that a stream shows them first.
        partial_results = self._save_partials(partials, now, may_create=may_create) if partials else {}
        results = iter(self.tasks.report(events, now, may_create=may_create) if events else [])
        return [partial_results[report.id] if isinstance(report, PartialEvent) else next(results) for report in reports]

    def _save_partials(
        self, partials: Sequence[PartialEvent], now: datetime, *, may_create: bool
    ) -> dict[str, EventResult]:
        """Store partials; returns the result for each task."""
        ids = {event.id for event in partials}
        results = {task_id: EventResult(id=task_id, status=HTTPStatus.NO_CONTENT) for task_id in ids}
        try:
            # Functions may publish partials before the record of their task exists.
            unknown = set() if may_create else ids - self.tasks.existing(ids, now)
            unwritten = self.partials.save([event for event in partials if event.id not in unknown], now)
        except TaskStoreError as error:
            self.warn(str(error))
            unknown, unwritten = set(), frozenset(ids)
        for task_id in unknown:
            results[task_id] = EventResult(id=task_id, status=404, error=f"there is no task {task_id}")
        for task_id in unwritten:
            problem = "the tasks table is unavailable; send the partial again"
            results[task_id] = EventResult(id=task_id, status=503, error=problem)
        return results
