"""Every minute: what was to be sent when a pause ended and may not have been is sent again; and how old the oldest pauses are.

See `protocol §11` (a sweep sends again) and `§15` (`PausedAge`).
"""

from dataclasses import dataclass
from datetime import timedelta

from asya.messaging.aws.telemetry import Telemetry
from asya.pause.lambdas.pause_release import PauseReleases
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.paused_tasks import PausedTasks
from asya.tasks.aws.task_store import TaskStore

# Younger ones are most likely being sent at this moment.
_GRACE = timedelta(seconds=45)


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
