"""Accepts reports by HTTP (`protocol §13`).

The functions of the mesh report through queues (`asya.gateway.lambdas.report_queues`). Only operators, and other meshes that
the mesh file names as such, may call `POST /api/v1/mesh/events` and `POST /api/v1/mesh/{id}/events`. Their reports create no
tasks. The response to a valid batch is 200, with a result for each event.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import TypeVar

from msgspec import Raw

from asya.capabilities.legacy.tasks import upgrade_data
from asya.gateway.http.router import Request, Response, check_size
from asya.protocol.api_errors import ApiError, ErrorCode
from asya.protocol.envelope import Route
from asya.protocol.events import EventResult, EventResults, Report
from asya.protocol.mesh_table import BODY_LIMIT
from asya.tasks.aws.tasks import ReportWriter, Tasks
from asya.tasks.received_reports import BatchError, read_events, read_single_event

Content = TypeVar("Content")


@dataclass(frozen=True)
class ReportRoutes:
    """Takes reports of operators and of other meshes."""

    writer: ReportWriter

    @property
    def tasks(self) -> Tasks:
        """The tasks of the mesh."""
        return self.writer.tasks

    def events(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/mesh/events`: accept a batch of reports."""
        items = _content(read_events, request, "invalid_batch")
        reports = [item for item in items if not isinstance(item, EventResult)]
        results = iter(self._accept(reports, now))
        return Response(
            200, EventResults(items=tuple(item if isinstance(item, EventResult) else next(results) for item in items))
        )

    def event(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/mesh/{id}/events`: accept one report; 204 also if it has no effect."""
        task_id = request.parameters["id"]

        def upgraded(data: Raw, status: str | None) -> Raw:
            return upgrade_data(data, status, lambda: self._route(task_id, now))

        report = _content(lambda body: read_single_event(body, task_id, now, upgraded), request, "invalid_report")
        if report is None:
            self._check_exists(task_id, now)
            return Response(204, None)
        return self.accept_one(report, now)

    def accept_one(self, report: Report, now: datetime) -> Response:
        """Store one report: 204.

        Raises:
            ApiError: 404 if there is no task; 503 if the report was not stored.
        """
        [result] = self._accept([report], now)
        if result.status == HTTPStatus.NOT_FOUND:
            raise ApiError(404, "not_found", f"there is no task {report.id!r}", "id")
        if result.status != HTTPStatus.NO_CONTENT:
            raise ApiError(503, "unavailable", result.error or "the report was not stored; send it again")
        return Response(204, None)

    def _accept(self, reports: Sequence[Report], now: datetime) -> list[EventResult]:
        return self.writer.write(reports, now, may_create=False)

    def _route(self, task_id: str, now: datetime) -> Route | None:
        """The route of a task, for a report that has none.

        Raises:
            ApiError: 404 if there is no task.
        """
        task = self.tasks.read(task_id, now)
        if task is None:
            raise ApiError(404, "not_found", f"there is no task {task_id!r}", "id")
        return task.route

    def _check_exists(self, task_id: str, now: datetime) -> None:
        if not self.tasks.existing([task_id], now):
            raise ApiError(404, "not_found", f"there is no task {task_id!r}", "id")


def _content(read: Callable[[bytes], Content], request: Request, code: ErrorCode) -> Content:
    check_size(request, BODY_LIMIT)
    try:
        return read(request.text)
    except BatchError as error:
        raise ApiError(400, code, str(error), error.field) from None
