"""Reads pages of tasks and timelines through the indexes (`protocol §13`, lists)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from asya.protocol.hops import HopKey
from asya.tasks.aws.index import NEWEST, ListKey
from asya.tasks.aws.list_scan import ListScan
from asya.tasks.aws.table_calls import chunks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
from asya.tasks.filters import TaskFilter
from asya.tasks.listing import ListQuery
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
    """A page of tasks, newest first; `next` is the key to continue after, None at the end of the list."""

    tasks: list[TaskView]
    next: ListKey | None


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
        views, last = self._read(query, owner, now)
        # The key is in the cursor, which its holder can decode.
        return TaskListPage(views, last.for_owner(owner) if last is not None and owner is not None else last)

    def _read(self, query: ListQuery, owner: str | None, now: datetime) -> tuple[list[TaskView], ListKey | None]:
        """The tasks of a page, and the key of the last inspected one; None at the end of the list."""
        wanted, views, summaries = query.filter, list[TaskView](), 0
        size = max(query.limit, SUMMARY_BATCH) if wanted.reads_records else query.limit
        owner = wanted.owner if owner is None else owner
        last = start_of(query)
        for number, page in enumerate(self.scan.pages(wanted, last, size, now), start=1):
            for keys in chunks(page.keys, SUMMARY_BATCH):
                own = [key.task_id for key in keys if owner is None or key.is_of(owner)]
                chosen = self._chosen(own, wanted, now)
                for key in keys:
                    if key.task_id in chosen:
                        if len(views) == query.limit:
                            return views, last
                        task = self.tasks.read(key.task_id, now)
                        if task is not None and is_of(task.owner, owner) and wanted.matches(shown := list_view(task)):
                            views.append(shown)
                    last = key
                summaries += len(own) if wanted.reads_records else 0
            if page.complete_to is None:
                break
            last = page.complete_to
            if number == MAX_INDEX_PAGES or summaries >= MAX_SUMMARIES:
                return views, last
        return views, None

    def _chosen(self, ids: Sequence[str], wanted: TaskFilter, now: datetime) -> Collection[str]:
        """The tasks that the filters may select, by their summaries if these are needed."""
        if not wanted.reads_records or not ids:
            return set(ids)
        summaries = self.store.summaries(ids, now).values()
        return {record.id for record in summaries if wanted.may_match(record, now)}

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
