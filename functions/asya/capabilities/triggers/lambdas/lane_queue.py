"""Takes occurrences into their lanes, and lanes to their next tasks (`protocol §16.lane`, `§16.overlap`, `§16.window`).

Each write of a lane names the revision that it has seen. A process whose write lost reads the lane and decides again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from asya.capabilities.triggers import lane_changes
from asya.capabilities.triggers.aws.lane_items import StoredLane
from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.aws.queue_senders import LaneChecks
from asya.capabilities.triggers.lambdas.starts import LaneStarts
from asya.capabilities.triggers.lane_changes import Change
from asya.capabilities.triggers.lanes import (
    Entry,
    Lane,
    LaneFullError,
    LaneKey,
    Start,
    entry_of,
    lane_of,
    seconds_until,
)
from asya.capabilities.triggers.messages import (
    EndNotice,
    LaneCheck,
    StartAgain,
    UnusableMessageError,
    read_end_notice,
    read_lane_message,
)
from asya.capabilities.triggers.occurrences import Occurrence
from asya.protocol.api_errors import ApiError
from asya.protocol.task import TaskRecord
from asya.protocol.times import parse_time
from asya.protocol.triggers import Trigger
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.task_store import TaskStore, TaskStoreError
from asya.tasks.starts.aws.task_starter import TaskStarter

# Each conflict means that another process has made progress.
_ATTEMPTS = 12
_FIRST_DELAY = 0.01  # seconds
_LONGEST_DELAY = 0.3


class LaneBusyError(RuntimeError):
    """Other processes write the lane all the time; the message comes again."""


@dataclass(frozen=True, slots=True)
class LaneQueue:
    """The lanes of the mesh.

    Attributes:
        records: the records of tasks, which say whether a task has ended.
        starter: knows the keys of occurrences that have started a task.
    """

    services: Services
    store: LaneStore
    records: TaskStore
    starter: TaskStarter
    starts: LaneStarts
    checks: LaneChecks

    def take(self, body: bytes) -> bool:
        """Take a message about a lane or the end of a task; False for another one.

        Raises:
            UnusableMessageError: a start that was redriven cannot start.
            LaneBusyError, ApiError, TaskStoreError: the message must come again.
        """
        match read_lane_message(body) or read_end_notice(body):
            case LaneCheck() as check:
                self.check(check)
            case StartAgain() as again:
                self.start_again(again)
            case EndNotice() as notice:
                self.ended(notice)
            case None:
                return False
        return True

    def enter(self, occurrence: Occurrence, sent_at: str) -> None:
        """Decide about an occurrence once, and perform what follows.

        Args:
            occurrence: the occurrence of a trigger that has lanes.
            sent_at: when its message was sent.

        Raises:
            UnusableMessageError: too many starts wait.
            LaneBusyError, ApiError, TaskStoreError: the message must come again.
        """
        trigger = self._triggers[occurrence.trigger]
        key, entry = lane_of(occurrence, trigger), entry_of(occurrence, sent_at)
        if self.repeat(occurrence):
            return
        if self.starter.task_of(occurrence.owner, occurrence.key) is not None:
            # A function of another deployment has no lanes, and has claimed the key.
            self.starts.start(occurrence)
        elif (change := self._decide(key, trigger, entry)) is None:
            self.look_at(key)
        else:
            self._follow(key, change, entry)

    def repeat(self, occurrence: Occurrence) -> bool:
        """Finish what a dead process has left of an occurrence that a lane has decided about; False for a new one.

        Raises:
            LaneBusyError, ApiError, TaskStoreError: the message must come again.
        """
        decision = self.store.decision(occurrence.task_id)
        if decision is not None:
            self.look_at(decision.lane)
        return decision is not None

    def ended(self, notice: EndNotice) -> None:
        """Go on after the end of a task.

        Raises:
            LaneBusyError, ApiError, TaskStoreError: the message must come again.
        """
        if (decision := self.store.decision(notice.ended)) is not None:
            self.look_at(decision.lane)

    def check(self, check: LaneCheck) -> None:
        """Do what is due in a lane. A check that closes a window which ends later is sent again.

        Raises:
            LaneBusyError, ApiError, TaskStoreError: the message must come again.
        """
        lane = self.look_at(check.key)
        window = lane.window
        if check.closes is None or window is None or window.start.id != check.closes:
            return
        if parse_time(window.due) > (now := self.services.now()):
            self.checks.send(check.key, closes=check.closes, delay=seconds_until(window.due, now))

    def start_again(self, message: StartAgain) -> None:
        """Take a start that has failed into its lane again.

        Raises:
            UnusableMessageError: too many starts wait, the trigger is gone, or the payload has expired.
            LaneBusyError, ApiError, TaskStoreError: the message must come again.
        """
        key, start = message.key, message.start
        trigger = self._triggers.get(key.trigger)
        if trigger is None:
            raise UnusableMessageError(f"the mesh has no trigger {key.trigger!r}")
        record, is_kept = self._record(start.id), bool(self.store.load(key, start))
        if record is not None and (not is_kept or not record.is_pending):
            return  # the message has come twice; the process that has started the task may be deleting its payload
        if not is_kept:
            raise UnusableMessageError("the payload of the start has expired")
        for delay in _delays():
            seen, _ = self._settled(key, trigger)
            if seen.lane.running == start.id or seen.lane.starts(start.id) or self.store.waits(key, start):
                break
            overlap = "queue" if trigger.overlap == "skip" else trigger.overlap
            try:
                change = lane_changes.admit(seen.lane, overlap, start)
            except LaneFullError as error:
                raise UnusableMessageError(str(error)) from None
            if self.store.change(key, seen, change, self.services.now()) is not None:
                break
            self.services.environment.sleep(delay)
        else:
            raise _busy(key)
        self.look_at(key)

    @property
    def _triggers(self) -> dict[str, Trigger]:
        return self.services.settings.table.triggers

    def _decide(self, key: LaneKey, trigger: Trigger, entry: Entry) -> Change | None:
        """Write the decision about an occurrence; None if it has one already."""
        for delay in _delays():
            # At a later time the window that `_settled` has left open may have ended.
            seen, now = self._settled(key, trigger, entry.size)
            try:
                change = lane_changes.arrive(seen.lane, trigger, entry, now)
            except LaneFullError as error:
                raise UnusableMessageError(str(error)) from None
            match self.store.decide(key, seen, change, entry, now):
                case "decided":
                    return None
                case "conflict":
                    self.services.environment.sleep(delay)
                case _:
                    return change
        raise _busy(key)

    def _follow(self, key: LaneKey, change: Change, entry: Entry) -> None:
        telemetry = self.services.telemetry
        telemetry.log.info(
            "occurrence decided", trigger=key.trigger, key=entry.occurrence.key, outcome=change.outcome, lane=key.digest
        )
        if change.outcome == "skipped":
            telemetry.count("TriggersSkipped")
            return
        window = change.lane.window
        if change.opens and window is not None:
            self.checks.send(key, closes=window.start.id, delay=seconds_until(window.due, self.services.now()))
        try:
            self.look_at(key)
        except (LaneBusyError, ApiError, TaskStoreError) as error:
            if change.outcome == "started":
                raise
            # The occurrence waits safely; what others have left is found by the sweep.
            telemetry.log.warning("what is due in a lane waits", trigger=key.trigger, lane=key.digest, exc_info=error)

    def look_at(self, key: LaneKey) -> Lane:
        """Do all that is due in a lane, and return it."""
        trigger = self._triggers.get(key.trigger)
        if trigger is None or not trigger.enabled:
            return self.store.read(key).lane
        for delay in _delays():
            seen, _ = self._settled(key, trigger)
            lane = seen.lane
            if not lane.starting and not lane.canceling:
                return lane
            try:
                done = self.starts.perform(key, lane, trigger)
            except ApiError as error:
                if error.code != "idempotency_in_progress":
                    raise
                # Another process is at work on a start. It goes on with the lane, and after its death the sweep does.
                return lane
            if done.is_empty:
                return lane  # the starts wait for the end of a task
            left = lane_changes.performed(lane, done.started, done.canceled, done.failed)
            if self.store.change(key, seen, Change(left, "started"), self.services.now()) is None:
                self.services.environment.sleep(delay)
                continue
            for start in lane.starting:
                if start.id in done.started:
                    self._forget(key, start)
        raise _busy(key)

    def _settled(self, key: LaneKey, trigger: Trigger, size: int = 0) -> tuple[StoredLane, datetime]:
        """The lane after all changes that are due, which may leave starts to perform, and the time of its reading."""
        alive = set[str]()
        delays = _delays()
        while True:
            seen, now = self.store.read(key), self.services.now()
            asked = lane_changes.awaited(seen.lane, trigger) - alive
            ended = {task_id for task_id in asked if self._has_ended(task_id)}
            alive |= asked - ended
            lane = lane_changes.without_ended(seen.lane, ended)
            oldest = self.store.oldest(key) if lane.queued and lane.running is None else None
            change = lane_changes.settle(lane, trigger, now, oldest=oldest, size=size)
            if change is None and lane == seen.lane:
                return seen, now
            if self.store.change(key, seen, change or Change(lane, "started"), now) is None:
                self._pause(key, delays)

    def _pause(self, key: LaneKey, delays: Iterator[float]) -> None:
        """Wait after a conflict.

        Raises:
            LaneBusyError: there were too many.
        """
        delay = next(delays, None)
        if delay is None:
            raise _busy(key)
        self.services.environment.sleep(delay)

    def _has_ended(self, task_id: str) -> bool:
        record = self._record(task_id)
        return record is None or record.is_terminal

    def _record(self, task_id: str) -> TaskRecord | None:
        """The record of a task.

        Raises:
            TaskStoreError: the table is unavailable, or a later version has written the record.
        """
        now = self.services.now()
        stored = self.records.records([task_id], now, consistent=True).get(task_id)
        if stored is not None:
            return stored.record
        # Such a read leaves out records that it cannot decode.
        loaded = self.records.load(task_id, now)
        return loaded[0] if loaded is not None else None

    def _forget(self, key: LaneKey, start: Start) -> None:
        """Delete the payloads of a start. They expire otherwise."""
        try:
            self.store.forget(key, start)
        except TaskStoreError as error:
            self.services.telemetry.log.warning("payloads of a start stay", exc_info=error)


def _delays() -> Iterator[float]:
    return (min(_FIRST_DELAY * 2**attempt, _LONGEST_DELAY) for attempt in range(_ATTEMPTS))


def _busy(key: LaneKey) -> LaneBusyError:
    return LaneBusyError(f"the lane {key.digest} of the trigger {key.trigger!r} changes all the time")
