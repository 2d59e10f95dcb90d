"""Lists tasks, the children of a task, and its timeline (`protocol §13`)."""

from dataclasses import dataclass
from datetime import datetime

from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import Request, Response, required_identity
from asya.gateway.http.visible_tasks import visible_task
from asya.protocol.api_errors import ApiError
from asya.protocol.hops import HopKey
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.tasks import Tasks
from asya.tasks.listing import ListQuery, TaskList, Timeline, read_list_query
from asya.tasks.view import TaskView

HOPS_LIMIT = 500


@dataclass(frozen=True, slots=True)
class ListRoutes:
    """Lists tasks, children and hops."""

    tasks: Tasks
    lists: TaskLists
    access: AccessRules

    def all(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/mesh`: the caller's tasks, or all tasks for operators; `parent` selects the children of a task."""
        caller = self.access.caller(required_identity(request))
        query = read_list_query(request.query, "tasks", (str, str))
        check_owner(query, caller)
        return self._page(query, caller, now)

    def children(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/mesh/{id}/children`: the children of a task."""
        task, caller = self._visible(request, now)
        parameters = {
            name: value for name, value in request.query.items() if name in ("status", "resolved", "limit", "cursor")
        }
        return self._page(read_list_query(parameters | {"parent": task.id}, "tasks", (str, str)), caller, now)

    def timeline(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/mesh/{id}/timeline`: a task's hops of all generations, with their times."""
        task, _ = self._visible(request, now)
        parameters = {name: value for name, value in request.query.items() if name in ("limit", "cursor")}
        query = read_list_query(parameters, f"timeline {task.id}", (int, int, int), HOPS_LIMIT)
        after = HopKey(*map(int, query.after)) if query.after else None
        limit = query.limit if "limit" in parameters else HOPS_LIMIT
        page = self.lists.timeline(task.id, after, limit, now)
        return Response(200, Timeline(items=page.hops, next_cursor=query.cursor(page.next) if page.next else None))

    def _page(self, query: ListQuery, caller: Caller, now: datetime) -> Response:
        page = self.lists.page(query, caller.owner_filter, now)
        cursor = query.cursor(page.next) if page.next else None
        return Response(200, TaskList(items=page.tasks, resolved=page.resolved, next_cursor=cursor))

    def _visible(self, request: Request, now: datetime) -> tuple[TaskView, Caller]:
        caller = self.access.caller(required_identity(request))
        return visible_task(self.tasks, request.parameters["id"], caller, now), caller


def check_owner(query: ListQuery, caller: Caller) -> None:
    """Check that only operators select the tasks of an owner.

    Raises:
        ApiError: 403 for another caller.
    """
    if query.filter.owner is not None and not caller.is_operator:
        raise ApiError(403, "forbidden", "only operators select tasks by owner", "owner")
