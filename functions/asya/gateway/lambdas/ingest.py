"""Accepts reports, and answers the state queries of pre-flights (`protocol §13`).

The functions of the mesh and operators may call `POST /api/v1/mesh/events` and `POST /api/v1/mesh/{id}/events`. Only functions may
call `POST /api/v1/mesh/states`. The response to a valid batch is 200, with a result for each event.
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

# Bytes. A Lambda event may have 6 MB, and base64 adds a third to the body.
BODY_LIMIT = 4 * 1024 * 1024

Content = TypeVar("Content")


@dataclass(frozen=True)
class Ingest:
    """The calls for reports and state queries."""

    tasks: Tasks
    partials: PartialStore
    access: AccessRules
    warn: Callable[[str], None]

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The routes at a given time."""
        return (
            HttpRoute("POST", "/api/v1/mesh/events", lambda request: self.events(request, now)),
            HttpRoute("POST", "/api/v1/mesh/{id}/events", lambda request: self.event(request, now)),
            HttpRoute("POST", "/api/v1/mesh/states", lambda request: self.states(request, now)),
            *LegacyReportRoutes(self.tasks, self._reporter, self._accept_one).routes(now),
        )

    def events(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/mesh/events`: accept a batch of reports; the report of a function may create its task."""
        caller = self._reporter(request)
        items = _content(read_events, request, "invalid_batch")
        reports = [item for item in items if not isinstance(item, EventResult)]
        results = iter(self._accept(reports, caller, now))
        return Response(
            200, EventResults(items=tuple(item if isinstance(item, EventResult) else next(results) for item in items))
        )

    def event(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/mesh/{id}/events`: accept one report; 204 also if it has no effect."""
        caller = self._reporter(request)
        task_id = request.parameters["id"]
        report = _content(lambda body: read_single_event(body, task_id, now), request, "invalid_report")
        if report is None:
            self._check_exists(task_id, caller, now)
            return Response(204, None)
        return self._accept_one(report, caller, now)

    def _accept_one(self, report: Report, caller: Caller, now: datetime) -> Response:
        [result] = self._accept([report], caller, now)
        if result.status == HTTPStatus.NOT_FOUND:
            raise ApiError(404, "not_found", f"there is no task {report.id!r}", "id")
        if result.status != HTTPStatus.NO_CONTENT:
            raise ApiError(503, "unavailable", result.error or "the report was not stored; send it again")
        return Response(204, None)

    def _accept(self, reports: Sequence[Report], caller: Caller, now: datetime) -> list[EventResult]:
        """Merge status reports into records and hops, and store partials as items of their own."""
        events = [report for report in reports if isinstance(report, TaskEvent)]
        partials = [report for report in reports if isinstance(report, PartialEvent)]
        # Partials are stored before the end of their hop, so that a stream shows them first.
        partial_results = self._save_partials(partials, caller, now) if partials else {}
        results = iter(self.tasks.report(events, now, may_create=caller.is_mesh_function) if events else [])
        return [partial_results[report.id] if isinstance(report, PartialEvent) else next(results) for report in reports]

    def _save_partials(self, partials: Sequence[PartialEvent], caller: Caller, now: datetime) -> dict[str, EventResult]:
        """Store partials; returns the result for each task."""
        ids = {event.id for event in partials}
        results = {task_id: EventResult(id=task_id, status=HTTPStatus.NO_CONTENT) for task_id in ids}
        try:
            # Functions may publish partials before the record of their task exists.
            unknown = set() if caller.is_mesh_function else ids - self.tasks.existing(ids, now)
            unwritten = self.partials.save([event for event in partials if event.id not in unknown], now)
        except TaskStoreError as error:
            self.warn(str(error))
            unknown, unwritten = set(), frozenset(ids)
        for task_id in unknown:
            results[task_id] = EventResult(id=task_id, status=404, error=f"there is no task {task_id}")
        for task_id in unwritten:
            problem = "the tasks table is unavailable; send the partial again"
            results[task_id] = EventResult(id=task_id, status=503, error=problem)
        return results

    def _check_exists(self, task_id: str, caller: Caller, now: datetime) -> None:
        if not caller.is_mesh_function and not self.tasks.existing([task_id], now):
            raise ApiError(404, "not_found", f"there is no task {task_id!r}", "id")

    def states(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/mesh/states`: the states of tasks and their roots, for the pre-flight of a sidecar."""
        if not self._caller(request).is_mesh_function:
            raise ApiError(403, "forbidden", "only functions of the mesh may query states")
        return Response(200, TaskStates(items=self.tasks.states(_content(read_queries, request, "invalid_batch"), now)))

    def _reporter(self, request: Request) -> Caller:
        caller = self._caller(request)
        if not (caller.is_mesh_function or caller.is_operator):
            raise ApiError(403, "forbidden", "only functions and operators of the mesh may report events")
        return caller

    def _caller(self, request: Request) -> Caller:
        return self.access.caller(required_identity(request))


def _content(read: Callable[[bytes], Content], request: Request, code: str) -> Content:
    check_size(request, BODY_LIMIT)
    try:
        return read(request.body)
    except BatchError as error:
        raise ApiError(400, code, str(error), error.field) from None
