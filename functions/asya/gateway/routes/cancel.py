"""Cancels tasks: `DELETE /api/v1/mesh/{id}` (`protocol §13`)."""

from dataclasses import dataclass
from datetime import datetime

from asya.cancels.lambdas.task_cancels import TaskCancels
from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import HttpRoute, Request, Response, required_identity
from asya.gateway.http.visible_tasks import unknown_task
from asya.protocol.task import TaskRecord


@dataclass(frozen=True, slots=True)
class CancelRoutes:
    """Cancels the tasks that the caller may see."""

    cancels: TaskCancels
    access: AccessRules

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The routes at a given time."""
        return (HttpRoute("DELETE", "/api/v1/mesh/{id}", lambda request: self.delete(request, now)),)

    def delete(self, request: Request, now: datetime) -> Response:
        """`DELETE /api/v1/mesh/{id}`: 204; an ended task stays unchanged."""
        caller = self.access.caller(required_identity(request))
        self.cancel(request.parameters["id"], caller, now)
        return Response(204, None)

    def cancel(self, task_id: str, caller: Caller, now: datetime) -> TaskRecord:
        """Cancel a task with its descendants and return its record.

        Raises:
            ApiError: 404 for an unknown task; 503 if the job runs were not asked to stop, so the call must be repeated.
            TaskStoreError: the table is unavailable; the task and some descendants may be canceled.
        """

        def check(record: TaskRecord) -> None:
            if not caller.may_see(record.owner):
                raise unknown_task(task_id)

        record = self.cancels.cancel(task_id, now, caller.principal, check)
        if record is None:
            raise unknown_task(task_id)
        return record
