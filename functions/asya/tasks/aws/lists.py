"""Pages of tasks, found by the indexes and shown by their records (`protocol §13`, lists)."""

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

# Looks that one page may cost; whoever's tasks are that rare among others' gets a short page, and a cursor to go on.
MAX_INDEX_PAGES = 25

_STATES: dict[str | None, tuple[ListState, ...]] = {
    None: ("open", "succeeded", "failed"),
    "pending": ("open",),
    "running": ("open",),
    "paused": ("open",),
    "succeeded": ("succeeded",),
    # An overdue task reads failed before anybody has written so.
    "failed": ("failed", "open"),
    "canceled": ("failed",),
}


@dataclass(frozen=True, slots=True)
class TaskListPage:
    """Some tasks, newest first, and the place to go on behind; None at the end of the list."""

    tasks: list[TaskView]
    next: ListKey | None


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Some hops in their order, and the place to go on behind; None at the end."""

    hops: list[TimelineEntry]
    next: HopKey | None


@dataclass(frozen=True, slots=True)
class TaskLists:
    """The lists of one mesh. All methods raise TaskStoreError if the table cannot be read."""

    index: TaskIndex
    store: TaskStore
    tasks: Tasks

    def page(
        self, query: ListQuery, owner: str | None, may_see: Callable[[str | None], bool], now: datetime
    ) -> TaskListPage:
        """The tasks that somebody may see, newest first.

        Args:
            owner: whose tasks are wanted; None for everybody's.
            may_see: whether a task of this owner may be shown.
        """
        shown: list[TaskView] = []
        place = ListKey(str(query.after[0]), str(query.after[1])) if query.after else NEWEST
        for number, (found, below) in enumerate(self._looks(query, place, now), start=1):
            for each in found:
                if owner is None or each.is_of(owner):
                    if len(shown) == query.limit:
                        return TaskListPage(shown, place)
                    task = self.tasks.read(each.task_id, now)
                    if task is not None and may_see(task.owner) and query.status in (None, task.status):
                        shown.append(list_view(task))
                place = each
            if below is None:
                break
            place = below
            if number == MAX_INDEX_PAGES:
                return TaskListPage(shown, place)
        return TaskListPage(shown, None)

    def timeline(self, task_id: str, after: HopKey | None, limit: int, now: datetime) -> TimelinePage:
        """A task's hops of all generations in order."""
        found = list(islice(timeline(self.store.hops(task_id, now, after)), limit + 1))
        if len(found) <= limit:
            return TimelinePage(found, None)
        last = found[limit - 1]
        return TimelinePage(found[:limit], HopKey(last.generation, last.position, last.attempt))

    def _looks(self, query: ListQuery, place: ListKey, now: datetime) -> Iterator[tuple[list[ListKey], ListKey | None]]:
        """What each look found, and where to look next; None at the end of the list."""
        if query.parent is not None:
            parent_id = query.parent
            for look in _down(lambda before: self.index.children(parent_id, before, query.limit), place):
                yield look.found, look.seen_to
            return
        states = _STATES[query.status]
        for hour in self.index.hours(place, now):
            start = min(place, ListKey(f"{hour}~", LAST_ID))
            for look in _down(lambda before: self.index.listed(hour, states, before, query.limit), start):  # noqa: B023
                yield look.found, look.seen_to or ListKey(hour, "")


def _down(look: Callable[[ListKey], IndexPage], place: ListKey) -> Iterator[IndexPage]:
    """Looks one below the other, until one has seen everything."""
    while True:
        found = look(place)
        yield found
        if found.seen_to is None:
            return
        place = found.seen_to
