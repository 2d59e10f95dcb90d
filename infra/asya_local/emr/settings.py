"""The settings of one stand-in, passed to its process in a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from asya.protocol.job_runs import COMMIT_FILE, RUNS_PREFIX
from asya_local.state_folder import write_private


@dataclass(frozen=True)
class ApplicationSettings:
    """The application that exists from the start, under a known id."""

    application_id: str = "00asyalocal0001"
    name: str = "asya-local"
    release_label: str = "emr-spark-8.1.0"
    max_vcpu: int = 16
    max_memory_gb: int = 128
    max_concurrent_runs: int = 15
    queue_timeout_minutes: int = 360


@dataclass(frozen=True)
class WorkerSettings:
    """How job runs become processes."""

    at_once: int = 2
    """The maximum of runs at work at once; more wait in SCHEDULED. An idle run, which uses hardly any CPU, does not count."""
    cores: int = 2
    """The cores of each run: Spark's `local[n]`."""
    spares: int = 0
    """The number of started drivers that wait for a job, as an application's initial capacity does."""
    reuse: bool = False
    """Run many jobs in one driver, one after another, each in a new Spark context (tests)."""


@dataclass(frozen=True)
class ControlRule:
    """Selects the control files of a job, which refer to other files and must reach S3 after them."""

    prefix: str = RUNS_PREFIX
    commit_name: str = COMMIT_FILE


@dataclass(frozen=True)
class EmrSettings:
    """The settings of the stand-in. The key of MiniStack's root user and the secret of the cloud come in the environment."""

    port: int
    state: str
    """The folder of this stand-in: its settings and one folder for each job run."""
    caller_endpoint: str
    """The process of MiniStack, which names the callers; `aws_endpoint` may be a proxy in front of it."""
    mark: str
    """The state folder of the cloud, which marks its processes (`state_folder.MARK`)."""
    aws_endpoint: str
    python: str
    """The interpreter of the drivers; it has pyspark and no other packages."""
    java_home: str
    spark_home: str
    temporary: str
    cache: str
    """The folder with the archive of Spark's classes, shared by all clouds of this project."""
    region: str = "us-east-1"
    account_id: str = "000000000000"
    event_queues: tuple[str, ...] = ()
    """The names of the queues that are targets of the mesh's EventBridge rule."""
    starts_per_second: float = 1.0
    start_burst: int = 25
    faults: str = ""
    """A Python module whose class `Faults` injects faults (tests)."""
    application: ApplicationSettings = field(default_factory=ApplicationSettings)
    workers: WorkerSettings = field(default_factory=WorkerSettings)
    control: ControlRule = field(default_factory=ControlRule)
    code_buckets: tuple[str, ...] = ("cdk-*-assets-*",)
    """Patterns of buckets that hold code of jobs and no data; they are not mirrored."""

    @property
    def folder(self) -> Path:
        """The folder of this stand-in."""
        return Path(self.state)

    def write(self, path: Path) -> None:
        """Write the settings as JSON."""
        write_private(path, json.dumps(asdict(self), indent=2))

    @classmethod
    def read(cls, path: Path) -> EmrSettings:
        """Read the settings from JSON."""
        values: dict[str, Any] = json.loads(path.read_text())
        return cls(
            **{
                **values,
                "event_queues": tuple(values["event_queues"]),
                "code_buckets": tuple(values["code_buckets"]),
                "application": ApplicationSettings(**values["application"]),
                "workers": WorkerSettings(**values["workers"]),
                "control": ControlRule(**values["control"]),
            }
        )
