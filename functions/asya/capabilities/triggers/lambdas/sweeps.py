"""The sweeps of triggers, every minute: due slots, lanes, and open backfills (`protocol §16`).

The slots are sent first and noted second. A process that dies between the two sends them again, and their keys start each
task once.

The sweep of lanes only sends checks: what a check finds, `x-triggers` decides again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.capabilities.triggers.aws.backfills import Backfills
from asya.capabilities.triggers.aws.lane_items import StoredLane
from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.aws.queue_senders import LaneChecks, SlotSender
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.lane_changes import awaited, ends, startable
from asya.capabilities.triggers.lanes import Lane
from asya.capabilities.triggers.operators.operator_messages import backfill_message
from asya.capabilities.triggers.slots import ScheduleState, decide
from asya.function.aws.settings import Settings
from asya.function.aws.table import chunks
from asya.protocol.times import format_time
from asya.protocol.triggers import Schedule, Trigger
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.task_store import TaskStore, TaskStoreError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SweepServices(Protocol):
    """What the sweep needs of the services of a function."""

    @property
    def settings(self) -> Settings:
        """The settings of the function."""

    @property
    def telemetry(self) -> Any:
        """Its log and its metrics."""

    def now(self) -> datetime:
        """The current time."""


@dataclass(frozen=True, slots=True)
class SlotSweep:
    """Decides the slots of all schedules of the mesh."""

    services: SweepServices
    states: ScheduleStates
    slots: SlotSender

    def sweep(self, now: datetime | None = None) -> None:
        """Decide the slots up to now. A failure at one trigger leaves the others alone, and the next sweep repeats it.

        Args:
            now: the time in the place of the clock's; a local cloud decides slots before their time.

        Raises:
            TaskStoreError: the states cannot be read, or those of removed schedules cannot be written.
            Exception: an unexpected error at a trigger, after the slots of the others.
        """
        triggers = self.services.settings.table.triggers
        schedules = {name: (each, each.schedule) for name, each in triggers.items() if each.schedule is not None}
        states, unexpected = self.states.read_all(), list[Exception]()
        for name, (trigger, schedule) in schedules.items():
            try:
                self._decide(name, trigger, schedule, states.get(name), now or self.services.now())
            except (TaskStoreError, ClientError, BotoCoreError):
                self.services.telemetry.log.exception("the slots of a trigger wait", trigger=name)
            except Exception as error:  # noqa: BLE001 - it is raised below
                unexpected.append(error)
        self.services.telemetry.flush()
        self._turn_off({name: state for name, state in states.items() if name not in schedules})
        if unexpected:
            raise unexpected[0]

    def _turn_off(self, removed: Mapping[str, ScheduleState]) -> None:
        """Note which schedules the mesh does not have any more: they begin anew if it has them again."""
        for name, state in removed.items():
            # A trigger of another source has a state too, once it was paused.
            if state.schedule and not state.off:
                self.states.write(name, replace(state, off=True), state)

    def _decide(
        self, name: str, trigger: Trigger, schedule: Schedule, seen: ScheduleState | None, now: datetime
    ) -> None:
        telemetry = self.services.telemetry
        decision = decide(trigger, schedule, seen, now)
        self.slots.send(name, decision.due)
        if decision.state != seen and not self.states.write(name, decision.state, seen):
            # Another sweep or an operator was faster. The keys of the slots start each task once.
            return
        if decision.missed_between is not None:
            telemetry.count("SlotsMissed", decision.missed)
            first, last = map(format_time, decision.missed_between)
            # A backfill starts them.
            details = {"count": decision.missed, "first": first, "last": last, "catch_up": schedule.catch_up}
            telemetry.log.error("slots missed", trigger=name, **details)
        if decision.due:
            telemetry.log.info("slots due", trigger=name, slots=[format_time(slot) for slot in decision.due])


# Somebody is probably at work on a lane that changed lately.
_GRACE = timedelta(seconds=45)
_BATCH = 100  # records per read


@dataclass(frozen=True, slots=True)
class LaneSweep:
    """Finds the lanes of the mesh that need a check."""

    services: Services
    store: LaneStore
    records: TaskStore
    checks: LaneChecks

    def sweep(self) -> None:
        """Sweep once.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        triggers = self.services.settings.table.triggers
        if not triggers:
            return
        now = self.services.now()
        found = 0
        for lanes in chunks(list(self.store.due(now - _GRACE)), _BATCH):
            known = [(stored.lane, triggers[key.trigger]) for key, stored in lanes if key.trigger in triggers]
            alive = self._alive(known, now)
            for key, stored in lanes:
                trigger = triggers.get(key.trigger)
                if trigger is None:
                    # A function of an earlier deployment may not know it yet. The lanes of one that is gone expire.
                    continue
                self.store.prolong(key, stored, now)
                if trigger.enabled and _needs_check(stored, trigger, alive, now):
                    self.checks.send(key)
                    found += 1
        if found:
            self.services.telemetry.log.info("lanes to check", count=found)
        self.services.telemetry.flush()

    def _alive(self, lanes: list[tuple[Lane, Trigger]], now: datetime) -> frozenset[str]:
        """The ids of the awaited tasks that have not ended. A check reads an unreadable record again."""
        ids = frozenset[str]().union(*(awaited(lane, trigger) for lane, trigger in lanes))
        records = self.records.records(ids, now, consistent=True) if ids else {}
        return frozenset(task_id for task_id, stored in records.items() if not stored.record.is_terminal)


def _needs_check(stored: StoredLane, trigger: Trigger, alive: frozenset[str], now: datetime) -> bool:
    lane = stored.lane
    if startable(lane, trigger) or (lane.canceling and trigger.overlap == "cancel-previous"):
        return True
    if lane.running is None and not lane.canceling and lane.queued:
        return True
    if trigger.overlap == "allow" and (lane.running is not None or lane.canceling):
        return True  # a deployment has ended the wait
    if awaited(lane, trigger) - alive:
        return True
    return lane.window is not None and ends(lane.window, trigger, now)


@dataclass(frozen=True, slots=True)
class BackfillSweep:
    """Sends the ids of open backfills to `x-triggers`.

    Attributes:
        queue_url: the URL of that queue.
    """

    services: Services
    backfills: Backfills
    sqs: "SQSClient"
    queue_url: str

    def sweep(self) -> None:
        """Send the ids of the open backfills. A mesh without schedules has none, and reads nothing.

        Raises:
            TaskStoreError: the states cannot be read.
            ClientError, BotoCoreError: SQS does not take a message; the next sweep repeats it.
        """
        triggers = self.services.settings.table.triggers.values()
        if not any(trigger.schedule is not None for trigger in triggers):
            return
        for backfill in self.backfills.read_all(self.services.now()):
            if backfill.is_open:
                self.sqs.send_message(QueueUrl=self.queue_url, MessageBody=backfill_message(backfill.id).decode())
