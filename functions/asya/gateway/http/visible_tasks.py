"""Decides which tasks the caller of a call may see (`protocol §13`)."""

from datetime import datetime

from asya.gateway.access import Caller
from asya.protocol.api_errors import ApiError
from asya.protocol.ids import ID_LIMIT, is_usable
from asya.tasks.aws.tasks import Tasks
from asya.tasks.listing import ListQuery
from asya.tasks.view import TaskView


def visible_task(tasks: Tasks, task_id: str, caller: Caller, now: datetime) -> TaskView:
    """Read the view of a task.

    Raises:
        ApiError: 404 if the task does not exist, or the caller may not see it.
        TaskStoreError: the table is unavailable.
    """
    task = tasks.read(task_id, now) if is_usable(task_id) else None
    if task is None or not caller.may_see(task.owner):
        raise unknown_task(task_id)
    return task


def unknown_task(task_id: str) -> ApiError:
    """The error 404, equal for tasks that do not exist and tasks of other owners."""
    return ApiError(404, "not_found", f"there is no task {task_id[:ID_LIMIT]!r}", "id")


def check_owner(query: ListQuery, caller: Caller) -> None:
    """Check that only operators select the tasks of an owner.

    Raises:
        ApiError: 403 for another caller.
    """
    if query.filter.owner is not None and not caller.is_operator:
        raise ApiError(403, "forbidden", "only operators select tasks by owner", "owner")
