"""Starts Spark driver processes, runs jobs in them and stops them with their JVMs."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from asya_local.emr.drivers.class_archive import JVM_OPTIONS, ClassArchive
from asya_local.emr.drivers.private_settings import submit_options
from asya_local.emr.local_spark import Launch
from asya_local.state_folder import MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from asya_local.emr.settings import EmrSettings

# The archive of Spark's classes takes half a minute of a processor, and saves seconds at each start of a driver.
_ARCHIVE_AT_JOB = 2


@dataclass(frozen=True)
class DriverJob:
    """The job of a driver, as `driver.py` reads it. Faults of executors are those of `asya_local.emr.drivers.executors`."""

    entry_point: str
    arguments: list[str]
    python_path: list[str]
    conf: dict[str, str]
    environment: dict[str, str]
    folder: str
    mirror: str
    stdout: str
    stderr: str
    refused_paths: list[str] = field(default_factory=list)
    readable_paths: list[str] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)
    executor_delay: float = 0.0
    executor_loss: float | None = None


@dataclass(frozen=True)
class JobOutcome:
    """The outcome of a job."""

    exit_code: int
    error: str = ""


@dataclass(frozen=True)
class SyncRequest:
    """What a job that uses S3 beside Spark needs (`s3_sync.py`).

    Attributes:
        is_push: True if S3 shall have what Spark wrote; False if Spark shall see what S3 has.
        names: Only these objects, as `bucket/key`; None for all.
    """

    is_push: bool
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class SyncAnswer:
    """The answer to a request.

    Attributes:
        error: Why S3 failed; empty if it did not.
        unseen: The objects that Spark does not see, as `Mirror.unseen` has them.
    """

    error: str = ""
    unseen: Mapping[str, str] = field(default_factory=dict)


class Driver:
    """One driver process with its JVM, in its own session."""

    def __init__(self, settings: EmrSettings, folder: Path, launch: Launch) -> None:
        self.folder = folder
        self.launch = launch
        folder.mkdir(parents=True)
        job_read, job_write = os.pipe()
        outcome_read, outcome_write = os.pipe()
        command = [settings.python, "-P", str(Path(__file__).with_name("driver.py")), str(job_read), str(outcome_write)]
        if settings.workers.reuse:
            command.append("--reuse")
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=_environment(settings, launch, _class_archive(settings).options()),
                pass_fds=(job_read, outcome_write),
                start_new_session=True,
            )
        os.close(job_read)
        os.close(outcome_write)
        self._jobs = os.fdopen(job_write, "w", buffering=1)
        self._outcomes = os.fdopen(outcome_read)
        self._is_ready = False

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def wait_until_ready(self) -> bool:
        """Wait for the JVM; return False if the process ends instead."""
        self._is_ready = self._is_ready or self._outcomes.readline().strip() == "ready"
        return self._is_ready

    def run(self, job: DriverJob, synchronize: Callable[[SyncRequest], SyncAnswer]) -> JobOutcome:
        """Run a job and return its outcome, also if the driver is killed.

        Args:
            job: The job.
            synchronize: Answers the job's requests before it goes on.
        """
        self._tell(asdict(job))
        while line := self._outcomes.readline():
            message = json.loads(line)
            if "sync" not in message:
                return JobOutcome(**message)
            names = message["names"]
            request = SyncRequest(message["sync"] == "push", None if names is None else tuple(names))
            self._tell(asdict(synchronize(request)))
        code = self._process.wait()
        reason = f"the driver was killed by {signal.Signals(-code).name}" if code < 0 else ""
        return JobOutcome(128 - code if code < 0 else code or 1, reason)

    def _tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._jobs.write(json.dumps(message) + "\n")

    def open_for_writing(self) -> set[str]:
        """Return the files that the driver's processes have open for writing."""
        paths: set[str] = set()
        for process in self._processes():
            with contextlib.suppress(psutil.Error):
                paths.update(
                    file.path for file in process.open_files() if getattr(file, "mode", "w") not in {"r", "rt"}
                )
        return paths

    def cpu_seconds(self) -> float:
        """Return the CPU time that the driver's processes have used since their start."""
        used = 0.0
        for process in self._processes():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                # A process takes over the times of its children when they end.
                used += times.user + times.system + times.children_user + times.children_system
        return used

    def _processes(self) -> list[psutil.Process]:
        try:
            top = psutil.Process(self._process.pid)
            return [top, *top.children(recursive=True)]
        except psutil.Error:
            return []

    def kill(self) -> None:
        """Kill the driver with its children. Thread-safe and idempotent."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Kill the driver and close its pipes. Only the thread that uses the driver may call it."""
        self.kill()
        with contextlib.suppress(BrokenPipeError):
            self._jobs.close()
        self._outcomes.close()


class DriverPool:
    """A pool of drivers: starts them, holds spare ones and reuses them if the settings say so."""

    def __init__(self, settings: EmrSettings) -> None:
        self._settings = settings
        self._numbers = itertools.count(1)
        self._jobs = 0
        self._lock = threading.Lock()
        self._spares: list[Driver] = []
        self._lent = 0
        """Drivers at work that another job may get."""
        self._latest = Launch()
        """What spare drivers start with: as the latest job without jars, because the next one is probably of the same mesh."""

    def fill(self) -> None:
        """Start drivers up to the number of spares. A driver that is reused comes back, so it counts while it works."""
        with self._lock:
            coming = self._lent if self._settings.workers.reuse else 0
            for driver in self._spares:
                if driver.launch != self._latest and not self._settings.workers.reuse:
                    driver.end()
            self._spares = [driver for driver in self._spares if driver.alive]
            for _ in range(self._settings.workers.spares - len(self._spares) - coming):
                self._spares.append(self._start(self._latest))

    def acquire(self, launch: Launch) -> Driver:
        """Return a driver for one job: a spare one that has started in this way, or a new one.

        The second job also begins the archive of Spark's classes: a cloud for a single job would not use it, and neither does one
        whose drivers are reused.
        """
        with self._lock:
            self._jobs += 1
            if self._jobs == _ARCHIVE_AT_JOB and not self._settings.workers.reuse:
                self._archive_classes()
            if launch.is_plain:
                self._latest = launch
            for driver in self._spares:
                if driver.alive and (driver.launch == launch or (self._settings.workers.reuse and launch.is_plain)):
                    self._spares.remove(driver)
                    break
            else:
                driver = self._start(launch)
            self._lent += launch.is_plain
            return driver

    def release(self, driver: Driver) -> None:
        """Return a driver to the pool after its job. It is reused or stopped; jars of one job are never those of the next."""
        with self._lock:
            self._lent -= driver.launch.is_plain
            if self._settings.workers.reuse and driver.alive and driver.launch.is_plain:
                self._spares.append(driver)
                return
        driver.end()

    def end(self) -> None:
        """Stop all spare drivers."""
        with self._lock:
            for driver in self._spares:
                driver.end()
            self._spares = []

    def _start(self, launch: Launch) -> Driver:
        return Driver(self._settings, self._settings.folder / "drivers" / f"{next(self._numbers):04d}", launch)

    def _archive_classes(self) -> None:
        """Build the archive of Spark's classes in the background, unless it exists or there is no Java."""
        if self._settings.java_home:
            command = [self._settings.python, "-P", str(Path(__file__).with_name("cds_warmup.py"))]
            classes = _class_archive(self._settings)
            classes.build_in_background(command, lambda options: _environment(self._settings, Launch(), options))


def _class_archive(settings: EmrSettings) -> ClassArchive:
    return ClassArchive(Path(settings.cache), settings.java_home, settings.spark_home, JVM_OPTIONS)


def _environment(settings: EmrSettings, launch: Launch, jvm_options: str) -> Mapping[str, str]:
    master, java_options = f"local[{settings.workers.cores}]", JVM_OPTIONS + jvm_options
    submit = submit_options(launch, master, java_options, Path(settings.temporary))
    return {
        "PATH": f"{settings.java_home}/bin:{os.environ.get('PATH', os.defpath)}",
        "JAVA_HOME": settings.java_home,
        "HOME": settings.temporary,
        "TMPDIR": settings.temporary,
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "PYTHONUNBUFFERED": "1",
        "SPARK_HOME": settings.spark_home,
        "PYSPARK_PYTHON": settings.python,
        "PYSPARK_DRIVER_PYTHON": settings.python,
        "PYSPARK_SUBMIT_ARGS": f"{submit} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        MARK: settings.mark,
    }
