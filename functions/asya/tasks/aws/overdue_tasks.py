"""Finds the tasks that have passed their deadline, and that no sweep has failed yet (`protocol §13`, backstop)."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from asya.protocol.times import format_time
from asya.tasks.aws.index import ListKey, TaskIndex, list_key, minute_of
from asya.tasks.aws.sweep_marks import SweepMarks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.overdue import unswept_minutes
from asya.tasks.view import is_overdue

# Beyond these limits the reading of the open tasks costs less. Most tasks of a busy mesh have ended at their deadline.
MAX_MINUTES = 240
MAX_DUE = 250  # tasks of a shard of a minute


@dataclass(frozen=True, slots=True)
class OverdueTasks:
    """The overdue tasks of one mesh."""

    index: TaskIndex
    store: TaskStore
    marks: SweepMarks

    def keys(self, now: datetime) -> list[ListKey] | None:
        """The keys of the overdue tasks in the list of open ones, newest first; None if too many tasks are due.

        No sweep has run in a new mesh, and after an outage the sweep is far behind; these, too, are too many.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        mark = self.marks.read()
        minutes = list(islice(unswept_minutes(mark, now), MAX_MINUTES + 1))
        if mark is None or len(minutes) > MAX_MINUTES:
            return None
        ids = self.index.due_in((minute_of(format_time(minute)) for minute in minutes), MAX_DUE)
        if ids is None:
            return None
        records = self.store.summaries(ids, now).values()
        return sorted((list_key(record) for record in records if is_overdue(record, now)), reverse=True)
