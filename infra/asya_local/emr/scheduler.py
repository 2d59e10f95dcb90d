"""Schedules runs: queues them, starts them when they fit, and cancels them at their timeout.

An idle run, whose job waits for its next work, counts as none at work.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from asya_local.emr.capacity import Limits, driver_fits, executors_that_fit
from asya_local.emr.drivers.pool import DriverPool, JobOutcome
from asya_local.emr.run_registry import RunRegistry, now
from asya_local.emr.runner import ExecutorFaults, RunFailedError, Runner, failure_details
from asya_local.emr.runs import ACTIVE, TERMINAL, WAITING, RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from asya_local.emr.access.identity import IamClient
    from asya_local.emr.faults import Faults
    from asya_local.emr.runs import JobRun
    from asya_local.emr.settings import EmrSettings

WINDOW = 3.0
"""Seconds without work after which a run is idle."""
CORES = 0.25
"""An idle run uses less of a core on average. A job that polls S3 four times a second uses less than half of that."""


@dataclass(frozen=True)
class CpuSample:
    """The CPU time that the processes of a driver have used.

    Attributes:
        at: The time of the sample, in seconds.
        used: Seconds of CPU time since their start.
    """

    at: float
    used: float


class IdleRuns:
    """The runs that are idle, by samples of their CPU time."""

    def __init__(self) -> None:
        self._samples: dict[str, tuple[CpuSample, ...]] = {}

    def observe(self, at: float, used: Mapping[str, float]) -> None:
        """Take a sample of each run whose job runs now; forget all others."""
        self._samples = {
            run_id: recent((*self._samples.get(run_id, ()), CpuSample(at, seconds))) for run_id, seconds in used.items()
        }

    def is_idle(self, run_id: str) -> bool:
        """Return whether a run is idle."""
        return is_idle(self._samples.get(run_id, ()))


def recent(samples: tuple[CpuSample, ...]) -> tuple[CpuSample, ...]:
    """Return the latest samples, without those that the window does not need."""
    since = samples[-1].at - WINDOW
    start = max((index for index, sample in enumerate(samples) if sample.at <= since), default=0)
    return samples[start:]


def is_idle(samples: tuple[CpuSample, ...]) -> bool:
    """Return whether recent samples are of an idle run: on average of the window, and since the latest sample but one."""
    if not samples or samples[-1].at - samples[0].at < WINDOW:
        return False
    latest = samples[-1]
    return all(latest.used - sample.used < CORES * (latest.at - sample.at) for sample in (samples[0], samples[-2]))


_logger = logging.getLogger(__name__)
_CAPACITY_EXCEEDED = (
    "ApplicationMaxCapacityExceededException: Worker could not be allocated as the application has exceeded "
    "maximumCapacity settings"
)
_NO_EXECUTOR_AFTER = timedelta(minutes=20)
_NO_EXECUTOR = (
    "Job failed. Abandoning job due to no executor being launched within "
    f"{int(_NO_EXECUTOR_AFTER.total_seconds() * 1000)}ms after driver starts"
)
_TICK = 0.1
"""Seconds between two passes over the runs without changes."""
_SAMPLE_EVERY = 1.0
"""Seconds between two samples of the drivers' CPU time."""


class Scheduler:
    """Advances the runs of the registry, in its own thread."""

    def __init__(
        self, settings: EmrSettings, registry: RunRegistry, iam: IamClient, drivers: DriverPool, faults: Faults
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._iam = iam
        self._drivers = drivers
        self._faults = faults
        self._runners: dict[str, Runner] = {}
        self._idle = IdleRuns()
        self._sampled_at = 0.0
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._loop, name="scheduler", daemon=True).start()

    def end(self) -> None:
        """Stop the thread and all drivers."""
        self._ended.set()
        with self._registry.changed:
            runners = list(self._runners.values())
        for runner in runners:
            runner.stop()
        self._drivers.end()

    def cancel(self, run: JobRun, reason: str) -> None:
        """Cancel a run and kill its driver. Does nothing if the run is terminal or already being canceled."""
        with self._registry.changed:
            if run.state in TERMINAL or run.state is RunState.CANCELLING:
                return
            run.cancel_reason = reason
            self._registry.transition(run, (RunState.CANCELLING, reason))
            runner = self._runners.get(run.run_id)
            if runner is None:
                self._registry.transition(run, (RunState.CANCELLED, reason))
        if runner is not None:
            runner.stop()

    def kill(self, run_id: str) -> bool:
        """Kill the driver of a run, as a failing machine would; return False if the run has none."""
        with self._registry.changed:
            runner = self._runners.get(run_id)
        if runner is None:
            return False
        runner.stop()
        return True

    def _loop(self) -> None:
        while not self._ended.is_set():
            self.sample()
            with self._registry.changed:
                try:
                    self.advance()
                except Exception:
                    _logger.exception("a pass of the scheduler failed; the next one follows")
                self._registry.changed.wait(_TICK)

    def sample(self) -> None:
        """Take samples of the drivers' CPU time, outside the lock of the registry."""
        if time.monotonic() - self._sampled_at < _SAMPLE_EVERY:
            return
        with self._registry.changed:
            runners = dict(self._runners)
        used = {run_id: seconds for run_id, each in runners.items() if (seconds := each.cpu_seconds()) is not None}
        self._sampled_at = time.monotonic()
        self._idle.observe(self._sampled_at, used)

    def _at_work(self) -> int:
        """Return the number of runs that are at work: all with a driver but idle ones."""
        return sum(not self._idle.is_idle(run_id) for run_id in self._runners)

    def advance(self) -> None:
        """Do what is due for each run. The loop holds the lock of the registry meanwhile."""
        runs = self._registry.runs()
        for run in runs:
            if run.state in WAITING:
                self._admit(run, runs)
            elif run.state is RunState.PENDING:
                self._registry.transition(run, (RunState.SCHEDULED, "JobRun scheduled; resources are being allocated"))
            elif run.state is RunState.SCHEDULED and run.executors is None:
                self._allocate(run, runs)
            elif run.state is RunState.SCHEDULED and run.run_id not in self._runners:
                self._start(run)
            elif run.state is RunState.RUNNING and run.started_at and now() - run.started_at > run.timeout:
                minutes = int(run.timeout.total_seconds() // 60)
                self.cancel(run, f"Job execution timed out after {minutes} minutes")
        if not self._at_work():  # the start of a JVM would slow down a running job
            self._drivers.fill()

    def _admit(self, run: JobRun, runs: list[JobRun]) -> None:
        others = [other for other in runs if other.application_id == run.application_id]
        used = [other.used for other in others if other.state in ACTIVE]
        first = next(other for other in others if other.state in WAITING)
        if run is first and driver_fits(run.size, used, self._limits(run)):
            self._registry.transition(run, (RunState.PENDING, "JobRun is being scheduled"))
            if self._faults.exceeds_capacity():
                self._registry.transition(run, (RunState.FAILED, _CAPACITY_EXCEEDED))
        elif run.state is RunState.SUBMITTED:
            self._registry.transition(run, (RunState.QUEUED, "JobRun queued: the application's capacity is in use"))
        elif run.queued_at and now() - run.queued_at > self._queue_timeout(run):
            self._registry.transition(run, (RunState.FAILED, "JobRun timed out in the queue"))

    def _allocate(self, run: JobRun, runs: list[JobRun]) -> None:
        """Give a scheduled run its executors if they fit; fail it if they have not for 20 minutes."""
        used = [each.used for each in runs if each.application_id == run.application_id and each.state in ACTIVE]
        executors = executors_that_fit(run.size, used, self._limits(run))
        if executors or not run.size.executors:
            run.executors = executors
        elif run.scheduled_at and now() - run.scheduled_at > _NO_EXECUTOR_AFTER:
            self._registry.transition(run, (RunState.FAILED, _NO_EXECUTOR))

    def _limits(self, run: JobRun) -> Limits:
        application = self._registry.application(run.application_id).settings
        return self._faults.limits(
            Limits(application.max_vcpu, application.max_memory_gb, application.max_concurrent_runs)
        )

    def _queue_timeout(self, run: JobRun) -> timedelta:
        return timedelta(minutes=self._registry.application(run.application_id).settings.queue_timeout_minutes)

    def _start(self, run: JobRun) -> None:
        if self._at_work() >= self._settings.workers.at_once:
            return
        executors = ExecutorFaults(self._faults.executor_delay(), self._faults.executor_loss())
        runner = self._runners[run.run_id] = Runner(self._settings, self._iam, self._drivers, run, executors)
        threading.Thread(target=self._execute, args=(run, runner), name=run.run_id, daemon=True).start()

    def _execute(self, run: JobRun, runner: Runner) -> None:
        def on_running() -> None:
            with self._registry.changed:
                if run.state is RunState.SCHEDULED:
                    self._registry.transition(run, (RunState.RUNNING, "JobRun is running"))
            self._schedule_kill(runner)

        try:
            outcome, details = runner.execute(on_running), ""
        except RunFailedError as error:
            outcome, details = JobOutcome(1), f"Job failed. {error}"
        except Exception as error:
            _logger.exception("%s: the stand-in failed to execute the run", run.run_id)
            outcome, details = JobOutcome(1), f"The local EMR Serverless failed: {type(error).__name__}: {error}"
        if outcome.exit_code and not details:
            stderr = self._settings.folder / run.run_id / "stderr"
            details = failure_details(outcome.exit_code, outcome.error, stderr)
        with self._registry.changed:
            del self._runners[run.run_id]
            if not outcome.exit_code and not details:
                if run.state is RunState.SCHEDULED:
                    self._registry.transition(run, (RunState.RUNNING, "JobRun is running"))
                self._registry.transition(run, (RunState.SUCCESS, "JobRun succeeded"))
            elif run.state is RunState.CANCELLING:
                self._registry.transition(run, (RunState.CANCELLED, run.cancel_reason))
            else:
                self._registry.transition(run, (RunState.FAILED, details))

    def _schedule_kill(self, runner: Runner) -> None:
        delay = self._faults.kill_delay()
        if delay is not None:
            _later(delay, runner.stop)


def _later(delay: float, action: Callable[[], None]) -> None:
    timer = threading.Timer(delay, action)
    timer.daemon = True
    timer.start()
