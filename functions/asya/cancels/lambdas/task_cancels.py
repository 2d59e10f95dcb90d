"""Cancels a task with its descendants and its job runs (`protocol §13.cancel`).

The record decides: sidecars query it before each hop, and route canceled envelopes to x-sink. The steps after the write of the
record only speed up the end. If the function crashes between them, the task is canceled, and a repetition does the rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from asya.messaging.lambdas.environment import Environment
from asya.pause.lambdas.pause_release import PauseReleases
from asya.protocol.api_errors import ApiError
from asya.protocol.hops import HopFold
from asya.protocol.task import TaskRecord
from asya.spark.aws.cancel_requests import CancelRequests
from asya.tasks.aws.index import NEWEST, TaskIndex
from asya.tasks.aws.table_calls import chunks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
from asya.tasks.cancellation import cancel_record, cancellation_report

# Seconds for the cancellation of descendants: API Gateway ends the call after 30.
TIME_LIMIT = 15.0
PAGE_SIZE = 100


def may_cancel(_record: TaskRecord) -> None:
    """Refuse nothing."""


@dataclass(frozen=True, slots=True)
class TaskCancels:
    """Cancels tasks, their descendants and their job runs.

    Attributes:
        runs: stops job runs; None in a mesh without heavy actors.
    """

    tasks: Tasks
    store: TaskStore
    index: TaskIndex
    pause_releases: PauseReleases
    runs: CancelRequests | None
    environment: Environment
    warn: Callable[[str], None]

    def cancel(
        self, task_id: str, now: datetime, by: str, check: Callable[[TaskRecord], None] = may_cancel
    ) -> TaskRecord | None:
        """Cancel a task with its descendants and return its record; None if there is no such task. An ended one stays as it is.

        Args:
            task_id: the id of the task.
            now: the time of the cancellation.
            by: the principal that cancels.
            check: raises an exception for a task that may not be canceled.

        Raises:
            ApiError: 503 if the job runs were not asked to stop, so the call must be repeated.
            TaskStoreError: the table is unavailable; the task and some descendants may be canceled.
        """

        def decide(record: TaskRecord, hops: HopFold) -> TaskRecord:
            check(record)
            return cancel_record(record, hops, now=now, by=by)

        record = self.tasks.update(task_id, decide, now)
        if record is not None and record.status == "canceled":
            self.pause_releases.finish(record, now)
            self._cancel_descendants(task_id, now)
            self._stop_runs(task_id)
        return record

    def _cancel_descendants(self, task_id: str, now: datetime) -> None:
        """Cancel descendants until the time limit; the next hop of any other stops if the task is its root."""
        ends_at = self.environment.monotonic() + TIME_LIMIT
        parents = [task_id]
        visited = {task_id}
        while parents:
            for ids in self._children(parents.pop()):
                new = [child_id for child_id in ids if child_id not in visited]
                visited.update(new)
                parents += new
                self._cancel_all(new, now)
                if self.environment.monotonic() > ends_at:
                    self.warn(
                        f"task {task_id} was canceled, but the time limit ended after {len(visited) - 1} descendants"
                    )
                    return

    def _children(self, parent_id: str) -> Iterator[list[str]]:
        before = NEWEST
        while True:
            page = self.index.children(parent_id, before, PAGE_SIZE)
            # The page holds all children of one time, and the time limit is checked after each part.
            yield from chunks([key.task_id for key in page.keys], PAGE_SIZE)
            if page.complete_to is None:
                return
            before = page.complete_to

    def _cancel_all(self, ids: list[str], now: datetime) -> None:
        """Cancel tasks; the pause sweep releases the paused ones."""
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
            problem = f"task {task_id!r} is canceled, but its job runs were not asked to stop; repeat the call"
            raise ApiError(503, "unavailable", problem) from error
