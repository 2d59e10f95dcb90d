"""Writes reports of all kinds: status reports into records and hops, partials as items of their own (`protocol §13`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from asya.protocol.events import EventResult, PartialEvent, Report, TaskEvent
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks


@dataclass(frozen=True)
class ReportWriter:
    """Writes the reports of one mesh.

    Attributes:
        warn: logs the cause of a failure that the reporter sees only as a 503.
    """

    tasks: Tasks
    partials: PartialStore
    warn: Callable[[str], None]

    def write(self, reports: Sequence[Report], now: datetime, *, may_create: bool) -> list[EventResult]:
        """Write reports; returns their results in order, 204, 404 or 503 (`asya.tasks.aws.tasks.Tasks.report`).

        Args:
            may_create: whether a report on an unknown task creates the task.
        """
        events = [report for report in reports if isinstance(report, TaskEvent)]
        partials = [report for report in reports if isinstance(report, PartialEvent)]
        # Partials are stored before the end of their hop, so that a stream shows them first.
        partial_results = self._save_partials(partials, now, may_create=may_create) if partials else {}
        results = iter(self.tasks.report(events, now, may_create=may_create) if events else [])
        return [partial_results[report.id] if isinstance(report, PartialEvent) else next(results) for report in reports]

    def _save_partials(
        self, partials: Sequence[PartialEvent], now: datetime, *, may_create: bool
    ) -> dict[str, EventResult]:
        """Store partials; returns the result for each task."""
        ids = {event.id for event in partials}
        results = {task_id: EventResult(id=task_id, status=HTTPStatus.NO_CONTENT) for task_id in ids}
        try:
            # Functions may publish partials before the record of their task exists.
            unknown = set() if may_create else ids - self.tasks.existing(ids, now)
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
