"""Repeats unfinished releases of paused envelopes every minute, and measures the oldest pauses (`protocol §11`, `§15`)."""

from dataclasses import dataclass
from datetime import timedelta

from asya.messaging.aws.telemetry import Telemetry
from asya.pause.lambdas.pause_release import PauseReleases
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.paused_tasks import PausedTasks
from asya.tasks.aws.task_store import TaskStore

# A younger release is probably being sent at this moment.
_GRACE = timedelta(seconds=45)


@dataclass(frozen=True, slots=True)
class PauseSweep:
    """Sweeps the pauses of all tasks of the mesh."""

    services: Services
    paused_tasks: PausedTasks
    store: TaskStore
    pause_releases: PauseReleases

    def sweep(self) -> None:
        """Run once. The next sweep repeats a release that cannot be sent.

        Raises:
            TaskStoreError: the table cannot be read.
        """
        moment = self.services.now()
        for task in self.paused_tasks.pause_releases(moment - _GRACE):
            stored = self.store.records([task.task_id], moment, consistent=True).get(task.task_id)
            if stored is not None:
                self.pause_releases.finish(stored.record, moment)
        self._measure()

    def _measure(self) -> None:
        """Measure the age of each pause actor's oldest pause in seconds; 0 without a pause."""
        moment, table = self.services.now(), self.services.settings.table
        ages = {name: 0.0 for name, actor in table.actors.items() if actor.kind == "pause"}
        for task in self.paused_tasks.paused(moment):
            if task.actor in ages:
                ages[task.actor] = max(ages[task.actor], (moment - task.since).total_seconds())
        for actor, age in ages.items():
            telemetry = Telemetry(self.services.settings.namespace, actor)
            telemetry.measure("PausedAge", age, "Seconds")
            telemetry.flush()
