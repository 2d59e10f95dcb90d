"""The keys for Spark: the job of a heavy actor, and the application of the mesh."""

import re
from typing import Literal

from pydantic import Field

from asya_infra.mesh_file.account_model import VpcSection
from asya_infra.mesh_file.base import Section
from asya_infra.mesh_file.units import Duration, Megabytes

Catalog = Literal["none", "glue"]
Tables = Literal["parquet", "iceberg"]

_MEGABYTES = {"": 1.0, "b": 1 / 1024**2, "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}


class WorkerSection(Section):
    """The size of a driver or an executor."""

    cores: Literal[1, 2, 4, 8, 16] = 1
    memory: Megabytes = Field(default=2048, ge=512)
    """The heap of the JVM; EMR Serverless adds a tenth, at least 384 MB."""
    disk: Megabytes | None = Field(default=None, ge=20 * 1024, le=200 * 1024)


class ExecutorsSection(WorkerSection):
    """The size and the number of executors."""

    min: int = Field(default=0, ge=0)
    max: int = Field(default=4, ge=1)


class SparkSection(Section):
    """The job of a heavy actor."""

    job: str
    """`module.function` in the `jobs` folder."""
    driver: WorkerSection = WorkerSection()
    executors: ExecutorsSection = ExecutorsSection()
    conf: dict[str, str] = Field(default={})
    """Spark settings of this job."""
    archives: tuple[str, ...] = ()
    """Archives (`s3://…`) that Spark unpacks for the job."""
    py_files: tuple[str, ...] = ()
    """Python files or zips (`s3://…`) that the job imports."""
    payload_schema: str | None = None
    """The type of the payload, for a job function with a DataFrame: a DDL text, or a model such as `shop.models.Order`."""
    max_run: Duration = Field(default=6 * 3600.0, ge=60)
    """The time limit of a job run."""
    parallel: int = Field(default=1, ge=1, le=64)
    """The envelopes at work at the same time in a run, for a job function with one payload."""
    max_runs: int | None = Field(default=None, ge=1, le=1000)
    """The runs of this actor that are active at once, such as 1 for the only writer of a table; by default all that fit."""
    priority: int = Field(default=0, ge=0, le=100)
    """Whose run starts first when the application is full; the highest goes first."""
    linger: Duration = Field(default=0.0, ge=0, le=3600)
    """How long an idle run waits for further envelopes, which it then gets within a second or two; it is billed meanwhile."""
    catalog: Catalog | None = None
    """`glue`: the tables of the Glue Data Catalog; by default that of the mesh."""
    tables: Tables | None = None
    """`iceberg`: Iceberg tables too; by default those of the mesh."""


class WarmSection(Section):
    """Pre-initialized workers."""

    drivers: int = Field(default=0, ge=0)
    executors: int = Field(default=0, ge=0)


class ApplicationSection(Section):
    """The EMR Serverless application: an existing one by `id`, or a new one.

    With `id`, `max_vcpu` and `max_memory` state the capacity of the existing application.
    """

    id: str | None = Field(default=None, pattern=r"^[0-9a-z]{1,64}$")
    release: str = Field(default="emr-spark-8.1.0", min_length=1)
    architecture: Literal["arm64", "x86_64"] = "arm64"
    max_vcpu: int = Field(default=16, ge=2)
    max_memory: Megabytes | None = None
    """The maximum memory of all workers together; by default 8 GB per vCPU."""
    warm: WarmSection = WarmSection()
    max_concurrent_runs: int | None = Field(default=None, ge=1, le=1000)
    """The job runs that are active at once; by default those of the largest job that fit with all their executors."""
    oversubscribe: bool = False
    """Count `executors.min` instead of `executors.max` for `max_concurrent_runs`."""
    idle_stop: Duration = Field(default=900.0, ge=60)
    """The application stops after this idle time."""
    vpc: VpcSection | None = None
    """The network of job runs; by default that of the mesh."""


class StartRateSection(Section):
    """The rate limit for starting job runs."""

    per_second: float = Field(default=1.0, gt=0)
    burst: int = Field(default=25, ge=1)


class SparkSettings(Section):
    """The shared settings of all heavy actors."""

    application: ApplicationSection = ApplicationSection()
    start_rate: StartRateSection = StartRateSection()
    catalog: Catalog = "none"
    """`glue`: jobs find the tables of the Glue Data Catalog of the account and region."""
    tables: Tables = "parquet"
    """`iceberg`: jobs find Iceberg tables as `iceberg.database.table`; it needs `catalog: glue`."""


def conf_megabytes(text: str | None) -> int | None:
    """Return a memory size of Spark's settings (`512m`, `2g`; without a unit in megabytes), rounded up; else None."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([bkmgt]?)b?\s*", (text or "").lower())
    return None if match is None else -int(-(float(match[1]) * _MEGABYTES[match[2]]) // 1)
