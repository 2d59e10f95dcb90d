"""Starts tasks of occurrences once, and performs what lanes are about to do (`protocol §16.start`).

Starts and cancellations are idempotent, and the lane strikes them out after they were performed. So a process that
dies in between, or another one at the same time, repeats them without effect.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.capabilities.cancels.lambdas.task_cancels import TaskCancels
from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.chains import longest
from asya.capabilities.triggers.lane_changes import MOST_STARTS, startable
from asya.capabilities.triggers.lanes import Lane, LaneKey, Start, window_key
from asya.capabilities.triggers.messages import encode_again
from asya.capabilities.triggers.occurrences import Occurrence, owner_of, submission_of
from asya.function.aws.failed_messages import FailedMessages
from asya.protocol.api_errors import ApiError
from asya.protocol.task import StartedBy
from asya.protocol.triggers import Trigger
from asya.sidecar.lambdas.services import Services
from asya.tasks.starts.aws.task_starter import TaskStarter
from asya.tasks.starts.idempotency import IdempotencyKey
from asya.tasks.starts.submission import Origin, first_message
from asya.tasks.starts.tool_schemas import validate

FINAL = (400, 404, 413)
"""These answers of a start are final: a repetition has the same."""


@dataclass(frozen=True, slots=True)
class OccurrenceStarts:
    """Starts the tasks of occurrences.

    Attributes:
        new_span: creates a span id of 16 hexadecimal digits.
    """

    services: Services
    starter: TaskStarter
    new_span: Callable[[], str]

    def start(self, occurrence: Occurrence) -> None:
        """Start the task of an occurrence, once.

        Raises:
            ApiError: the start was refused, or somebody else is at it.
            TaskStoreError: the table is unavailable.
        """
        mesh = self.services.settings.table
        trigger = mesh.triggers[occurrence.trigger]
        if not trigger.enabled:
            self.services.telemetry.log.info("the trigger is off", trigger=occurrence.trigger, key=occurrence.key)
            return
        submission = submission_of(trigger, occurrence.payload, mesh, validate)
        tenant = occurrence.owner if mesh.is_fair_by_owner else ""
        origin = Origin(gateway_url=self.services.settings.gateway_url or "", span=self.new_span(), tenant=tenant)
        compose = first_message(submission, origin, mesh)
        key = IdempotencyKey(occurrence.owner, occurrence.key, "")
        self._note_at_slot(occurrence)
        task_id = self.starter.start_once(
            compose,
            key,
            occurrence.task_id,
            self.services.now(),
            lambda record: replace(record, started_by=occurrence.started_by),
        )
        self.services.telemetry.count("TriggersFired")
        self.services.telemetry.log.info(
            "task started", trigger=occurrence.trigger, key=occurrence.key, envelope_id=task_id
        )

    def _note_at_slot(self, occurrence: Occurrence) -> None:
        """Name the task in the record of the slot's first task: its success overtakes the failure of that one.

        The note comes before the start. It says nothing until the task has succeeded.
        """
        first, task_id = occurrence.slot_task_id, occurrence.task_id
        if first is not None and first != task_id:
            self.starter.tasks.update(first, lambda record, _: record.overtaken_by(task_id), self.services.now())


@dataclass(frozen=True, slots=True)
class Performed:
    """What was performed: ids of started and canceled tasks, and of starts that failed for ever."""

    started: frozenset[str]
    canceled: frozenset[str]
    failed: frozenset[str]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was performed."""
        return not (self.started or self.canceled or self.failed)


@dataclass(frozen=True, slots=True)
class LaneStarts:
    """Starts and cancels the tasks of lanes.

    Attributes:
        start: starts the task of an occurrence, once.
    """

    services: Services
    store: LaneStore
    cancels: TaskCancels
    failed: FailedMessages
    start: Callable[[Occurrence], None]

    def perform(self, key: LaneKey, lane: Lane, trigger: Trigger) -> Performed:
        """Perform what a lane is about to do, in order: a task is canceled before the next one starts.

        A trigger that cancels no more has no permission to: the start that was to follow waits for the end of the task.

        After an outage there may be more than a process has time for. So it performs 25 starts at most, which the lane then
        strikes out.

        Raises:
            ApiError, TaskStoreError, ClientError, BotoCoreError: something could not be performed now.
        """
        started, canceled, failed = set[str](), set[str](), set[str]()
        waiting = list(startable(lane, trigger))
        canceling = lane.canceling if trigger.overlap == "cancel-previous" else ()
        while True:
            open_starts = {start.id for start in waiting}
            for task_id in canceling:
                # A task that another process may be starting is started first: it would start after its cancellation.
                if task_id not in open_starts | canceled | failed:
                    self.cancels.cancel(task_id, self.services.now(), owner_of(key.trigger))
                    canceled.add(task_id)
            if not waiting or len(started) + len(failed) == MOST_STARTS:
                return Performed(frozenset(started), frozenset(canceled), frozenset(failed))
            start = waiting.pop(0)
            (started if self._start(key, start) else failed).add(start.id)

    def _start(self, key: LaneKey, start: Start) -> bool:
        """Start a task; False if it can never start, and is a dead letter now."""
        occurrences = self.store.load(key, start)
        if not occurrences:
            if not self.store.read(key).lane.starts(start.id):
                return True  # another process has started the task, struck the start out and deleted the payload
            return self._give_up(
                key, start, "the payload has expired, because the start waited longer than tasks are kept"
            )
        try:
            self.start(_occurrence(start, occurrences))
        except ApiError as error:
            if error.status not in FINAL:
                raise
            if not self.store.read(key).lane.starts(start.id):
                return True  # during a deployment another version has started the task
            return self._give_up(key, start, f"{error.code}: {error}")
        return True

    def _give_up(self, key: LaneKey, start: Start, problem: str) -> bool:
        self.failed.keep(encode_again(key, start), problem)
        self.services.telemetry.count("TriggersFailed")
        self.services.telemetry.log.error("trigger failed", trigger=key.trigger, problem=problem, envelope_id=start.id)
        return False


def _occurrence(start: Start, occurrences: list[Occurrence]) -> Occurrence:
    """The occurrence that a start stands for: the one that it keeps, or all of a window."""
    last = occurrences[-1]
    if start.opener is None:
        return last
    payload, started_by = last.payload, last.started_by
    if start.window == "batch":
        payload = Raw(msgspec.json.encode({"items": [occurrence.payload for occurrence in occurrences]}))
        started_by = StartedBy(
            kind="trigger", name=last.trigger, after=longest(each.started_by for each in occurrences)
        )
    return Occurrence(last.trigger, window_key(start.opener), payload, started_by)
