"""The Lambda entry point of the clock, which runs the steps of the mesh one after another (`protocol §11.clock`).

A step that raises, or takes too long, stops itself alone. One that ends the process, for instance because the memory does not
suffice, stops those behind it for this minute. So the name of the running step is in a file, which Lambda leaves in the execution
environment when it replaces the process. The next process runs that step last.
"""

import os
import pkgutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from asya.capabilities.clock.steps import NAMED, STEPS, Step, due_steps, named_steps, ordered, read_steps, share
from asya.sidecar.lambdas.entry_point import LambdaContext, ScheduleEntryPoint
from asya.sidecar.lambdas.services import Services, services


class StepOverdue(BaseException):
    """The time of a step is over. No `except Exception` stops it, in the step or in an SDK."""


class StepsFailedError(Exception):
    """Steps have failed; their errors are in the log. Lambda counts the invocation as an error."""


class RunningSteps:
    """The names of the steps that run, or have ended a process, in a file outside of the process.

    Nothing depends on it but the order of the steps: without the file, or with an unreadable one, it is the declared order.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[str]:
        """Return the names, the latest last."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(self._path.read_bytes(), type=list[str])
        return []

    def begin(self, name: str) -> None:
        """Note that a step runs."""
        self._write([*(each for each in self.read() if each != name), name])

    def end(self, name: str) -> None:
        """Note that a step has ended, and the process goes on."""
        self._write([each for each in self.read() if each != name])

    def _write(self, noted: Sequence[str]) -> None:
        with suppress(OSError):
            self._path.write_bytes(msgspec.json.encode(noted))


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `StepOverdue` in the block when its time is over. Only the main thread has a limit: no signal reaches another one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        raise StepOverdue(f"the step has taken more than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Clock:
    """Runs the steps of a mesh in one process.

    Attributes:
        steps: The steps in their declared order.
        services_of: Returns the services of a step, whose lines and metrics have its name.
        running: Notes which step runs.
        now: The current time.
        limit: Limits the time of a block.
    """

    steps: Sequence[Step]
    services_of: Callable[[str], Services]
    running: RunningSteps
    now: Callable[[], datetime]
    limit: Callable[[float], Any] = time_limit
    _started: dict[str, datetime] = field(default_factory=dict)
    _is_new: bool = True

    def run(self, event: Mapping[str, Any], context: LambdaContext) -> None:
        """Run the due steps once, or those that the event names.

        Raises:
            StepsError: the event names a step that the mesh does not have.
            StepsFailedError: some steps have failed; all others have run.
        """
        named, now = event.get(NAMED), self.now()
        chosen = due_steps(self.steps, self._started, now) if named is None else named_steps(self.steps, named)
        steps = ordered(chosen, self._fatal())
        failed = []
        for number, step in enumerate(steps):
            self._started[step.name] = now
            seconds = share(step, steps[number + 1 :], context.get_remaining_time_in_millis() / 1000)
            if not self._run(step, seconds):
                failed.append(step.name)
        if failed:
            raise StepsFailedError(f"failed: {', '.join(failed)}; the next minute runs them again")

    def _run(self, step: Step, seconds: float) -> bool:
        """Run a step, and return whether it has succeeded."""
        self.running.begin(step.name)
        try:
            with self.limit(seconds):
                entry_point: ScheduleEntryPoint = pkgutil.resolve_name(step.entry_point)
                entry_point.sweep(self.services_of(step.name))
        except StepOverdue as error:
            self._tell(step.name, "overdue", str(error))
            return False
        except (Exception, SystemExit) as error:  # noqa: BLE001 - no step may stop the others
            self._tell(step.name, "error", f"{type(error).__name__}: {error}", error)
            return False
        finally:
            self.running.end(step.name)
        return True

    def _fatal(self) -> list[str]:
        """Return the steps that have ended a process, the latest last; a new process tells of it."""
        fatal = self.running.read()
        if self._is_new:
            self._is_new = False
            for name in {step.name for step in self.steps} & set(fatal[-1:]):
                self._tell(name, "died", "the process ended in it; it runs last until it ends well")
        return fatal

    def _tell(self, step: str, reason: str, problem: str, error: BaseException | None = None) -> None:
        telemetry = self.services_of(step).telemetry
        telemetry.log.error("step failed", step=step, reason=reason, problem=problem, exc_info=error)
        telemetry.count("StepsFailed", by=("reason", reason))
        telemetry.flush()


@cache
def _clock() -> Clock:
    own = services()

    @cache
    def services_of(step: str) -> Services:
        return Services(replace(own.settings, actor=step))

    path = Path(tempfile.gettempdir()) / f"asya-{own.settings.namespace}-steps.json"
    return Clock(read_steps(os.environ[STEPS]), services_of, RunningSteps(path), own.now)


def clock(event: Mapping[str, Any], context: LambdaContext) -> None:
    """Run the due steps of the mesh."""
    _clock().run(event, context)
