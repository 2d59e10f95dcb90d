"""Driver processes: started, kept in reserve, given one job each (or many, for tests), and ended with their JVMs."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from asya_local.emr.drivers.class_archive import ClassArchive
from asya_local.state_folder import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya_local.emr.settings import EmrSettings

# Short lives on a shared machine: the quick compiler and the small collector start a JVM in half the time.
_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m"
_DEFAULT_MEMORY = "1g"


@dataclass(frozen=True)
class DriverJob:
    """One job as a driver takes it."""

    entry_point: str
    arguments: list[str]
    python_path: list[str]
    conf: dict[str, str]
    environment: dict[str, str]
    folder: str
    stdout: str
    stderr: str


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended."""

    exit_code: int
    error: str = ""


class Driver:
    """One driver process with its JVM, in a session of its own."""

    def __init__(self, settings: EmrSettings, folder: Path, memory: str) -> None:
        self.folder = folder
        self.memory = memory
        folder.mkdir(parents=True)
        job_read, job_write = os.pipe()
        answer_read, answer_write = os.pipe()
        command = [settings.python, "-P", str(Path(__file__).with_name("driver.py")), str(job_read), str(answer_write)]
        if settings.workers.reuse:
            command.append("--reuse")
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=_environment(settings, memory, _class_archive(settings).options()),
                pass_fds=(job_read, answer_write),
                start_new_session=True,
            )
        os.close(job_read)
        os.close(answer_write)
        self._jobs = os.fdopen(job_write, "w", buffering=1)
        self._answers = os.fdopen(answer_read)
        self._is_ready = False

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def wait_until_ready(self) -> bool:
        """Wait for the JVM to be up; False when the process ended instead."""
        self._is_ready = self._is_ready or self._answers.readline().strip() == "ready"
        return self._is_ready

    def run(self, assignment: DriverJob) -> JobOutcome:
        """Give the driver a job and wait for its end, however it comes."""
        with contextlib.suppress(BrokenPipeError):
            self._jobs.write(json.dumps(asdict(assignment)) + "\n")
        line = self._answers.readline()
        if line:
            return JobOutcome(**json.loads(line))
        code = self._process.wait()
        reason = f"the driver was killed by {signal.Signals(-code).name}" if code < 0 else ""
        return JobOutcome(128 - code if code < 0 else code or 1, reason)

    def open_for_writing(self) -> set[str]:
        """The files that the driver's processes have open for writing now."""
        found: set[str] = set()
        with contextlib.suppress(psutil.Error):
            top = psutil.Process(self._process.pid)
            for process in [top, *top.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    found.update(
                        file.path for file in process.open_files() if getattr(file, "mode", "w") not in {"r", "rt"}
                    )
        return found

    def kill(self) -> None:
        """Kill the driver and everything it started. From any thread; does nothing when they are gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Kill the driver and let go of it. Only by the thread that uses it."""
        self.kill()
        with contextlib.suppress(BrokenPipeError):
            self._jobs.close()
        self._answers.close()


class DriverPool:
    """Takes drivers from the reserve, or starts them, and puts back those that may be used again."""

    def __init__(self, settings: EmrSettings) -> None:
        self._settings = settings
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._spares: list[Driver] = []

    def archive_classes(self) -> None:
        """Have Spark's classes archived, unless they are, or there will be no jobs."""
        if self._settings.java_home:
            command = [self._settings.python, "-P", str(Path(__file__).with_name("cds_warmup.py"))]
            classes = _class_archive(self._settings)
            classes.build_in_background(command, lambda options: _environment(self._settings, _DEFAULT_MEMORY, options))

    def fill(self) -> None:
        """Bring the reserve up to the number of spares."""
        with self._lock:
            self._spares = [driver for driver in self._spares if driver.alive]
            for _ in range(self._settings.workers.spares - len(self._spares)):
                self._spares.append(self._start(_DEFAULT_MEMORY))

    def acquire(self, memory: str | None) -> Driver:
        """A driver for one job, from the reserve if one of that memory waits there."""
        wanted = memory or _DEFAULT_MEMORY
        with self._lock:
            for driver in self._spares:
                if driver.alive and (driver.memory == wanted or self._settings.workers.reuse):
                    self._spares.remove(driver)
                    return driver
            return self._start(wanted)

    def release(self, driver: Driver) -> None:
        """A driver whose job has ended: kept for the next job where drivers are reused, ended otherwise."""
        if self._settings.workers.reuse and driver.alive:
            with self._lock:
                self._spares.append(driver)
        else:
            driver.end()

    def end(self) -> None:
        """End the reserve."""
        with self._lock:
            for driver in self._spares:
                driver.end()
            self._spares = []

    def _start(self, memory: str) -> Driver:
        return Driver(self._settings, self._settings.folder / "drivers" / f"{next(self._numbers):04d}", memory)


def _class_archive(settings: EmrSettings) -> ClassArchive:
    return ClassArchive(Path(settings.cache), settings.java_home, _JVM_OPTIONS)


def _environment(settings: EmrSettings, memory: str, jvm_options: str) -> Mapping[str, str]:
    submit = f"--master local[{settings.workers.cores}] --driver-memory {memory}"
    return {
        "PATH": f"{settings.java_home}/bin:{os.environ.get('PATH', os.defpath)}",
        "JAVA_HOME": settings.java_home,
        "HOME": settings.temporary,
        "TMPDIR": settings.temporary,
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "PYTHONUNBUFFERED": "1",
        "PYSPARK_PYTHON": settings.python,
        "PYSPARK_DRIVER_PYTHON": settings.python,
        "PYSPARK_SUBMIT_ARGS": f"{submit} --driver-java-options '{_JVM_OPTIONS}{jvm_options}' "
        "--conf spark.ui.enabled=false --conf spark.driver.bindAddress=127.0.0.1 pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        MARK: settings.mark,
    }
