"""The scheduler admits drivers first, as EMR Serverless does, and executors when they fit."""

import threading
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asya.heavy.capacity import failed_for_capacity
from asya_local.emr import scheduler
from asya_local.emr.capacity import Resources, Size
from asya_local.emr.drivers.pool import JobOutcome
from asya_local.emr.faults import Faults
from asya_local.emr.run_registry import RunRegistry, now
from asya_local.emr.runs import JobRun, RunState
from asya_local.emr.scheduler import Scheduler
from asya_local.emr.settings import ApplicationSettings, EmrSettings, WorkerSettings

ONE = Resources(1, 2, 20)


class Stage:
    """A scheduler with waiting runs, and no drivers to start."""

    def __init__(self, folder: Path, *, runs: int, executors: int, max_concurrent_runs: int, slots: int = 0) -> None:
        settings = EmrSettings(
            port=1,
            state=str(folder),
            mark=str(folder),
            aws_endpoint="http://127.0.0.1:1",
            caller_endpoint="",
            python="python",
            java_home="",
            spark_home="",
            temporary="",
            cache="",
            application=ApplicationSettings(max_concurrent_runs=max_concurrent_runs),
            workers=WorkerSettings(at_once=slots),
        )
        self.registry = RunRegistry(settings, lambda _changes: None)
        drivers: Any = SimpleNamespace(fill=lambda: None)
        iam: Any = None
        self.scheduler = Scheduler(settings, self.registry, iam, drivers, Faults(settings))
        request = {"executionRoleArn": "arn:aws:iam::000000000000:role/job"}
        for number in range(runs):
            application, size = settings.application.application_id, Size(ONE, ONE, executors)
            self.registry.add(JobRun(f"run{number}", application, "arn", "label", "caller", now(), request, {}, size))

    def settle(self) -> "Counter[tuple[RunState, int | None]]":
        """Advance until nothing changes; return the numbers of runs by state and executors."""
        before: Sequence[Any] = ()
        while (after := [(run.state, run.executors) for run in self.registry.runs()]) != before:
            before = after
            self.scheduler.advance()
        return Counter((run.state, run.executors) for run in self.registry.runs())


def test_the_default_of_emr_serverless_starves_executors(tmp_path: Path) -> None:
    stage = Stage(tmp_path, runs=20, executors=4, max_concurrent_runs=15)
    assert stage.settle() == {(RunState.SCHEDULED, None): 15, (RunState.QUEUED, None): 5}


def test_the_computed_limit_gives_each_run_its_executors(tmp_path: Path) -> None:
    stage = Stage(tmp_path, runs=20, executors=4, max_concurrent_runs=3)
    assert stage.settle() == {(RunState.SCHEDULED, 4): 3, (RunState.QUEUED, None): 17}


def test_an_idle_run_holds_no_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    used: dict[str, float] = {}
    begun: list[str] = []

    class HeldRunner:
        """A runner whose job waits until the end of the test."""

        def __init__(self, *arguments: Any) -> None:
            self.run_id = arguments[3].run_id
            begun.append(self.run_id)

        def execute(self, _on_running: Any) -> JobOutcome:
            held.wait()
            return JobOutcome(0)

        def cpu_seconds(self) -> float | None:
            return used.get(self.run_id)

    monkeypatch.setattr(scheduler, "Runner", HeldRunner)
    stage = Stage(tmp_path, runs=3, executors=0, max_concurrent_runs=15, slots=1)
    stage.settle()
    assert begun == ["run0"]

    clock = [100.0]
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    for at, cpu in ((200.0, 1.0), (203.0, 4.0), (206.0, 4.1)):
        assert begun == ["run0"]
        clock[0], used["run0"] = at, cpu
        stage.scheduler.sample()
        stage.scheduler.advance()

    assert begun == ["run0", "run1"]
    held.set()


def test_a_run_without_an_executor_fails_for_capacity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, runs=15, executors=4, max_concurrent_runs=15)
    stage.settle()
    later: datetime = now() + timedelta(minutes=21)
    monkeypatch.setattr(scheduler, "now", lambda: later)
    stage.settle()

    # Each failed driver makes room; the last runs get their executors.
    assert stage.settle() == {(RunState.FAILED, None): 12, (RunState.SCHEDULED, 4): 3}
    failed = [run for run in stage.registry.runs() if run.state is RunState.FAILED]
    assert all(failed_for_capacity(run.state, run.details, has_driver_output=True) for run in failed)
