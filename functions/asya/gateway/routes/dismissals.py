"""Dismisses failures that need no replay (`protocol §13.dismiss`)."""

from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from asya.capabilities.dead_letters.aws.replays import ReplayStarts
from asya.capabilities.dead_letters.settlements import Dismissed, read_dismissal
from asya.gateway.access import AccessRules
from asya.gateway.http.router import Request, Response, required_identity
from asya.gateway.http.visible_tasks import unknown_task, visible_task
from asya.protocol.api_errors import ApiError
from asya.protocol.hops import HopFold
from asya.protocol.task import Dismissal, TaskRecord
from asya.protocol.times import format_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import fail_if_overdue


@dataclass(frozen=True, slots=True)
class DismissalRoutes:
    """Dismisses the failures of tasks, and opens them again.

    Attributes:
        starts: knows which tasks are settled.
    """

    tasks: Tasks
    access: AccessRules
    starts: ReplayStarts

    def dismiss(self, request: Request, now: datetime) -> Response:
        """`POST …/{id}/dismiss`: 200 with the resolution; a repetition changes nothing."""
        caller = self.access.caller(required_identity(request))
        wish = read_dismissal(request.text)
        task_id = visible_task(self.tasks, request.parameters["id"], caller, now).id
        dismissal = Dismissal(at=format_time(now), by=caller.principal, reason=wish.reason)

        def decide(record: TaskRecord, _hops: HopFold) -> TaskRecord:
            if wish.undo:
                return _undone(record)
            if not fail_if_overdue(record, now).has_failed:
                raise ApiError(409, "not_failed", f"{task_id!r} has not failed: its status is {record.status}")
            if record.dismissed is not None:
                is_same = (record.dismissed.by, record.dismissed.reason) == (dismissal.by, dismissal.reason)
                return record if is_same else replace(record, dismissed=dismissal)
            self.starts.check(record, now)
            return replace(record, dismissed=dismissal)

        record = self.tasks.update(task_id, decide, now)
        if record is None:
            raise unknown_task(task_id)
        found = self.tasks.settled(record, now)
        return Response(200, Dismissed(id=task_id, resolution=found.resolution if found is not None else None))


def _undone(record: TaskRecord) -> TaskRecord:
    """The record without its dismissal.

    Raises:
        ApiError: 409 if it has none.
    """
    if record.dismissed is None:
        raise ApiError(409, "not_dismissed", f"{record.id!r} is not dismissed")
    return replace(record, dismissed=None)
