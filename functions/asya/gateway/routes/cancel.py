"""The gateway's call for ending a task before its time: `DELETE /api/v1/mesh/{id}` (`protocol §13`).

The record is what decides: sidecars ask for it before each hop, and hand what is canceled to x-sink. All that follows it here only
makes the end come sooner. Whoever dies in between leaves a canceled task, and the same call once more does the rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from asya.gateway.access import AccessRules, Caller
from asya.gateway.http.router import HttpRoute, Request, Response, required_identity
from asya.gateway.http.visible_tasks import unknown_task
from asya.messaging.lambdas.environment import Environment
from asya.pause.lambdas.pause_release import PauseReleases
from asya.protocol.api_errors import ApiError
from asya.protocol.hops import HopFold
from asya.protocol.task import TaskRecord
from asya.spark.aws.cancel_requests import CancelRequests
from asya.tasks.aws.index import NEWEST, TaskIndex
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
from asya.tasks.cancellation import cancel_record, cancellation_report

# What marking descendants may take: the caller waits, and API Gateway for 30 seconds only.
SECONDS = 15.0
AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class CancelRoutes:
    """What the call needs, and the call.

    Attributes:
        runs: stops job runs; None in a mesh without heavy actors.
    """

    tasks: Tasks
    store: TaskStore
    index: TaskIndex
    access: AccessRules
    pause_releases: PauseReleases
    runs: CancelRequests | None
    environment: Environment
    warn: Callable[[str], None]

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The call as of one moment."""
        return (HttpRoute("DELETE", "/api/v1/mesh/{id}", lambda request: self.delete(request, now)),)

    def delete(self, request: Request, now: datetime) -> Response:
        """204, also if the task has ended before: then it stays as it ended."""
        caller = self.access.caller(required_identity(request))
        self.cancel(request.parameters["id"], caller, now)
        return Response(204, None)

    def cancel(self, task_id: str, caller: Caller, now: datetime) -> TaskRecord:
        """Cancel a task with all that came of it; gives its record.

        Raises:
            ApiError: 404 if there is no such task; 503 if its job runs could not be asked to stop: ask again.
            TaskStoreError: if the table cannot be read or written; the task may be canceled, or some of what came of it.
        """

        def decide(record: TaskRecord, hops: HopFold) -> TaskRecord:
            if not caller.may_see(record.owner):
                raise unknown_task(task_id)
            return cancel_record(record, hops, now=now)

        record = self.tasks.update(task_id, decide, now)
        if record is None:
            raise unknown_task(task_id)
        if record.status == "canceled":
            self.pause_releases.finish(record, now)
            self._cancel_descendants(task_id, now)
            self._stop_runs(task_id)
        return record

    def _cancel_descendants(self, task_id: str, now: datetime) -> None:
        """Mark what came of it. What is left out when the time is up is stopped at its next hop, if the task was its root."""
        ends = self.environment.monotonic() + SECONDS
        parents = [task_id]
        met = {task_id}
        while parents:
            for ids in self._children(parents.pop()):
                new = [each for each in ids if each not in met]
                met.update(new)
                parents += new
                self._mark(new, now)
                if self.environment.monotonic() > ends:
                    self.warn(f"task {task_id} was canceled, but not all of the {len(met)} tasks below it")
                    return

    def _children(self, parent_id: str) -> Iterator[list[str]]:
        place = NEWEST
        while True:
            look = self.index.children(parent_id, place, AT_ONCE)
            yield [found.task_id for found in look.found]
            if look.seen_to is None:
                return
            place = look.seen_to

    def _mark(self, ids: list[str], now: datetime) -> None:
        """Of paused ones a sweep hands over what is kept."""
        records = [stored.record for stored in self.store.records(ids, now, consistent=True).values()]
        self.tasks.report(
            [cancellation_report(record, now=now) for record in records if not record.is_terminal],
            now,
            may_create=False,
        )

    def _stop_runs(self, task_id: str) -> None:
        if self.runs is None:
            return
        try:
            self.runs.send(task_id)
        except (ClientError, BotoCoreError) as error:
            problem = f"task {task_id!r} is canceled, but its job runs could not be asked to stop; ask again"
            raise ApiError(503, "unavailable", problem) from error
