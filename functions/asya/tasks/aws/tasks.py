"""What the mesh knows about its tasks: reports taken, states and records told (`protocol §13`).

Writes per task: its record when it is created, when its first hop starts and when it ends; one part of a hop per report that
comes with the hop's end, more only where a hop takes its time. Records met before are remembered, so that mere progress
costs no read; whether what is remembered is still true shows when it is replaced.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import reduce
from http import HTTPStatus
from threading import Lock

from asya.protocol.events import PROGRESS_STATUSES, EventResult, StateQuery, TaskEvent, TaskState
from asya.protocol.hops import HopFold, HopRecord, fold, hop_records
from asya.protocol.task import TaskRecord, merge
from asya.protocol.times import format_time
from asya.tasks.aws.task_store import StoredRecord, TaskStore, TaskStoreError, UnreadableRecordError
from asya.tasks.view import TaskView, fail_if_overdue, task_view, unknown_view

# A record changes a handful of times in its life: whoever loses this often against others has seen all of it.
MERGE_ATTEMPTS = 10
REMEMBERED = 2_000
WRITERS = 8

UNKNOWN = "unknown"


class Tasks:
    """The tasks of one mesh.

    Args:
        store: where they are kept.
        log: takes a line about trouble that the caller only sees as a 503.
        threaded: whether several records may be written at once.
    """

    def __init__(self, store: TaskStore, log: Callable[[str], None], *, threaded: bool = True) -> None:
        self._store = store
        self._log = log
        self._remembered = _Remembered(REMEMBERED)
        self._map = ThreadPoolExecutor(WRITERS, thread_name_prefix="records").map if threaded else map

    def create(self, record: TaskRecord, now: datetime) -> None:
        """Keep a new task; one that is there already stays as it is.

        Raises:
            TaskStoreError: if the table does not take it.
        """
        self._store.put_record(record, None, now)

    def withdraw(self, task_id: str) -> None:
        """Take back a task that was created but never started.

        Raises:
            TaskStoreError: if the table does not take it.
        """
        self._store.withdraw(task_id)

    def read(self, task_id: str, now: datetime) -> TaskView | None:
        """A task as it is now, `unknown` if its record makes no sense; None if there is none.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        try:
            loaded = self._store.load(task_id, now)
        except UnreadableRecordError as error:
            self._log(str(error))
            return unknown_view(task_id, error.owner, error.created_at or format_time(now))
        if loaded is None:
            return None
        record, hops = loaded
        return task_view(record, fold(hops, record.generation), now)

    def read_with_hops(self, task_id: str, now: datetime) -> tuple[TaskView, tuple[HopRecord, ...]] | None:
        """A task as it is now, and the parts of the hops of its generation; None if there is none.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        loaded = self._store.load(task_id, now)
        if loaded is None:
            return None
        record, parts = loaded
        hops = tuple(hop for hop in parts if hop.generation == record.generation)
        return task_view(record, fold(hops, record.generation), now), hops

    def existing(self, ids: Collection[str], now: datetime) -> set[str]:
        """Which of these tasks there are.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        return set(self._store.records(ids, now, consistent=True))

    def update(
        self, task_id: str, decide: Callable[[TaskRecord, HopFold], TaskRecord], now: datetime
    ) -> TaskRecord | None:
        """Replace a record by what is decided from it and the hops of its generation; None if there is no such task.

        Raises:
            TaskStoreError: if the table cannot be read or does not take it.
            Exception: whatever `decide` raises; nothing has been changed then.
        """
        for _ in range(MERGE_ATTEMPTS):
            stored = self._store.records([task_id], now, consistent=True).get(task_id)
            loaded = self._store.load(task_id, now)
            if stored is None or loaded is None:
                return None
            record = decide(stored.record, fold(loaded[1], stored.record.generation))
            if record == stored.record or isinstance(self._store.put_record(record, stored, now), StoredRecord):
                return record
        raise TaskStoreError(f"the record of task {task_id} changed {MERGE_ATTEMPTS} times while it was reopened")

    def states(self, queries: Sequence[StateQuery], now: datetime) -> tuple[TaskState, ...]:
        """What a sidecar has to know before it starts a hop, in the order of the queries.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        ids = {query.id for query in queries} | {query.root_id for query in queries if query.root_id}
        known = {
            task_id: fail_if_overdue(stored.record, now)
            for task_id, stored in self._store.records(ids, now, consistent=True).items()
        }
        return tuple(_state(query, known) for query in queries)

    def report(self, events: Sequence[TaskEvent], now: datetime, *, may_create: bool) -> list[EventResult]:
        """Take reports in: 204 taken (also if it is of no consequence), 404 unknown task, 503 not now; in their order.

        Args:
            may_create: whether a report about an unknown task creates it.
        """
        by_task: dict[str, list[TaskEvent]] = {}
        for event in events:
            by_task.setdefault(event.id, []).append(event)
        outcomes = self._merge_records(by_task, now, may_create=may_create)
        taken = [event for event in events if outcomes[event.id] is HTTPStatus.NO_CONTENT]
        for task_id in self._write_hops(taken, now):
            outcomes[task_id] = HTTPStatus.SERVICE_UNAVAILABLE
        return [_result(event.id, outcomes[event.id]) for event in events]

    def _merge_records(
        self, by_task: dict[str, list[TaskEvent]], now: datetime, *, may_create: bool
    ) -> dict[str, HTTPStatus]:
        outcomes = dict.fromkeys(by_task, HTTPStatus.NO_CONTENT)
        changing = {task_id: told for task_id, told in by_task.items() if not self._is_mere_progress(told)}
        try:
            known = self._known(changing.values(), now, may_create=may_create)
        except TaskStoreError as error:
            self._log(str(error))
            return outcomes | dict.fromkeys(changing, HTTPStatus.SERVICE_UNAVAILABLE)

        def bring_up_to_date(told: list[TaskEvent]) -> HTTPStatus:
            stored = known.get(told[0].id)
            if stored is None and not may_create:
                return HTTPStatus.NOT_FOUND
            owner = next((known[event.root_id].record.owner for event in told if event.root_id in known), None)
            return self._merge_record(told, stored, owner, now)

        return outcomes | dict(zip(changing, self._map(bring_up_to_date, changing.values()), strict=True))

    def _known(self, stories: Iterable[list[TaskEvent]], now: datetime, *, may_create: bool) -> dict[str, StoredRecord]:
        """The records of these tasks and their roots: remembered or read. Those being registered are taken to be new."""
        told = [event for story in stories for event in story]
        ids = {event.id for event in told} | {event.root_id for event in told if event.root_id}
        remembered = {task_id: stored for task_id in ids if (stored := self._remembered.get(task_id))}
        new = {event.id for event in told if event.status == "registered" and may_create}
        unknown = ids - remembered.keys() - new
        return remembered | (self._store.records(unknown, now, consistent=not may_create) if unknown else {})

    def _merge_record(
        self, told: list[TaskEvent], stored: StoredRecord | None, owner: str | None, now: datetime
    ) -> HTTPStatus:
        task_id = told[0].id
        for _ in range(MERGE_ATTEMPTS):
            record = reduce(
                lambda so_far, event: merge(so_far, event, owner=owner), told, stored.record if stored else None
            )
            if record is None:  # never: there is at least one report
                raise ValueError(f"no report about task {task_id}")
            if stored and record == stored.record:
                self._remembered.add(stored)
                return HTTPStatus.NO_CONTENT
            try:
                outcome = self._store.put_record(record, stored, now)
            except TaskStoreError as error:
                self._log(str(error))
                return HTTPStatus.SERVICE_UNAVAILABLE
            if isinstance(outcome, StoredRecord):
                self._remembered.add(outcome)
                return HTTPStatus.NO_CONTENT
            stored = outcome.current
        self._log(f"the record of task {task_id} changed {MERGE_ATTEMPTS} times while reports were merged into it")
        return HTTPStatus.SERVICE_UNAVAILABLE

    def _is_mere_progress(self, told: Iterable[TaskEvent]) -> bool:
        """Whether these reports cannot change the record: progress of a task that is known to run, or to have ended."""
        return all(
            event.status in PROGRESS_STATUSES and self._remembered.covers(event.id, event.generation) for event in told
        )

    def _write_hops(self, events: list[TaskEvent], now: datetime) -> frozenset[str]:
        hops = hop_records(events)
        if not hops:
            return frozenset()
        try:
            return self._store.put_hops(hops, now)
        except TaskStoreError as error:
            self._log(str(error))
            return frozenset(hop.id for hop in hops)


class _Remembered:
    """The tasks that were met last: how far they were, and, until they end, their records."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._tasks: OrderedDict[str, tuple[int, StoredRecord | None]] = OrderedDict()

    def add(self, stored: StoredRecord) -> None:
        record = stored.record
        with self._lock:
            # An ended task's record may hold a large result, and hardly anything will be said about it any more.
            self._tasks[record.id] = (record.generation, None if record.is_terminal else stored)
            self._tasks.move_to_end(record.id)
            if len(self._tasks) > self._limit:
                self._tasks.popitem(last=False)

    def get(self, task_id: str) -> StoredRecord | None:
        return self._tasks.get(task_id, (0, None))[1]

    def covers(self, task_id: str, generation: int) -> bool:
        """Whether the task is known to have been started in this generation or a later one."""
        return self._tasks.get(task_id, (-1, None))[0] >= generation


def _state(query: StateQuery, known: dict[str, TaskRecord]) -> TaskState:
    record = known.get(query.id)
    root = known.get(query.root_id) if query.root_id else None
    return TaskState(
        id=query.id,
        status=record.status if record else UNKNOWN,
        generation=record.generation if record else 0,
        pause_epoch=record.pause_epoch if record else None,
        root_status=(root.status if root else UNKNOWN) if query.root_id else None,
    )


def _result(task_id: str, outcome: HTTPStatus) -> EventResult:
    explanations = {
        HTTPStatus.NOT_FOUND: f"there is no task {task_id}",
        HTTPStatus.SERVICE_UNAVAILABLE: "the tasks table did not take it; send it again",
    }
    return EventResult(id=task_id, status=outcome.value, error=explanations.get(outcome))
