"""Repeats unfinished releases every minute, ends pauses by timer or age, and measures the open ones.

The sweep also sends the envelopes whose wait for a time is due. See `protocol §11` and `§15`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import UNSET

from asya.capabilities.pauses.aws.paused_envelopes import PauseKey
from asya.capabilities.pauses.lambdas.pause_release import PauseReleases
from asya.capabilities.pauses.lambdas.wait import WaitReleases
from asya.capabilities.pauses.limits import longest_wait
from asya.capabilities.pauses.resuming import expire_pause, resume_task
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.task import TaskRecord
from asya.protocol.times import parse_time
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.paused_tasks import PausedTask, PausedTasks
from asya.tasks.aws.task_store import TaskStore, TaskStoreError


@dataclass(frozen=True, slots=True)
class PauseTimers:
    """Ends the pauses whose timer has run down.

    Attributes:
        warn: logs a timer that the next sweep must repeat.
    """

    releases: PauseReleases
    warn: Callable[[str], None]

    def finish(self, record: TaskRecord, now: datetime) -> bool:
        """Resume a paused task whose timer has run down; returns whether it runs again.

        An error is only logged, because the next sweep repeats it. If the release dies, the next sweep sends it.
        """
        pause, epoch = record.pause, record.pause_epoch
        if not record.is_paused or pause is None or epoch is None:
            return False
        if pause.until is UNSET or parse_time(pause.until) > now:
            return False
        try:
            resumed = self._resume(record.id, PauseKey(record.id, record.generation, epoch), now)
        except (ApiError, TaskStoreError, ClientError, BotoCoreError, ParseError) as error:
            self.warn(f"task {record.id} is paused beyond {pause.until}; the next sweep tries again: {error}")
            return False
        if resumed is None:
            return False
        self.releases.finish(resumed, now)
        return True

    def _resume(self, task_id: str, key: PauseKey, now: datetime) -> TaskRecord | None:
        """The record of the resumed task; None if its pause ended meanwhile, or its stored envelope has expired."""
        stored = self.releases.paused.load(key)
        if not isinstance(stored, Envelope):
            self.warn(f"task {task_id} cannot go on after its pause: its stored envelope is gone")
            return None

        def decide(record: TaskRecord, _hops: object) -> TaskRecord:
            if not record.is_paused or (record.generation, record.pause_epoch) != (key.generation, key.epoch):
                return record
            return resume_task(record, stored, {}, now=now)

        record = self.releases.tasks.update(task_id, decide, now)
        return record if record is not None and record.resumed_epoch == key.epoch else None


# A younger release is probably being sent at this moment.
_GRACE = timedelta(seconds=45)
# Many waits may be due at the same time, such as all until midnight. The function has 120 s, and the next sweep goes on.
WAITS_SECONDS = 60.0
# A canceled task may have thousands of paused children.
RELEASES_SECONDS = 30.0
_THREADS = 8
_CHUNK = 100


@dataclass(frozen=True, slots=True)
class PauseSweep:
    """Sweeps the pauses and waits of all tasks of the mesh."""

    services: Services
    paused_tasks: PausedTasks
    store: TaskStore
    pause_releases: PauseReleases
    wait_releases: WaitReleases
    timers: PauseTimers

    def sweep(self) -> None:
        """Run once. The next sweep repeats a release that cannot be sent.

        Raises:
            TaskStoreError: the table cannot be read.
        """
        moment = self.services.now()
        self._finish_releases(moment)
        self._expire(moment)
        self._measure()
        self._release_waits(moment)
        self.services.finish_sweep()
        self.services.telemetry.flush()

    def _finish_releases(self, moment: datetime) -> None:
        """Send the envelopes of unfinished releases, until the time limit: waits are due too."""
        ends_at = self.services.environment.monotonic() + RELEASES_SECONDS
        for task in self.paused_tasks.pause_releases(moment - _GRACE):
            stored = self.store.records([task.task_id], moment, consistent=True).get(task.task_id)
            if stored is not None:
                self.pause_releases.finish(stored.record, moment)
            if self.services.environment.monotonic() > ends_at:
                self.services.telemetry.log.warning("releases are unfinished, and the next sweep goes on")
                return

    def _expire(self, moment: datetime) -> None:
        """Fail the tasks whose pause would outlive its record. If the release dies, the next sweep repeats it."""
        limit = longest_wait(self.services.settings.table.retention)
        for task in self.paused_tasks.paused(moment - limit):
            record = self.pause_releases.tasks.update(
                task.task_id, lambda record, _: expire_pause(record, limit, now=moment), moment
            )
            if record is not None and record.has_failed:
                self.services.telemetry.log.warning("pause ended without an answer", envelope_id=task.task_id)
                self.pause_releases.finish(record, moment)

    def _measure(self) -> None:
        """Measure the number of each pause actor's pauses, and the age of its oldest one in seconds."""
        moment, telemetry = self.services.now(), self.services.telemetry
        actors = {name for name, actor in self.services.settings.table.actors.items() if actor.kind == "pause"}
        ages = defaultdict[str, list[float]](list)
        for task in self.paused_tasks.paused(moment):
            if task.actor in actors:
                ages[task.actor].append((moment - task.since).total_seconds())
        for actor, seconds in ages.items():
            telemetry.measure("PausesOpen", len(seconds), "Count", actor=actor)
            telemetry.measure("PausedAge", max(seconds), "Seconds", actor=actor)

    def _release_waits(self, moment: datetime) -> None:
        """Send the envelopes that are due, until the time limit; the rest waits for the next sweep."""
        ends_at = self.services.environment.monotonic() + WAITS_SECONDS
        due = self.paused_tasks.due_waits(moment)
        sent, late = 0, 0.0
        with _release_all(self._release_wait, moment, is_threaded=self.services.environment.is_threaded) as release:
            while chunk := list(islice(due, _CHUNK)):
                sent += release(chunk)
                late = max(late, *((moment - task.since).total_seconds() for task in chunk))
                if self.services.environment.monotonic() > ends_at:
                    self.services.telemetry.log.warning("waits are due, and the next sweep sends them", sent=sent)
                    break
        if late:
            self.services.telemetry.measure("WaitsLate", late, "Seconds")

    def _release_wait(self, task: PausedTask, moment: datetime) -> bool:
        stored = self.store.records([task.task_id], moment, consistent=True).get(task.task_id)
        if stored is None:
            return False
        if stored.record.is_paused:
            return self.timers.finish(stored.record, moment)
        return self.wait_releases.finish(stored.record, moment)


@contextmanager
def _release_all(
    release: Callable[[PausedTask, datetime], bool], moment: datetime, *, is_threaded: bool
) -> Iterator[Callable[[Iterable[PausedTask]], int]]:
    """A function that releases tasks, concurrently if threads are allowed, and returns how many it has released."""
    if not is_threaded:
        yield lambda tasks: sum(release(task, moment) for task in tasks)
        return
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="waits") as pool:
        yield lambda tasks: sum(pool.map(lambda task: release(task, moment), tasks))
