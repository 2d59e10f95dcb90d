"""The gateway's calls of the first two generations (`protocol §14`): tasks read, and reported on, in their words."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import HttpRoute, Request, Response, check_size, required_identity
from asya.gateway.http.visible_tasks import unknown_task, visible_task
from asya.legacy.tasks import final_event, legacy_envelope, legacy_job, progress_event, read_final, read_progress
from asya.protocol.api_errors import ApiError
from asya.protocol.events import TaskEvent
from asya.protocol.times import format_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.event_batch import EVENT_LIMIT, BatchError
from asya.tasks.view import TaskView


@dataclass(frozen=True, slots=True)
class LegacyReadRoutes:
    """`GET /envelopes/{id}` and `GET /jobs/{id}`."""

    tasks: Tasks
    access: AccessRules

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The calls as of one moment."""
        return (
            HttpRoute(
                "GET", "/envelopes/{id}", lambda request: Response(200, legacy_envelope(self._task(request, now)))
            ),
            HttpRoute("GET", "/jobs/{id}", lambda request: Response(200, legacy_job(self._task(request, now)))),
        )

    def _task(self, request: Request, now: datetime) -> TaskView:
        caller = self.access.caller(required_identity(request))
        return visible_task(self.tasks, request.parameters["id"], caller, now)


@dataclass(frozen=True, slots=True)
class LegacyReportRoutes:
    """`POST /envelopes/{id}/progress` and `POST /envelopes/{id}/final`.

    Attributes:
        reporter: who reports; refuses everybody else.
        take: takes a report in, or refuses it.
    """

    tasks: Tasks
    reporter: Callable[[Request], Caller]
    take: Callable[[TaskEvent, Caller, datetime], Response]

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The calls as of one moment."""
        return (
            HttpRoute("POST", "/envelopes/{id}/progress", lambda request: self.progress(request, now)),
            HttpRoute("POST", "/envelopes/{id}/final", lambda request: self.final(request, now)),
        )

    def progress(self, request: Request, now: datetime) -> Response:
        """Progress of a task that is known: its own route says which actor is meant."""
        caller = self.reporter(request)
        check_size(request, EVENT_LIMIT)
        try:
            told = read_progress(request.body)
            task = self._known(request, now)
            if task is None:
                raise unknown_task(request.parameters["id"])
            event = progress_event(task, told, format_time(now))
        except BatchError as error:
            raise _malformed(error) from None
        return self.take(event, caller, now)

    def final(self, request: Request, now: datetime) -> Response:
        """How a task ended."""
        caller = self.reporter(request)
        check_size(request, EVENT_LIMIT)
        try:
            told = read_final(request.body)
        except BatchError as error:
            raise _malformed(error) from None
        task = self._known(request, now)
        event = final_event(request.parameters["id"], task.generation if task else 0, told, format_time(now))
        return self.take(event, caller, now)

    def _known(self, request: Request, now: datetime) -> TaskView | None:
        return self.tasks.read(request.parameters["id"], now)


def _malformed(error: BatchError) -> ApiError:
    return ApiError(400, "invalid_report", str(error), error.field)
