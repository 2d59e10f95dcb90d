"""Lists of tasks for agents (`protocol §13`, `tasks/list`)."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from asya.capabilities.a2a.requests import A2AError, ListTasksParams
from asya.capabilities.a2a.tasks import context_of, task_of
from asya.capabilities.a2a.types import TaskPage
from asya.capabilities.a2a.versions import STATES, status_of_state
from asya.gateway.access import Caller
from asya.gateway.json_rpc import INVALID_PARAMS
from asya.protocol.times import parse_time
from asya.tasks.aws.lists import TaskLists
from asya.tasks.listing import LARGEST_LIMIT, ListQuery, read_list_query
from asya.tasks.view import TaskView

DEFAULT_PAGE = 50
MAX_PAGE_WITH_ARTIFACTS = 50
"""A result has up to 64 KiB, and a response of Lambda up to 6 MB."""
_UNSPECIFIED = "TASK_STATE_UNSPECIFIED"


@dataclass(frozen=True, slots=True)
class A2ALists:
    """Lists tasks page by page."""

    lists: TaskLists

    def page(self, params: ListTasksParams, caller: Caller, now: datetime) -> TaskPage:
        """Return a page of the caller's tasks, newest first; a short page may have a next one.

        Raises:
            A2AError, ApiError: If the parameters are invalid.
            TaskStoreError: If the table cannot be read.
        """
        after = _time(params.status_timestamp_after)
        query = _query(params)
        page = self.lists.page(query, caller.owner_filter, now)
        tasks = [task for task in page.tasks if _matches(task, params.context_id, after)]
        if params.include_artifacts:
            tasks = [self.lists.tasks.read(task.id, now) or task for task in tasks]
        is_all = page.next is None and not query.after
        return TaskPage(
            tasks=tuple(task_of(task) for task in tasks),
            next_page_token=query.cursor(page.next) if page.next else "",
            page_size=query.limit,
            total_size=len(tasks) if is_all else -1,
        )


def _query(params: ListTasksParams) -> ListQuery:
    size = DEFAULT_PAGE if params.page_size is None or params.page_size == 0 else params.page_size
    largest = MAX_PAGE_WITH_ARTIFACTS if params.include_artifacts else LARGEST_LIMIT
    if not 1 <= size <= largest:
        raise A2AError(INVALID_PARAMS, f"pageSize must be a number from 1 to {largest}", "pageSize")
    query = {"limit": str(size)}
    if params.status and params.status != _UNSPECIFIED:
        status = status_of_state(params.status)
        if status is None:
            known = ", ".join(STATES.values())
            raise A2AError(INVALID_PARAMS, f"no task has the status {params.status!r}; use one of {known}", "status")
        query["status"] = status
    if params.page_token:
        query["cursor"] = params.page_token
    filters = f"{params.context_id or ''}\n{params.status_timestamp_after or ''}"
    return read_list_query(query, f"a2a {hashlib.sha256(filters.encode()).hexdigest()}", (str, str))


def _matches(task: TaskView, context_id: str | None, after: datetime | None) -> bool:
    if context_id and context_of(task) != context_id:
        return False
    return after is None or parse_time(task.updated_at) > after


def _time(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError as error:
        raise A2AError(INVALID_PARAMS, str(error), "statusTimestampAfter") from None
