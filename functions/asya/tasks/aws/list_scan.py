"""Reads the keys of a list through the indexes, newest first (`protocol §13`, lists)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from asya.tasks.aws.index import LAST_ID, IndexPage, ListKey, ListState, TaskIndex
from asya.tasks.aws.overdue_tasks import OverdueTasks
from asya.tasks.filters import TaskFilter

_STATES: dict[str | None, tuple[ListState, ...]] = {
    None: ("open", "succeeded", "failed"),
    "pending": ("open",),
    "running": ("open",),
    "paused": ("open",),
    "succeeded": ("succeeded",),
    "failed": ("failed",),
    "canceled": ("failed",),
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
        states = _STATES[wanted.status]
        # An overdue task reads as failed before the deadline sweep has failed its record.
        overdue = self.overdue.keys(now) if wanted.status == "failed" else []
        if overdue is None:
            states, overdue = ("failed", "open"), []
        for hour in self.index.hours(before, now):
            start = min(before, ListKey(f"{hour}~", LAST_ID))
            yield from self._hour(hour, states, start, limit, overdue)

    def _hour(
        self, hour: str, states: Sequence[ListState], before: ListKey, limit: int, more: Sequence[ListKey]
    ) -> Iterator[IndexPage]:
        """Read the pages of an hour, with more keys among them."""
        end = ListKey(hour, "")
        for page in _pages(lambda key: self.index.listed(hour, states, key, limit), before):
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
