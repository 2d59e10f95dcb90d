"""Every minute: what was to be sent when a pause ended and may not have been is sent again; and how old the oldest pauses are.

See `protocol §11` (a sweep sends again) and `§15` (`PausedAge`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from asya.messaging.aws import clients
from asya.messaging.aws.telemetry import Telemetry
from asya.pause.lambdas import pause_release as pause_releases
from asya.pause.lambdas.pause_release import PauseReleases
from asya.sidecar.lambdas.services import Services, services
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.paused_tasks import PausedTasks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks

# Younger ones are most likely being sent at this moment.
_GRACE = timedelta(seconds=45)


def handle(_event: Mapping[str, Any], _context: object) -> None:
    """Lambda's entry point: a schedule's tick."""
    build(services()).sweep()


def build(found: Services) -> "PauseSweep":
    """The sweep of this mesh."""
    settings, warn = found.settings, found.telemetry.log.warning
    table, retention = settings.table_name("tasks"), settings.table.retention.tasks
    store = DynamoTaskStore(clients.dynamodb(), table, retention, found.environment.pause)
    tasks = Tasks(store, warn, threaded=found.environment.is_threaded)
    return PauseSweep(found, PausedTasks(clients.dynamodb(), table), store, pause_releases.build(settings, tasks, warn))


@dataclass(frozen=True, slots=True)
class PauseSweep:
    """Looks after the pauses of all tasks of the mesh."""

    services: Services
    waiting: PausedTasks
    store: TaskStore
    pause_releases: PauseReleases

    def sweep(self) -> None:
        """One sweep. What could not be sent is found again by the next.

        Raises:
            TaskStoreError: if the table cannot be read now.
        """
        moment = self.services.now()
        for found in self.waiting.pause_releases(moment - _GRACE):
            stored = self.store.records([found.task_id], moment, consistent=True).get(found.task_id)
            if stored is not None:
                self.pause_releases.finish(stored.record, moment)
        self._measure()

    def _measure(self) -> None:
        """The age of each pause actor's oldest pause in seconds; 0 where nothing is paused."""
        moment, table = self.services.now(), self.services.settings.table
        ages = {name: 0.0 for name, actor in table.actors.items() if actor.kind == "pause"}
        for found in self.waiting.paused(moment):
            if found.actor in ages:
                ages[found.actor] = max(ages[found.actor], (moment - found.since).total_seconds())
        for actor, age in ages.items():
            telemetry = Telemetry(self.services.settings.namespace, actor)
            telemetry.measure("PausedAge", age, "Seconds")
            telemetry.flush()
