"""Reads pages of tasks and timelines through the indexes (`protocol §13`, lists)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from asya.protocol.hops import HopKey
from asya.tasks.aws.index import LAST_ID, NEWEST, IndexPage, ListKey, ListState, TaskIndex
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
from asya.tasks.listing import ListQuery
from asya.tasks.timeline import TimelineEntry, timeline
from asya.tasks.view import TaskView, list_view

# Index pages that one list page may cost; an owner with few tasks among many gets a short page with a cursor.
MAX_INDEX_PAGES = 25

_STATES: dict[str | None, tuple[ListState, ...]] = {
    None: ("open", "succeeded", "failed"),
    "pending": ("open",),
    "running": ("open",),
    "paused": ("open",),
    "succeeded": ("succeeded",),
    # An overdue task reads as failed before the deadline sweep has failed its record.
    "failed": ("failed", "open"),
    "canceled": ("failed",),
}


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

    index: TaskIndex
    store: TaskStore
    tasks: Tasks

    def page(
        self, query: ListQuery, owner: str | None, may_see: Callable[[str | None], bool], now: datetime
    ) -> TaskListPage:
        """Read a page of the tasks that a caller may see, newest first.

        Args:
            query: status, parent, limit and the key to continue after.
            owner: the owner of the tasks; None for the tasks of all owners.
            may_see: whether the caller may see a task of an owner.
            now: the time for the deadline check.
        """
        views, last = self._read(query, owner, may_see, now)
        # The key is in the cursor, which its holder can decode.
        return TaskListPage(views, last.for_owner(owner) if last is not None and owner is not None else last)

    def _read(
        self, query: ListQuery, owner: str | None, may_see: Callable[[str | None], bool], now: datetime
    ) -> tuple[list[TaskView], ListKey | None]:
        """The tasks of a page, and the key of the last inspected one; None at the end of the list."""
        views: list[TaskView] = []
        last = ListKey(str(query.after[0]), str(query.after[1])) if query.after else NEWEST
        for number, (keys, complete_to) in enumerate(self._scan(query, last, now), start=1):
            for key in keys:
                if owner is None or key.is_of(owner):
                    if len(views) == query.limit:
                        return views, last
                    task = self.tasks.read(key.task_id, now)
                    if task is not None and may_see(task.owner) and query.status in (None, task.status):
                        views.append(list_view(task))
                last = key
            if complete_to is None:
                break
            last = complete_to
            if number == MAX_INDEX_PAGES:
                return views, last
        return views, None

    def timeline(self, task_id: str, after: HopKey | None, limit: int, now: datetime) -> TimelinePage:
        """Read a page of a task's hops of all generations, in order."""
        entries = list(islice(timeline(self.store.hops(task_id, now, after)), limit + 1))
        if len(entries) <= limit:
            return TimelinePage(entries, None)
        last = entries[limit - 1]
        return TimelinePage(entries[:limit], HopKey(last.generation, last.position, last.attempt))

    def _scan(self, query: ListQuery, before: ListKey, now: datetime) -> Iterator[tuple[list[ListKey], ListKey | None]]:
        """The keys of each index page, and the key to continue after; None at the end of the list."""
        if query.parent is not None:
            parent_id = query.parent
            for page in _pages(lambda key: self.index.children(parent_id, key, query.limit), before):
                yield page.keys, page.complete_to
            return
        states = _STATES[query.status]
        for hour in self.index.hours(before, now):
            start = min(before, ListKey(f"{hour}~", LAST_ID))
            for page in _pages(lambda key: self.index.listed(hour, states, key, query.limit), start):  # noqa: B023
                yield page.keys, page.complete_to or ListKey(hour, "")


def _pages(read: Callable[[ListKey], IndexPage], before: ListKey) -> Iterator[IndexPage]:
    """Read page after page, down to the end of an index."""
    while True:
        page = read(before)
        yield page
        if page.complete_to is None:
            return
        before = page.complete_to
