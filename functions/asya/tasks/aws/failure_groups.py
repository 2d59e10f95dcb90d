"""Groups the failed tasks of a mesh (`protocol §13`, failures)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from asya.tasks.aws.index import IndexPage, ListKey
from asya.tasks.aws.list_scan import ListScan
from asya.tasks.aws.lists import MaySee, start_of
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
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
    """The failed tasks of one mesh, in groups."""

    scan: ListScan
    store: TaskStore
    tasks: Tasks

    def page(self, query: ListQuery, owner: str | None, may_see: MaySee, now: datetime) -> FailurePage:
        """Group the next failed tasks that a caller may see.

        Args:
            query: filters with the status `failed`, and the key to continue after.
            owner: the owner of the tasks; None for the tasks of all owners.
            may_see: whether the caller may see a task of an owner.
            now: the time for the deadline check.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        wanted, groups, count = query.filter, list[FailureGroup](), 0
        owner = wanted.owner if owner is None else owner
        for number, page in enumerate(self.scan.pages(wanted, start_of(query), _QUERY_SIZE, now), start=1):
            found = self._groups(page, wanted, owner, may_see, now)
            groups = merged((*groups, *found))
            count += len(page.keys)
            last = page.complete_to
            if last is not None and (count >= MAX_KEYS or number == MAX_INDEX_PAGES):
                return FailurePage(groups, last.for_owner(owner) if owner is not None else last)
        return FailurePage(groups, None)

    def _groups(
        self, page: IndexPage, wanted: TaskFilter, owner: str | None, may_see: MaySee, now: datetime
    ) -> Iterator[FailureGroup]:
        """A group of each failed task of a page."""
        ids = [key.task_id for key in page.keys if owner is None or key.is_of(owner)]
        for record in self.store.summaries(ids, now).values() if ids else ():
            if not wanted.may_match(record, now) or not may_see(record.owner):
                continue
            if record.is_terminal:
                yield group_of(record)
            # The hops of an overdue task decide at which actor it failed.
            elif (task := self.tasks.read(record.id, now)) is not None and wanted.matches(task):
                yield group_of(task)
