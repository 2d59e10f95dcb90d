"""Reads pages of tasks, overdue tasks and timelines through the indexes (`protocol §13`)."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from asya.function.aws import clients
from asya.function.aws.table import chunks
from asya.protocol import states
from asya.protocol.exact_json import encode_json
from asya.protocol.hops import HopKey
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.tasks.aws.index import (
    EPOCH,
    LAST_ID,
    NEWEST,
    SOON,
    IndexPage,
    ListKey,
    ListState,
    TaskIndex,
    list_key,
    minute_of,
)
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.sweep_marks import SweepMarks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
from asya.tasks.listing import ListQuery, TaskFilter, TimelineEntry, timeline
from asya.tasks.resolution import is_open, related, settled
from asya.tasks.sweeps import REREAD_WINDOW, unswept_minutes
from asya.tasks.view import TaskView, is_overdue, list_view

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
        minutes = list(islice(unswept_minutes(mark and mark.until, now), MAX_MINUTES + 1))
        if mark is None or len(minutes) > MAX_MINUTES or mark.entered + SOON < now:
            return None
        ids = self.index.due_in((minute_of(format_time(minute)) for minute in minutes), MAX_DUE)
        if ids is None:
            return None
        records = self.store.summaries(ids, now).values()
        return sorted((list_key(record) for record in records if is_overdue(record, now)), reverse=True)

    def entered_since(self) -> str:
        """The time from which on open tasks may be among the recent ones alone; the entries of an index may arrive late.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        mark = self.marks.read()
        return format_time(mark.entered - REREAD_WINDOW) if mark is not None and mark.entered > EPOCH else ""


_OPEN: tuple[ListState, ...] = ("recent", "open")
_STATES: dict[str | None, tuple[ListState, ...]] = {
    None: (*_OPEN, states.SUCCEEDED, states.FAILED),
    states.PENDING: _OPEN,
    states.RUNNING: _OPEN,
    states.PAUSED: _OPEN,
    states.SUCCEEDED: ("recent", states.SUCCEEDED),
    states.FAILED: (states.FAILED,),
    states.CANCELED: (states.FAILED,),
}


@dataclass(frozen=True, slots=True)
class ListScan:
    """The keys of the lists of one mesh; every method raises `TaskStoreError` if the table is unavailable."""

    index: TaskIndex
    overdue: OverdueTasks

    def pages(self, wanted: TaskFilter, before: ListKey, limit: int, now: datetime) -> Iterator[IndexPage]:
        """Read the keys below a key, page by page. Of the filters, status, parent and times decide which keys there are.

        Args:
            wanted: the filters of the list.
            before: the key to continue after.
            limit: the number of keys that a page should have.
            now: the time for the deadline check.

        Yields:
            pages without gaps between them; the list ends with the last page.
        """
        if wanted.until is not None:
            before = min(before, ListKey(wanted.until, ""))
        floor = ListKey(wanted.since or "", "")
        for page in self._all(wanted, before, limit, now):
            yield IndexPage([key for key in page.keys if key >= floor], page.complete_to)
            if page.complete_to is None or page.complete_to <= floor:
                return

    def _all(self, wanted: TaskFilter, before: ListKey, limit: int, now: datetime) -> Iterator[IndexPage]:
        if wanted.parent is not None:
            parent_id = wanted.parent
            yield from _pages(lambda key: self.index.children(parent_id, key, limit), before)
            return
        listed = _STATES[wanted.status]
        # An overdue task reads as failed before the deadline sweep has failed its record.
        overdue = self.overdue.keys(now) if wanted.status == states.FAILED else []
        if overdue is None:
            listed, overdue = (states.FAILED, *_OPEN), []
        # A list that has succeeded tasks has all recent ones. Any other needs those that no sweep has seen.
        is_of_open = "recent" in listed and states.SUCCEEDED not in listed
        recent_since = self.overdue.entered_since() if is_of_open else ""
        for hour in self.index.hours(before, now):
            start = min(before, ListKey(f"{hour}~", LAST_ID))
            yield from self._hour(hour, listed, start, limit, overdue, recent_since=recent_since)

    def _hour(
        self,
        hour: str,
        listed: Sequence[ListState],
        before: ListKey,
        limit: int,
        more: Sequence[ListKey],
        *,
        recent_since: str,
    ) -> Iterator[IndexPage]:
        """Read the pages of an hour, with more keys among them."""
        end = ListKey(hour, "")
        for page in _pages(lambda key: self.index.listed(hour, listed, key, limit, recent_since), before):
            complete_to = page.complete_to or end
            added = [key for key in more if complete_to <= key < before]
            yield IndexPage(sorted({*page.keys, *added}, reverse=True) if added else page.keys, complete_to)
            before = complete_to


def _pages(read: Callable[[ListKey], IndexPage], before: ListKey) -> Iterator[IndexPage]:
    """Read page after page, down to the end of an index."""
    while True:
        page = read(before)
        yield page
        if page.complete_to is None:
            return
        before = page.complete_to


# Index pages that one list page may cost; an owner with few tasks among many gets a short page with a cursor.
MAX_INDEX_PAGES = 25
# Summaries that a page of a filtered list reads, give or take a page of the index; rare tasks give short pages.
MAX_SUMMARIES = 1_000
# Summaries of one read, and keys of one page of the index, in a filtered list.
SUMMARY_BATCH = 100
# Bytes of a page, except if its first item alone has more: an answer of Lambda has 6 MB, in which a quote counts four times.
# Code of an actor may report tasks with routes of 128 KiB, in the name of any owner.
PAGE_BYTES = 1024 * 1024


def size_of(item: TaskView | TimelineEntry) -> int:
    """The bytes that an item adds to an answer."""
    return len(encode_json(item))


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
        wanted, views, summaries, resolved, room = query.filter, list[TaskView](), 0, 0, PAGE_BYTES
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
                            room -= size_of(shown)
                            if room < 0 and views:
                                return TaskListPage(views, last, resolved)
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
        room, shown = PAGE_BYTES, list[TimelineEntry]()
        for entry in entries[:limit]:
            room -= size_of(entry)
            if room < 0 and shown:
                break
            shown.append(entry)
        if len(shown) == len(entries):
            return TimelinePage(shown, None)
        last = shown[-1]
        return TimelinePage(shown, HopKey(last.generation, last.position, last.attempt))


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
