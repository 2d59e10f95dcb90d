"""Cancels a task with its descendants and its job runs (`protocol §13.cancel`).

The claim on the end decides (`protocol §11.sink.claim`). A task whose end is claimed is left alone. Otherwise the record is written
first: sidecars query it before each hop, and route canceled envelopes to x-sink. Then the end is claimed as canceled, so that no
envelope ends otherwise. If the function crashes in between, or x-sink is faster, the end that is claimed replaces the
cancellation in the record. The steps after the claim only speed up the end, and a repetition does the rest.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TypeGuard, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.pauses.lambdas.pause_release import PauseReleases
from asya.capabilities.pauses.lambdas.wiring import build_releases
from asya.ends.aws.end_claims import Claim, EndClaims
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.aws.table import chunks
from asya.function.hop import Delivery
from asya.function.lambdas.environment import Environment
from asya.function.lambdas.function import Function
from asya.heavy.aws.completion_messages import CancelRequests
from asya.protocol import names, states
from asya.protocol.api_errors import ApiError
from asya.protocol.events import COUNT_LIMIT
from asya.protocol.hops import HopFold
from asya.protocol.keys import canceled_key
from asya.protocol.task import TaskRecord
from asya.tasks.aws.index import NEWEST, TaskIndex
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
from asya.tasks.cancellation import cancel_record, cancellation_report

# Seconds for the cancellation of descendants: API Gateway ends the call after 30.
TIME_LIMIT = 15.0
PAGE_SIZE = 100
CLAIMERS = 8  # threads
T = TypeVar("T")


def may_cancel(_record: TaskRecord) -> None:
    """Refuse nothing."""


@dataclass(frozen=True, slots=True)
class CanceledTask:
    """A task after its cancellation.

    Attributes:
        record: the record; it is canceled, or has ended before, unless `ended_as` says otherwise.
        ended_as: the phase in which the envelope has ended although the record does not show it yet; None if it does.
    """

    record: TaskRecord
    ended_as: str | None = None

    @property
    def status(self) -> str:
        """The status in which the task has ended."""
        return self.ended_as or self.record.status


@dataclass(frozen=True, slots=True)
class TaskCancels:
    """Cancels tasks, their descendants and their job runs.

    Attributes:
        claims: the claims on the ends of envelopes.
        runs: stops job runs; None in a mesh without heavy actors.
    """

    tasks: Tasks
    store: TaskStore
    index: TaskIndex
    claims: EndClaims
    pause_releases: PauseReleases
    runs: CancelRequests | None
    environment: Environment
    warn: Callable[[str], None]

    def cancel(
        self, task_id: str, now: datetime, by: str, check: Callable[[TaskRecord], None] = may_cancel
    ) -> CanceledTask | None:
        """Cancel a task with its descendants; None if there is no such task. An ended one stays as it is.

        Args:
            task_id: the id of the task.
            now: the time of the cancellation.
            by: the principal that cancels.
            check: raises an exception for a task that may not be canceled.

        Raises:
            ApiError: 503 if the end was not claimed, or the job runs were not asked to stop; the call must be repeated.
            TaskStoreError: the table is unavailable; the task and some descendants may be canceled.
        """
        holder = self._claim(task_id, lambda: self.claims.holder(task_id))

        def decide(record: TaskRecord, hops: HopFold) -> TaskRecord:
            check(record)
            return record if _has_ended(holder, record) else cancel_record(record, hops, now=now, by=by)

        record = self.tasks.update(task_id, decide, now)
        if record is None:
            return None
        if not record.is_canceled:
            is_on_its_way = _has_ended(holder, record) and holder.phase != record.status
            return CanceledTask(record, holder.phase if holder is not None and is_on_its_way else None)
        canceled = _cancellation(record)
        holder = self._claim(task_id, lambda: self.claims.take(canceled, epoch_seconds=now.timestamp()).claim)
        self.pause_releases.finish(record, now)
        self._cancel_descendants(task_id, now)
        self._stop_runs(task_id)
        is_taken = (holder.generation, holder.phase) == (canceled.generation, canceled.phase)
        return CanceledTask(record, None if is_taken else holder.phase)

    def _claim(self, task_id: str, call: Callable[[], T]) -> T:
        """Read or take the claim on the end of a task.

        Raises:
            ApiError: 503 if the table does not answer.
        """
        try:
            return call()
        except (ClientError, BotoCoreError) as error:
            self.warn(f"the end of task {task_id} was not claimed: {error}")
            problem = f"it is not decided whether task {task_id!r} is canceled, or ends otherwise; repeat the call"
            raise ApiError(503, "unavailable", problem) from error

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
        # A repetition claims what the first call has marked only.
        open_records = [record for record in records if not record.is_terminal or record.is_canceled]
        self.tasks.report([cancellation_report(record, now=now) for record in open_records], now, may_create=False)

        def claim(record: TaskRecord) -> None:
            self._claim(record.id, lambda: self.claims.take(_cancellation(record), epoch_seconds=now.timestamp()))

        if not self.environment.is_threaded:
            for record in open_records:
                claim(record)
            return
        with ThreadPoolExecutor(CLAIMERS, thread_name_prefix="claims") as pool:
            list(pool.map(claim, open_records))

    def _stop_runs(self, task_id: str) -> None:
        if self.runs is None:
            return
        try:
            self.runs.send(task_id)
        except (ClientError, BotoCoreError) as error:
            problem = f"task {task_id!r} is canceled, but its job runs were not asked to stop; repeat the call"
            raise ApiError(503, "unavailable", problem) from error


def _cancellation(record: TaskRecord) -> Claim:
    """The claim of a canceled task; its position is beyond each pause."""
    key = canceled_key(record.id)
    return Claim(record.id, record.generation, states.CANCELED, key, COUNT_LIMIT, owner=record.owner, is_by_call=True)


def _has_ended(holder: Claim | None, record: TaskRecord) -> TypeGuard[Claim]:
    """Whether an end of the task's generation is claimed. A provisional one may give way to a cancellation."""
    if holder is None or holder.generation != record.generation:
        return False
    return holder.phase != states.CANCELED and not holder.is_provisional


def build_task_cancels(own: Function, stored: StoredTasks, seal: Callable[[Delivery], Delivery]) -> TaskCancels:
    """Build the cancellation of the mesh's tasks.

    Args:
        seal: gives a delivery the key of its envelope.
    """
    settings = own.settings
    return TaskCancels(
        tasks=stored.tasks,
        store=stored.store,
        index=stored.index,
        claims=EndClaims(clients.dynamodb(), settings.table_name("sink"), settings.table.retention.tasks),
        pause_releases=build_releases(own, stored.tasks, seal),
        runs=_cancel_requests(settings),
        environment=own.environment,
        warn=own.warn,
    )


def _cancel_requests(settings: Settings) -> CancelRequests | None:
    """Build the sender of cancel requests; None for a mesh without heavy actors."""
    if not any(actor.kind == "spark" for actor in settings.table.actors.values()):
        return None
    return CancelRequests(clients.sqs(), queue_url=settings.queue_url(names.COMPLETION))
