"""The gateway's entrance for the mesh itself: reports of events, and states for pre-flight (`protocol §13`).

`POST /api/v1/mesh/events` and `POST /api/v1/mesh/{id}/events` are for the mesh's functions and operators, `POST
/api/v1/mesh/states` for the functions only. Which events of a batch were taken is told one by one; the request as a whole is
answered 200 if it is a batch at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import TypeVar

from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import HttpRoute, Request, Response, check_size, required_identity
from asya.legacy.gateway_calls import LegacyReportRoutes
from asya.protocol.api_errors import ApiError
from asya.protocol.events import EventResult, EventResults, PartialEvent, Report, TaskEvent, TaskStates
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks
from asya.tasks.event_batch import BatchError, read_events, read_queries
from asya.tasks.single_event import read_single_event

# Lambda takes 6 MB in one event; a body may come in base64.
BODY_LIMIT = 4 * 1024 * 1024

Content = TypeVar("Content")


@dataclass(frozen=True)
class Ingest:
    """What the calls need, and the calls."""

    tasks: Tasks
    partials: PartialStore
    access: AccessRules
    warn: Callable[[str], None]

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The calls as of one moment."""
        return (
            HttpRoute("POST", "/api/v1/mesh/events", lambda request: self.events(request, now)),
            HttpRoute("POST", "/api/v1/mesh/{id}/events", lambda request: self.event(request, now)),
            HttpRoute("POST", "/api/v1/mesh/states", lambda request: self.states(request, now)),
            *LegacyReportRoutes(self.tasks, self._reporter, self._take_one).routes(now),
        )

    def events(self, request: Request, now: datetime) -> Response:
        """Take a batch of reports; the mesh's own functions may report on tasks nobody has heard of yet."""
        caller = self._reporter(request)
        read = _content(read_events, request, "invalid_batch")
        reports = [item for item in read if not isinstance(item, EventResult)]
        results = iter(self._take(reports, caller, now))
        return Response(
            200, EventResults(items=tuple(item if isinstance(item, EventResult) else next(results) for item in read))
        )

    def event(self, request: Request, now: datetime) -> Response:
        """Take one report: 204, also if it is of no consequence."""
        caller = self._reporter(request)
        task_id = request.parameters["id"]
        report = _content(lambda body: read_single_event(body, task_id, now), request, "invalid_report")
        if report is None:
            self._check_known(task_id, caller, now)
            return Response(204, None)
        return self._take_one(report, caller, now)

    def _take_one(self, report: Report, caller: Caller, now: datetime) -> Response:
        [result] = self._take([report], caller, now)
        if result.status == HTTPStatus.NOT_FOUND:
            raise ApiError(404, "not_found", f"there is no task {report.id!r}", "id")
        if result.status != HTTPStatus.NO_CONTENT:
            raise ApiError(503, "unavailable", result.error or "the report was not taken; send it again")
        return Response(204, None)

    def _take(self, reports: Sequence[Report], caller: Caller, now: datetime) -> list[EventResult]:
        """Reports of status go into records and hops, messages to those who look on into their own items."""
        events = [report for report in reports if isinstance(report, TaskEvent)]
        said = [report for report in reports if isinstance(report, PartialEvent)]
        # What was said is there before the hop's end is: to whoever follows the task it comes before.
        told = self._keep(said, caller, now) if said else {}
        results = iter(self.tasks.report(events, now, may_create=caller.is_mesh_function) if events else [])
        return [told[each.id] if isinstance(each, PartialEvent) else next(results) for each in reports]

    def _keep(self, said: Sequence[PartialEvent], caller: Caller, now: datetime) -> dict[str, EventResult]:
        """What became of the messages, by task."""
        ids = {event.id for event in said}
        results = {task_id: EventResult(id=task_id, status=HTTPStatus.NO_CONTENT) for task_id in ids}
        try:
            # Of the mesh's own functions nobody asks whether the task is known: by the time it is, the message is old.
            unknown = set() if caller.is_mesh_function else ids - self.tasks.existing(ids, now)
            undone = self.partials.save([event for event in said if event.id not in unknown], now)
        except TaskStoreError as error:
            self.warn(str(error))
            unknown, undone = set(), frozenset(ids)
        for task_id in unknown:
            results[task_id] = EventResult(id=task_id, status=404, error=f"there is no task {task_id}")
        for task_id in undone:
            results[task_id] = EventResult(id=task_id, status=503, error="the table did not take it; send it again")
        return results

    def _check_known(self, task_id: str, caller: Caller, now: datetime) -> None:
        if not caller.is_mesh_function and not self.tasks.existing([task_id], now):
            raise ApiError(404, "not_found", f"there is no task {task_id!r}", "id")

    def states(self, request: Request, now: datetime) -> Response:
        """Tell a sidecar how tasks and their roots stand."""
        if not self._caller(request).is_mesh_function:
            raise ApiError(403, "forbidden", "only the mesh's own functions ask for states")
        return Response(200, TaskStates(items=self.tasks.states(_content(read_queries, request, "invalid_batch"), now)))

    def _reporter(self, request: Request) -> Caller:
        caller = self._caller(request)
        if not (caller.is_mesh_function or caller.is_operator):
            raise ApiError(403, "forbidden", "only the mesh's own functions and its operators report events")
        return caller

    def _caller(self, request: Request) -> Caller:
        return self.access.caller(required_identity(request))


def _content(read: Callable[[bytes], Content], request: Request, code: str) -> Content:
    check_size(request, BODY_LIMIT)
    try:
        return read(request.body)
    except BatchError as error:
        raise ApiError(400, code, str(error), error.field) from None
