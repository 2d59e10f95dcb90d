"""Looks at the lanes that have something to do or to wait for, every minute (`protocol §16.lane.repair`).

It only sends checks: what a check finds, `x-triggers` decides again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from asya.capabilities.triggers.aws.lane_checks import LaneChecks
from asya.capabilities.triggers.aws.lane_items import StoredLane
from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.lane_changes import awaited, ends, startable
from asya.capabilities.triggers.lanes import Lane
from asya.function.aws.table import chunks
from asya.protocol.triggers import Trigger
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.task_store import TaskStore

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
