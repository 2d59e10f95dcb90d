"""What the calls about triggers and backfills check alike."""

from datetime import datetime

from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import Request, required_identity
from asya.protocol.api_errors import ApiError
from asya.protocol.task import ViewStatus
from asya.tasks.aws.tasks import Tasks


def check_operator(access: AccessRules, request: Request) -> Caller:
    """Return the caller, who is an operator.

    Raises:
        ApiError: 403 for other callers.
    """
    caller = access.caller(required_identity(request))
    if not caller.is_operator:
        raise ApiError(403, "forbidden", "only operators may make this call")
    return caller


def status_of(tasks: Tasks, task_id: str, now: datetime) -> ViewStatus | None:
    """The status of a task; None without a record."""
    task = tasks.read(task_id, now)
    return task.status if task is not None else None
