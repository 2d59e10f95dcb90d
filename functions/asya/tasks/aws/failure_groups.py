"""Groups the tasks of a mesh that failed, or that run again (`protocol §13`, failures)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from asya.tasks.aws.index import IndexPage, ListKey
from asya.tasks.aws.lists import TaskLists, is_of, start_of
from asya.tasks.failures import FailureGroup, group_of, merged
from asya.tasks.filters import TaskFilter
from asya.tasks.listing import ListQuery

# Keys of failed tasks that one page of groups reads, give or take a page of the index, and pages of the index.
MAX_KEYS = 5_000
MAX_INDEX_PAGES = 200
# Keys of one query of a shard.
_QUERY_SIZE = 1_000


@dataclass(frozen=True, slots=True)
class FailurePage:
    """The groups of a page of failed tasks; `next` is the key to continue after, None at the end of the list."""

    groups: list[FailureGroup]
    next: ListKey | None


@dataclass(frozen=True, slots=True)
class Failures:
    """The failed tasks of the lists of one mesh, in groups."""

    lists: TaskLists

    def page(self, query: ListQuery, owner: str | None, now: datetime) -> FailurePage:
        """Group the next tasks of a query for failed ones, or for those that run again. The rest is as in `TaskLists.page`."""
        wanted, groups, count = query.filter, list[FailureGroup](), 0
        owner = wanted.owner if owner is None else owner
        for number, page in enumerate(self.lists.scan.pages(wanted, start_of(query), _QUERY_SIZE, now), start=1):
            found = self._groups(page, wanted, owner, now)
            groups = merged((*groups, *found))
            count += len(page.keys)
            last = page.complete_to
            if last is not None and (count >= MAX_KEYS or number == MAX_INDEX_PAGES):
                return FailurePage(groups, last.for_owner(owner) if owner is not None else last)
        return FailurePage(groups, None)

    def _groups(self, page: IndexPage, wanted: TaskFilter, owner: str | None, now: datetime) -> Iterator[FailureGroup]:
        """A group of each such task of a page."""
        ids = [key.task_id for key in page.keys if owner is None or key.is_of(owner)]
        for record in self.lists.store.summaries(ids, now).values() if ids else ():
            if not wanted.may_match(record, now) or not is_of(record.owner, owner):
                continue
            if record.is_terminal:
                yield group_of(record)
            # The hops of an overdue task decide at which actor it failed, and whether a task still runs again.
            elif (task := self.lists.tasks.read(record.id, now)) is not None and wanted.matches(task):
                yield group_of(task, task.retry.error if task.retry is not None else None)
