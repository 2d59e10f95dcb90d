"""What the calls about triggers and backfills read alike."""

from datetime import datetime

from asya.protocol.task import ViewStatus
from asya.tasks.aws.tasks import Tasks


def status_of(tasks: Tasks, task_id: str, now: datetime) -> ViewStatus | None:
    """The status of a task; None without a record."""
    task = tasks.read(task_id, now)
    return task.status if task is not None else None
