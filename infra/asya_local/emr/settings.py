"""What one stand-in is told at its start; a file, because the process has no other parent to ask."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ApplicationSettings:
    """The one application, made at start under a known id."""

    application_id: str = "00asyalocal0001"
    name: str = "asya-local"
    release_label: str = "emr-spark-8.1.0"
    max_vcpu: int = 16
    max_memory_gb: int = 128
    max_concurrent_runs: int = 15
    queue_timeout_minutes: int = 360


@dataclass(frozen=True)
class WorkerSettings:
    """How job runs become processes here."""

    slots: int = 2
    """Runs that may be at work at once on this machine; more wait in SCHEDULED."""
    cores: int = 2
    """Cores of each run: Spark's `local[n]`."""
    spares: int = 0
    """Drivers kept started and waiting, as an application's initial capacity does."""
    reuse: bool = False
    """Run many jobs one after another in one driver (tests): a new Spark context each, the same JVM."""


@dataclass(frozen=True)
class ControlRule:
    """Which objects of a job are statements about others, and so must reach S3 after them."""

    prefix: str = "runs/"
    commit_name: str = "commit.json"


@dataclass(frozen=True)
class EmrSettings:
    """Everything the stand-in is told. The keys of MiniStack's root user come by environment, not by file."""

    port: int
    state: str
    """Folder of this stand-in: settings, and one folder per job run."""
    mark: str
    """The state folder of the whole cloud, which every process of it carries in its environment."""
    aws_endpoint: str
    python: str
    """The interpreter for the drivers; it must have pyspark."""
    java_home: str
    temporary: str
    cache: str
    """Folder that clouds of this project share: the archive of Spark's classes lies there."""
    region: str = "us-east-1"
    account_id: str = "000000000000"
    auth: bool = False
    event_queues: tuple[str, ...] = ()
    """Names of the queues that the mesh's EventBridge rule would feed."""
    starts_per_second: float = 1.0
    start_burst: int = 25
    faults: str = ""
    """A Python module whose class `Faults` injects faults (tests)."""
    application: ApplicationSettings = field(default_factory=ApplicationSettings)
    workers: WorkerSettings = field(default_factory=WorkerSettings)
    control: ControlRule = field(default_factory=ControlRule)
    code_buckets: tuple[str, ...] = ("cdk-*-assets-*",)
    """Buckets, as patterns, that hold jobs' code and no data: never mirrored."""

    @property
    def folder(self) -> Path:
        """The state folder."""
        return Path(self.state)

    def write(self, path: Path) -> None:
        """Write the settings as JSON."""
        path.write_text(json.dumps(asdict(self), indent=2))

    @classmethod
    def read(cls, path: Path) -> EmrSettings:
        """Read what `write` wrote."""
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
