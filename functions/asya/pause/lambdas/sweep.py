"""Repeats unfinished releases of paused envelopes every minute, ends pauses that last too long, and measures the open ones.

See `protocol §11` and `§15`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from asya.pause.expiry import expire_pause, longest_pause
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
        self._expire(moment)
        self._measure()
        self.services.telemetry.count("Sweeps")
        self.services.telemetry.flush()

    def _expire(self, moment: datetime) -> None:
        """Fail the tasks whose pause would outlive its record. If the release dies, the next sweep repeats it."""
        limit = longest_pause(self.services.settings.table.retention)
        for task in self.paused_tasks.paused(moment - limit):
            record = self.pause_releases.tasks.update(
                task.task_id, lambda record, _: expire_pause(record, limit, now=moment), moment
            )
            if record is not None and record.status == "failed":
                self.services.telemetry.log.warning("pause ended without an answer", envelope_id=task.task_id)
                self.pause_releases.finish(record, moment)

    def _measure(self) -> None:
        """Measure the number of each pause actor's pauses, and the age of the oldest one in seconds; 0 without a pause."""
        moment, telemetry = self.services.now(), self.services.telemetry
        actors = [name for name, actor in self.services.settings.table.actors.items() if actor.kind == "pause"]
        ages: dict[str, list[float]] = {name: [] for name in actors}
        for task in self.paused_tasks.paused(moment):
            if task.actor in ages:
                ages[task.actor].append((moment - task.since).total_seconds())
        for actor, seconds in ages.items():
            telemetry.measure("PausesOpen", len(seconds), "Count", actor=actor)
            telemetry.measure("PausedAge", max(seconds, default=0.0), "Seconds", actor=actor)
