"""The legacy calls of the gateway: read tasks, and report on them, in the legacy forms (`protocol §14`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from asya.capabilities.legacy.tasks import (
    final_event,
    legacy_envelope,
    legacy_job,
    progress_event,
    read_final,
    read_progress,
)
from asya.gateway.access import AccessRules
from asya.gateway.http.router import Request, Response, check_size, required_identity
from asya.gateway.http.visible_tasks import unknown_task, visible_task
from asya.protocol.api_errors import ApiError
from asya.protocol.events import EVENT_LIMIT, TaskEvent
from asya.protocol.times import format_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.received_reports import BatchError
from asya.tasks.view import TaskView


@dataclass(frozen=True, slots=True)
class LegacyReadRoutes:
    """`GET /envelopes/{id}` and `GET /jobs/{id}`."""

    tasks: Tasks
    access: AccessRules

    def envelope(self, request: Request, now: datetime) -> Response:
        """`GET /envelopes/{id}`: the task, in the form of `/envelopes`."""
        return Response(200, legacy_envelope(self._task(request, now)))

    def job(self, request: Request, now: datetime) -> Response:
        """`GET /jobs/{id}`: the task, in the form of `/jobs`."""
        return Response(200, legacy_job(self._task(request, now)))

    def _task(self, request: Request, now: datetime) -> TaskView:
        caller = self.access.caller(required_identity(request))
        return visible_task(self.tasks, request.parameters["id"], caller, now)


@dataclass(frozen=True, slots=True)
class LegacyReportRoutes:
    """`POST /envelopes/{id}/progress` and `POST /envelopes/{id}/final`.

    Attributes:
        accept: stores a report, or rejects it.
    """

    tasks: Tasks
    accept: Callable[[TaskEvent, datetime], Response]

    def progress(self, request: Request, now: datetime) -> Response:
        """Accept a progress report; the task's own route resolves the index of the actor."""
        check_size(request, EVENT_LIMIT)
        try:
            report = read_progress(request.body)
            task = self._task(request, now)
            if task is None:
                raise unknown_task(request.parameters["id"])
            event = progress_event(task, report, format_time(now))
        except BatchError as error:
            raise _invalid_report(error) from None
        return self.accept(event, now)

    def final(self, request: Request, now: datetime) -> Response:
        """Accept the report of a task's end."""
        check_size(request, EVENT_LIMIT)
        try:
            report = read_final(request.body)
        except BatchError as error:
            raise _invalid_report(error) from None
        task = self._task(request, now)
        event = final_event(request.parameters["id"], task.generation if task else 0, report, format_time(now))
        return self.accept(event, now)

    def _task(self, request: Request, now: datetime) -> TaskView | None:
        return self.tasks.read(request.parameters["id"], now)


def _invalid_report(error: BatchError) -> ApiError:
    return ApiError(400, "invalid_report", str(error), error.field)
