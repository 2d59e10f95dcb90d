"""The keys that concern Spark: a heavy actor's job, and the application that all jobs of a mesh run on."""

from typing import Literal

from pydantic import Field

from asya_infra.mesh_file.base import Section, Text
from asya_infra.mesh_file.units import Duration, Megabytes

# EMR Serverless offers workers of these sizes: vCPU to the most memory, in gigabytes.
WORKER_MEMORY_GB = {1: 8, 2: 16, 4: 30, 8: 60, 16: 120}


class WorkerSection(Section):
    """What a driver or an executor gets."""

    cores: Literal[1, 2, 4, 8, 16] = 1
    memory: Megabytes = Field(default=2048, ge=512)
    """The JVM's heap; EMR Serverless adds a tenth, at least 384 MB."""
    disk: Megabytes | None = Field(default=None, ge=20 * 1024, le=200 * 1024)


class ExecutorsSection(WorkerSection):
    """Executors: the size of one, and how many there may be."""

    min: int = Field(default=0, ge=0)
    max: int = Field(default=4, ge=1)


class SparkSection(Section):
    """A heavy actor's job."""

    job: str
    """`module.function` in the `jobs` folder."""
    driver: WorkerSection = WorkerSection()
    executors: ExecutorsSection = ExecutorsSection()
    conf: dict[str, Text] = Field(default={})
    """Spark settings of this job."""
    archives: tuple[str, ...] = ()
    """`s3://…` addresses of archives that Spark unpacks for the job."""
    py_files: tuple[str, ...] = ()
    """`s3://…` addresses of Python files or zips that the job imports."""
    payload_schema: str | None = None
    """DDL of the payload, for a job that takes a DataFrame of envelopes."""
    max_run: Duration = Field(default=6 * 3600.0, ge=60)
    """The longest that one job run may take."""


class WarmSection(Section):
    """Workers that are kept started."""

    drivers: int = Field(default=0, ge=0)
    executors: int = Field(default=0, ge=0)


class ApplicationSection(Section):
    """The EMR Serverless application: an existing one by `id`, or one that is made."""

    id: str | None = Field(default=None, pattern=r"^[0-9a-z]{1,64}$")
    release: str = Field(default="emr-spark-8.1.0", min_length=1)
    architecture: Literal["arm64", "x86_64"] = "arm64"
    max_vcpu: int = Field(default=16, ge=2)
    max_memory: Megabytes | None = None
    """The most memory of all workers together; 8 GB for each vCPU if missing."""
    warm: WarmSection = WarmSection()
    max_concurrent_runs: int | None = Field(default=None, ge=1, le=1000)
    idle_stop: Duration = Field(default=900.0, ge=60)
    """Idle time after which the application stops."""


class StartRateSection(Section):
    """How fast the account may start job runs."""

    per_second: float = Field(default=1.0, gt=0)
    burst: int = Field(default=25, ge=1)


class SparkSettings(Section):
    """What all heavy actors of a mesh share."""

    application: ApplicationSection = ApplicationSection()
    start_rate: StartRateSection = StartRateSection()
