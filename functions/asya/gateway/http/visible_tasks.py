"""The task that a call is about, for those who may see it; to all others it is as if there were none (`protocol §13`)."""

from datetime import datetime

from asya.gateway.access import Caller
from asya.protocol.api_errors import ApiError
from asya.protocol.ids import ID_LIMIT, is_usable
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import TaskView


def visible_task(tasks: Tasks, task_id: str, caller: Caller, now: datetime) -> TaskView:
    """What is shown of a task.

    Raises:
        ApiError: 404 if there is no such task, or none that the caller may see.
        TaskStoreError: if the table cannot be read.
    """
    task = tasks.read(task_id, now) if is_usable(task_id) else None
    if task is None or not caller.may_see(task.owner):
        raise unknown_task(task_id)
    return task


def unknown_task(task_id: str) -> ApiError:
    """404, in the same words whether the task is somebody else's or nobody's."""
    return ApiError(404, "not_found", f"there is no task {task_id[:ID_LIMIT]!r}", "id")
