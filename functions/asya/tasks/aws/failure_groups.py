"""Groups the tasks of a mesh that failed, or that run again (`protocol §13`, failures)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from asya.protocol.task import TaskRecord
from asya.tasks.aws.index import IndexPage, ListKey
from asya.tasks.aws.lists import TaskLists, is_of, start_of
from asya.tasks.failures import FailureGroup, group_of, merged
from asya.tasks.listing import ListQuery, TaskFilter
from asya.tasks.view import TaskView

# Keys of failed tasks that one page of groups reads, give or take a page of the index, and pages of the index.
MAX_KEYS = 5_000
MAX_INDEX_PAGES = 200
# Groups of one page, give or take those of a page of the index: an answer of Lambda has 6 MB.
MAX_GROUPS = 500
# Keys of one query of a shard.
_QUERY_SIZE = 1_000


@dataclass(frozen=True, slots=True)
class FailurePage:
    """The groups of a page of failed tasks.

    Attributes:
        next: the key to continue after; None at the end of the list.
        resolved: settled failures that the groups leave out.
    """

    groups: list[FailureGroup]
    next: ListKey | None
    resolved: int = 0


@dataclass(frozen=True, slots=True)
class Failures:
    """The failed tasks of the lists of one mesh, in groups."""

    lists: TaskLists

    def page(self, query: ListQuery, owner: str | None, now: datetime) -> FailurePage:
        """Group the next tasks of a query for failed ones, or for those that run again. The rest is as in `TaskLists.page`."""
        wanted, groups, count, resolved = query.filter, list[FailureGroup](), 0, 0
        owner = wanted.owner if owner is None else owner
        for number, page in enumerate(self.lists.scan.pages(wanted, start_of(query), _QUERY_SIZE, now), start=1):
            found, left_out = self._failed(page, wanted, owner, now)
            groups = merged((*groups, *map(_group_of, found)))
            resolved += left_out
            count += len(page.keys)
            last = page.complete_to
            if last is not None and (count >= MAX_KEYS or number == MAX_INDEX_PAGES or len(groups) >= MAX_GROUPS):
                return FailurePage(groups, last.for_owner(owner) if owner is not None else last, resolved)
        return FailurePage(groups, None, resolved)

    def _failed(
        self, page: IndexPage, wanted: TaskFilter, owner: str | None, now: datetime
    ) -> tuple[list[TaskRecord | TaskView], int]:
        """Each such task of a page, and the number of settled ones that are left out."""
        ids = [key.task_id for key in page.keys if owner is None or key.is_of(owner)]
        records = list(self._matching(ids, wanted, owner, now)) if ids else []
        if not wanted.is_of_open_failures:
            return records, 0
        open_ids = self.lists.open_failures([each for each in records if isinstance(each, TaskRecord)], owner, now)
        # An overdue task is shown with what became of it.
        found = [each for each in records if each.id in open_ids or isinstance(each, TaskView)]
        return found, len(records) - len(found)

    def _matching(
        self, ids: Sequence[str], wanted: TaskFilter, owner: str | None, now: datetime
    ) -> Iterator[TaskRecord | TaskView]:
        for record in self.lists.store.summaries(ids, now).values():
            if not wanted.may_match(record, now) or not is_of(record.owner, owner):
                continue
            if record.is_terminal:
                yield record
            # The hops of an overdue task decide at which actor it failed, and whether a task still runs again.
            elif (task := self.lists.tasks.read(record.id, now)) is not None and wanted.matches(task):
                yield task


def _group_of(task: TaskRecord | TaskView) -> FailureGroup:
    """The group of a failed task, or of one that runs again."""
    retry = task.retry if isinstance(task, TaskView) else None
    return group_of(task, retry.error if retry is not None else None)
