"""Reads pages of tasks and timelines through the indexes (`protocol §13`, lists)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from asya.function.aws import clients
from asya.function.aws.table import chunks
from asya.protocol.hops import HopKey
from asya.protocol.task import TaskRecord
from asya.tasks.aws.index import NEWEST, ListKey
from asya.tasks.aws.list_scan import ListScan
from asya.tasks.aws.overdue_tasks import OverdueTasks
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.sweep_marks import SweepMarks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
from asya.tasks.filters import TaskFilter
from asya.tasks.listing import ListQuery
from asya.tasks.resolution import is_open, related, settled
from asya.tasks.timeline import TimelineEntry, timeline
from asya.tasks.view import TaskView, list_view

# Index pages that one list page may cost; an owner with few tasks among many gets a short page with a cursor.
MAX_INDEX_PAGES = 25
# Summaries that a page of a filtered list reads, give or take a page of the index; rare tasks give short pages.
MAX_SUMMARIES = 1_000
# Summaries of one read, and keys of one page of the index, in a filtered list.
SUMMARY_BATCH = 100


@dataclass(frozen=True, slots=True)
class TaskListPage:
    """A page of tasks, newest first.

    Attributes:
        next: the key to continue after; None at the end of the list.
        resolved: settled failures that a list of open ones leaves out.
    """

    tasks: list[TaskView]
    next: ListKey | None
    resolved: int = 0


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """A page of hops in order; `next` is the key to continue after, None at the end."""

    hops: list[TimelineEntry]
    next: HopKey | None


@dataclass(frozen=True, slots=True)
class TaskLists:
    """The lists of one mesh; every method raises `TaskStoreError` if the table is unavailable."""

    scan: ListScan
    store: TaskStore
    tasks: Tasks

    def page(self, query: ListQuery, owner: str | None, now: datetime) -> TaskListPage:
        """Read a page of tasks, newest first.

        Args:
            query: filters, limit and the key to continue after.
            owner: the owner whose tasks are read, and no other; None for the tasks of all owners.
            now: the time for the deadline check.
        """
        page = self._read(query, owner, now)
        last = page.next
        # The key is in the cursor, which its holder can decode.
        return replace(page, next=last.for_owner(owner)) if last is not None and owner is not None else page

    def _read(self, query: ListQuery, owner: str | None, now: datetime) -> TaskListPage:
        """A page; `next` is the key of the last inspected task."""
        wanted, views, summaries, resolved = query.filter, list[TaskView](), 0, 0
        size = max(query.limit, SUMMARY_BATCH) if wanted.reads_records else query.limit
        owner = wanted.owner if owner is None else owner
        last = start_of(query)
        for number, page in enumerate(self.scan.pages(wanted, last, size, now), start=1):
            for keys in chunks(page.keys, SUMMARY_BATCH):
                own = [key.task_id for key in keys if owner is None or key.is_of(owner)]
                chosen, left_out = self._chosen(own, wanted, owner, now)
                for key in keys:
                    if key.task_id in chosen:
                        if len(views) == query.limit:
                            return TaskListPage(views, last, resolved)
                        task = self.tasks.read(key.task_id, now)
                        if task is not None and is_of(task.owner, owner) and wanted.matches(shown := list_view(task)):
                            views.append(shown)
                    resolved += key.task_id in left_out
                    last = key
                summaries += len(own) if wanted.reads_records else 0
            if page.complete_to is None:
                break
            last = page.complete_to
            if number == MAX_INDEX_PAGES or summaries >= MAX_SUMMARIES:
                return TaskListPage(views, last, resolved)
        return TaskListPage(views, None, resolved)

    def _chosen(
        self, ids: Sequence[str], wanted: TaskFilter, owner: str | None, now: datetime
    ) -> tuple[Collection[str], Collection[str]]:
        """The tasks that the filters may select, by their summaries if these are needed; and those that are settled."""
        if not wanted.reads_records or not ids:
            return set(ids), ()
        records = [record for record in self.store.summaries(ids, now).values() if wanted.may_match(record, now)]
        matching = {record.id for record in records}
        if not wanted.is_of_open_failures:
            return matching, ()
        left_out = {record.id for record in records if is_of(record.owner, owner)} - self.open_failures(
            records, owner, now
        )
        return matching - left_out, left_out

    def open_failures(self, records: Collection[TaskRecord], owner: str | None, now: datetime) -> set[str]:
        """The ids of the failed tasks, by their summaries, that a list of open failures has."""
        known = related(records, lambda ids: self.store.summaries(ids, now), now)
        return {record.id for record in records if is_open(settled(record, known, now), owner)}

    def timeline(self, task_id: str, after: HopKey | None, limit: int, now: datetime) -> TimelinePage:
        """Read a page of a task's hops of all generations, in order."""
        entries = list(islice(timeline(self.store.hops(task_id, now, after)), limit + 1))
        if len(entries) <= limit:
            return TimelinePage(entries, None)
        last = entries[limit - 1]
        return TimelinePage(entries[:limit], HopKey(last.generation, last.position, last.attempt))


def is_of(owner: str | None, wanted: str | None) -> bool:
    """Whether a task of an owner is one of those that are read; None stands for all owners."""
    return wanted is None or owner == wanted


def start_of(query: ListQuery) -> ListKey:
    """The key after which a page starts."""
    return ListKey(str(query.after[0]), str(query.after[1])) if query.after else NEWEST


def build_lists(stored: StoredTasks) -> TaskLists:
    """Build the lists of the mesh's tasks."""
    marks = SweepMarks(clients.dynamodb(), stored.own.settings.table_name("tasks"))
    scan = ListScan(stored.index, OverdueTasks(stored.index, stored.store, marks))
    return TaskLists(scan, stored.store, stored.tasks)
