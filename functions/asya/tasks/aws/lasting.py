"""Moves tasks that stay open to the lists of open tasks and of deadlines (`protocol §13.list.writes`).

Most tasks succeed within seconds. Entries of theirs among the open tasks, among the succeeded ones and under their deadline would
cost four writes of indexes each. So a task has one entry at first. A sweep reads each task some minutes after its creation,
for half a read unit, and one that is still open gets the other entries.

A later write of an open task also gives it the entries, because the sweep does not come back.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from msgspec.structs import replace

from asya.protocol.times import parse_time
from asya.tasks.aws.index import LASTING_AGE, TaskIndex
from asya.tasks.aws.task_store import StoredRecord, TaskStore, TaskStoreError

BATCH_SIZE = 800  # tasks
WRITERS = 8  # threads
# A record changes only a few times, so repeated conflicts end well before this limit.
ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class LastingTasks:
    """Enters the open tasks of a mesh into the lists of open tasks and of deadlines.

    Attributes:
        threaded: whether to write records concurrently.
    """

    index: TaskIndex
    store: TaskStore
    threaded: bool = True

    def enter(self, since: datetime, now: datetime, *, is_over: Callable[[], bool]) -> datetime:
        """Enter the tasks that began at a time or later, and some minutes ago; returns the time before which all are entered.

        Args:
            since: the result of the last call.
            now: the time.
            is_over: whether to stop; asked after each batch.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        until = now - LASTING_AGE
        if until <= since:
            return since
        keys = self.index.recent(since, until, now)
        while batch := list(islice(keys, BATCH_SIZE)):
            summaries = self.store.summaries([key.task_id for key in batch], now)
            is_open = [task_id for task_id, record in summaries.items() if not record.is_terminal]
            if is_open:
                self._enter_all(list(self.store.records(is_open, now).values()), now)
            if is_over():
                return parse_time(batch[-1].created_at)
        return until

    def _enter_all(self, found: list[StoredRecord], now: datetime) -> None:
        if not self.threaded or len(found) < WRITERS:
            for stored in found:
                self._enter(stored, now)
            return
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="lasting") as pool:
            list(pool.map(lambda stored: self._enter(stored, now), found))  # raises the errors

    def _enter(self, stored: StoredRecord, now: datetime) -> None:
        for _ in range(ATTEMPTS):
            if stored.record.is_terminal or stored.record.lasts:
                return
            outcome = self.store.put_record(replace(stored.record, lasts=True), stored, now)
            if isinstance(outcome, StoredRecord) or outcome.current is None:
                return
            stored = outcome.current
        raise TaskStoreError(f"task {stored.record.id} was not entered: {ATTEMPTS} attempts met concurrent writes")
