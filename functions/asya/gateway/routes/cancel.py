"""Cancels tasks: `DELETE /api/v1/mesh/{id}` (`protocol §13`)."""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from asya.capabilities.cancels.lambdas.task_cancels import CanceledTask, TaskCancels
from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import Request, Response, required_identity
from asya.gateway.http.visible_tasks import unknown_task
from asya.protocol.task import TaskRecord


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to the cancellation of a task whose end is claimed, but not on record yet."""

    id: str
    status: str


@dataclass(frozen=True, slots=True)
class CancelRoutes:
    """Cancels the tasks that the caller may see."""

    cancels: TaskCancels
    access: AccessRules

    def delete(self, request: Request, now: datetime) -> Response:
        """`DELETE /api/v1/mesh/{id}`: 204; an ended task stays unchanged, and 202 says how it ends if its record does not yet."""
        caller = self.access.caller(required_identity(request))
        canceled = self.cancel(request.parameters["id"], caller, now)
        if canceled.ended_as is None:
            return Response(204, None)
        return Response(202, Ended(id=canceled.record.id, status=canceled.ended_as))

    def cancel(self, task_id: str, caller: Caller, now: datetime) -> CanceledTask:
        """Cancel a task with its descendants.

        Raises:
            ApiError: 404 for an unknown task; 503 if it is not decided, or the job runs were not asked to stop, so the call must
                be repeated.
            TaskStoreError: the table is unavailable; the task and some descendants may be canceled.
        """

        def check(record: TaskRecord) -> None:
            if not caller.may_see(record.owner):
                raise unknown_task(task_id)

        canceled = self.cancels.cancel(task_id, now, caller.principal, check)
        if canceled is None:
            raise unknown_task(task_id)
        return canceled
