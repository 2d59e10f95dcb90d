"""x-triggers: turns the messages of all sources into starts of tasks (`protocol §16`).

A start claims the key of its occurrence, writes the record, then sends the first message. A repeated message finds the key; one
that comes after a crash finishes the start with the same id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec.structs import replace as replaced

from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.aws.webhook_queue import WebhookBodies
from asya.capabilities.triggers.chains import check_chain, led_by
from asya.capabilities.triggers.lambdas.backfill_runner import BackfillRunner
from asya.capabilities.triggers.lambdas.lane_queue import LaneBusyError, LaneQueue
from asya.capabilities.triggers.lambdas.starts import FINAL, OccurrenceStarts
from asya.capabilities.triggers.messages import (
    OtherDeploymentError,
    StartAgain,
    UnusableMessageError,
    check_sender,
    read_end_notice,
    read_lane_message,
    read_occurrences,
)
from asya.capabilities.triggers.occurrences import Occurrence, submission_of
from asya.capabilities.triggers.operators.operator_messages import heeds_pause, pause_problem, read_backfill, read_fire
from asya.capabilities.triggers.sources.new_objects import Buckets
from asya.capabilities.triggers.sources.service_messages import LAST_RECEIVE, read_service_message
from asya.function.aws.failed_messages import FailedMessages
from asya.function.aws.receipt import Receipt
from asya.function.lambdas.batch import BatchProcessor, BatchResponse, Record, records
from asya.function.nack import OutdatedError
from asya.protocol import ids
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.task_store import TaskStore, TaskStoreError
from asya.tasks.starts.tool_schemas import validate


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces occurrences back to their tasks.

    Attributes:
        records: the records of tasks.
    """

    services: Services
    records: TaskStore

    def traced(self, occurrence: Occurrence) -> Occurrence:
        """Return an occurrence with the triggers that led to it. One that names no task of the mesh begins a chain.

        Raises:
            UnusableMessageError: too many starts follow from each other.
            TaskStoreError: the table is unavailable.
        """
        task_id = occurrence.cause
        if not ids.is_usable(task_id):
            return occurrence
        cause = self._record(task_id)
        if cause is not None and cause.root_id is not None:
            # The record of a child does not say what has started its root.
            cause = self._record(cause.root_id)
        after = led_by(cause) if cause is not None else ()
        check_chain(occurrence.trigger, after)
        return replace(occurrence, started_by=replaced(occurrence.started_by, after=after))

    def _record(self, task_id: str) -> TaskRecord | None:
        stored = self.records.records([task_id], self.services.now(), consistent=True).get(task_id)
        return stored.record if stored is not None else None


# The receives of a message that only says where to look; the sweep of the next minute sends another one.
_LOOKS = 5


@dataclass(frozen=True, slots=True)
class TriggerQueue:
    """Processes the messages of `x-triggers`.

    Attributes:
        starts: starts the tasks of occurrences.
        lanes: takes the occurrences of triggers that have lanes.
        states: says which triggers are paused.
        backfills: moves backfills on.
        traces: says which triggers led to an occurrence.
        bodies: has the bodies of large webhooks.
    """

    services: Services
    worker: BatchProcessor
    starts: OccurrenceStarts
    lanes: LaneQueue
    failed: FailedMessages
    states: ScheduleStates
    backfills: BackfillRunner
    traces: Traces
    bodies: WebhookBodies

    @property
    def mesh(self) -> MeshTable:
        """The table of the mesh."""
        return self.services.settings.table

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch. A message that cannot start its tasks now stays on the queue."""
        try:
            return self.worker.process(records(event), self._handle)
        finally:
            self.services.telemetry.flush()

    def _handle(self, record: Record) -> list[Receipt]:
        problems: list[str] = []
        try:
            occurrences = self._occurrences(record)
        except UnusableMessageError as error:
            occurrences, problems = [], [str(error)]
        problems += self._start_all(occurrences, record)
        if problems:
            self._give_up(record, "; ".join(problems))
        return []

    def _start_all(self, occurrences: Sequence[Occurrence], record: Record) -> list[str]:
        """Start the tasks of occurrences, and return the problems of those that can never start.

        One that cannot start stops no other trigger: an object may have several. It stops its own, whose slots are in order.

        Raises:
            Exception: some cannot start now.
        """
        paused, problems, failed = self._paused(occurrences), list[str](), dict[str, Exception]()
        for occurrence in occurrences:
            if heeds_pause(occurrence) and occurrence.trigger in paused:
                problems.append(pause_problem(occurrence.trigger))
                continue
            if occurrence.trigger in failed:
                continue
            try:
                self._start(self.traces.traced(occurrence), record)
            except UnusableMessageError as error:
                problems.append(str(error))
            except ApiError as error:
                if error.status in FINAL:
                    problems.append(f"{error.code}: {error}")
                else:
                    failed[occurrence.trigger] = error
            except Exception as error:  # noqa: BLE001 - the first one is raised below
                failed[occurrence.trigger] = error
        if failed:
            raise next(iter(failed.values()))
        return problems

    def _occurrences(self, record: Record) -> list[Occurrence]:
        settings, admission, body = self.services.settings, self.services.admission, record.arrival.body
        function = admission.function_of(record.arrival)
        if function is not None:
            check_sender(self.mesh, function, body)
        buckets = Buckets(settings.data_uri, settings.results_uri)
        of_service = read_service_message(record.arrival, self.mesh, buckets)
        if of_service is not None:
            return of_service
        if function is None and not admission.has_role(record.arrival):
            # An event may hold what no JSON of the mesh does, such as half of a surrogate pair.
            problem = f"the message has no form of S3 or EventBridge, and its sender {record.arrival.sender}"
            raise UnusableMessageError(f"{problem} is no role of the mesh")
        if self._look(record):
            return []
        try:
            fired = read_fire(body, self.mesh)
            return [fired] if fired is not None else read_occurrences(self.bodies.restored(body), self.mesh)
        except OtherDeploymentError as error:
            if record.arrival.receive_count < LAST_RECEIVE:
                # A deployment updates this function last.
                raise OutdatedError(str(error)) from None
            raise

    def _look(self, record: Record) -> bool:
        """Do what is due in the lane or the backfill that a message names; False for another message.

        Raises:
            UnusableMessageError: a start that was redriven cannot start.
            Exception: the message must come again.
        """
        body = record.arrival.body
        try:
            if (backfill := _backfill_of(body)) is None:
                return self.lanes.take(body)
            self.backfills.advance(backfill, self.starts.start)
        except (LaneBusyError, ApiError, TaskStoreError) as error:
            if record.arrival.receive_count < _LOOKS or isinstance(read_lane_message(body), StartAgain):
                raise
            # While a queue refuses starts for hours, the sweep's messages of each minute would all become dead letters.
            self.services.telemetry.log.warning("what is due waits for the sweep", exc_info=error)
        return True

    def _paused(self, occurrences: Sequence[Occurrence]) -> set[str]:
        """The paused triggers, if an occurrence heeds a pause."""
        if not any(map(heeds_pause, occurrences)):
            return set()
        return {name for name, state in self.states.read_all().items() if state.paused}

    def _start(self, occurrence: Occurrence, record: Record) -> None:
        """Start the task of an occurrence, or take the occurrence into its lane."""
        trigger = self.mesh.triggers[occurrence.trigger]
        if not trigger.enabled or not trigger.has_lanes:
            # An earlier deployment may have had lanes, and have skipped the occurrence or put it into a batch.
            if not self.lanes.repeat(occurrence):
                self.starts.start(occurrence)
            return
        if trigger.batch is None:
            # A payload that the tool refuses is a dead letter at once, and waits for nothing.
            submission_of(trigger, occurrence.payload, self.mesh, validate)
        self.lanes.enter(occurrence, format_time(record.arrival.sent_at))

    def _give_up(self, record: Record, problem: str) -> None:
        """Keep the message as a dead letter that says what is wrong.

        Raises:
            ClientError, BotoCoreError: the message stays on the queue.
        """
        self.failed.keep(record.arrival.body, problem)
        self.services.telemetry.count("TriggersFailed")
        self.services.telemetry.log.error("trigger failed", problem=problem, message_id=record.message_id)


def _backfill_of(body: bytes) -> str | None:
    """The backfill that a message lets take a step: one that an operator or the sweep names, or that a task has ended of."""
    notice = read_end_notice(body)
    if notice is not None:
        return notice.name if notice.kind == "backfill" else None
    return read_backfill(body)
