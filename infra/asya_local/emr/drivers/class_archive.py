"""Archives Spark's classes once for all drivers (class data sharing), which halves the start of a Spark session.

The first stand-in with this Java and this pyspark that runs a second job builds the archive in the background, at the lowest
priority. Until the archive exists, drivers start without it.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The fast compiler and the small collector halve the start of a JVM.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m"
_logger = logging.getLogger(__name__)
_SECONDS = 300
_LOWEST_PRIORITY = 19
_WORK_PREFIX = ".spark-classes-"


def driver_options(cache: Path, java_home: str, spark_home: Path) -> str:
    """Return the JVM options of a driver: those for a fast start, and the archive of Spark's classes if there is one.

    Args:
        cache: The folder of the archives.
        java_home: The Java of the driver.
        spark_home: The folder of its PySpark.
    """
    return JVM_OPTIONS + ClassArchive(cache, java_home, str(spark_home), JVM_OPTIONS).options()


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one Java, one pyspark and one set of JVM options, in a folder that clouds share."""

    folder: Path
    java_home: str
    spark_home: str
    jvm_options: str

    @property
    def path(self) -> Path:
        """The file of the archive; its name has a hash of Java, pyspark and the JVM options."""
        release = Path(self.java_home, "release")
        java = release.read_text() if release.exists() else self.java_home
        key = "\n".join([java, Path(self.spark_home, "version.py").read_text(), self.spark_home, self.jvm_options])
        return self.folder / f"spark-classes-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa"

    def options(self) -> str:
        """Return the JVM options that use the archive; empty until it exists."""
        return f" -XX:SharedArchiveFile={self.path} -Xlog:cds=off -Xlog:cds+dynamic=off" if self.path.exists() else ""

    def build_in_background(self, command: list[str], environment: Callable[[str], Mapping[str, str]]) -> None:
        """Build the archive in a thread, unless it exists or another cloud builds it.

        Args:
            command: Runs `cds_warmup.py`, without its argument.
            environment: Returns the environment of the command with additional JVM options.
        """
        if not self.path.exists():
            threading.Thread(target=self._build, args=(command, environment), name="classes", daemon=True).start()

    def _build(self, command: list[str], environment: Callable[[str], Mapping[str, str]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        work: Path | None = None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for orphan in self.folder.glob(f"{_WORK_PREFIX}*"):  # of a killed build
                shutil.rmtree(orphan, ignore_errors=True)
            work = Path(tempfile.mkdtemp(dir=self.folder, prefix=_WORK_PREFIX))
            draft = work / "classes.jsa"
            options = f" -XX:ArchiveClassesAtExit={draft} -Xlog:cds=off -Xlog:cds+dynamic=off"
            with (work / "log").open("wb") as log:
                process = subprocess.run(
                    ["nice", "-n", str(_LOWEST_PRIORITY), *command, str(work)],
                    env=environment(options),
                    cwd=work,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    timeout=_SECONDS,
                    check=False,
                )
            if process.returncode or not draft.exists():
                _logger.warning("the archive of Spark's classes was not built: %s", (work / "log").read_text()[-500:])
            else:
                draft.replace(self.path)
                _logger.info("the archive of Spark's classes is in %s", self.path)
        except BlockingIOError:
            _logger.info("another local cloud builds the archive of Spark's classes")
        except (OSError, subprocess.SubprocessError) as error:
            _logger.warning("the archive of Spark's classes was not built: %s", error)
        finally:
            os.close(lock)
            if work is not None:
                shutil.rmtree(work, ignore_errors=True)
