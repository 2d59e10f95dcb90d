"""The keys for Spark: the job of a heavy actor, and the application of the mesh."""

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from asya.protocol.mesh_keys import After
from asya.protocol.mesh_table import JobOptions
from asya_infra.mesh_file.account_model import VpcSection
from asya_infra.mesh_file.sections import Written
from asya_infra.mesh_file.units import Duration, Megabytes

Catalog = Literal["none", "glue"]
Tables = Literal["parquet", "iceberg"]

_MEGABYTES = {"": 1.0, "b": 1 / 1024**2, "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}


class WorkerSection(Struct, frozen=True, kw_only=True):
    """The size of a driver or an executor."""

    cores: Literal[1, 2, 4, 8, 16] = 1
    memory: Annotated[Megabytes, Meta(ge=512)] = 2048
    """The heap of the JVM; EMR Serverless adds a tenth, at least 384 MB."""
    disk: Annotated[Megabytes, Meta(ge=20 * 1024, le=200 * 1024)] | None = None


class ExecutorsSection(WorkerSection, frozen=True, kw_only=True):
    """The size and the number of executors."""

    min: Annotated[int, Meta(ge=0)] = 0
    max: Annotated[int, Meta(ge=1)] = 4


class SparkSection(JobOptions, frozen=True, kw_only=True):
    """The job of a heavy actor."""

    driver: Annotated[WorkerSection, After("job")] = WorkerSection()
    executors: ExecutorsSection = ExecutorsSection()
    conf: dict[str, str] = field(default_factory=dict)
    """Spark settings of this job."""
    catalog: Annotated[Catalog | None, After("linger")] = None
    """`glue`: the tables of the Glue Data Catalog; by default that of the mesh."""
    tables: Tables | None = None
    """`iceberg`: Iceberg tables too; by default those of the mesh."""
    written: Written = field(default_factory=dict)


class WarmSection(Struct, frozen=True, kw_only=True):
    """Pre-initialized workers."""

    drivers: Annotated[int, Meta(ge=0)] = 0
    executors: Annotated[int, Meta(ge=0)] = 0


class ApplicationSection(Struct, frozen=True, kw_only=True):
    """The EMR Serverless application: an existing one by `id`, or a new one.

    With `id`, `max_vcpu` and `max_memory` state the capacity of the existing application.
    """

    id: Annotated[str, Meta(pattern=r"^[0-9a-z]{1,64}$")] | None = None
    release: Annotated[str, Meta(min_length=1)] = "emr-spark-8.1.0"
    architecture: Literal["arm64", "x86_64"] = "arm64"
    max_vcpu: Annotated[int, Meta(ge=2)] = 16
    max_memory: Megabytes | None = None
    """The maximum memory of all workers together; by default 8 GB per vCPU."""
    warm: WarmSection = WarmSection()
    max_concurrent_runs: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """The job runs that are active at once; by default those of the largest job that fit with all their executors."""
    oversubscribe: bool = False
    """Count `executors.min` instead of `executors.max` for `max_concurrent_runs`."""
    idle_stop: Annotated[Duration, Meta(ge=60)] = 900.0
    """The application stops after this idle time."""
    vpc: VpcSection | None = None
    """The network of job runs; by default that of the mesh."""
    written: Written = {}


class StartRateSection(Struct, frozen=True, kw_only=True):
    """The rate limit for starting job runs."""

    per_second: Annotated[float, Meta(gt=0)] = 1.0
    burst: Annotated[int, Meta(ge=1)] = 25


class SparkSettings(Struct, frozen=True, kw_only=True):
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
