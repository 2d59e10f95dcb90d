"""Computes how many job runs fit into the Spark application, and the settings of Spark for the tables of a catalog. Pure.

EMR Serverless starts the drivers of many runs before it has room for their executors. Runs beyond the limit would hold
vCPU with idle drivers, and the executors that they wait for would not fit. It has the client of the Glue Data Catalog and
the jar of Iceberg: https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/metastore-config.html and
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-iceberg.html
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import asdict, replace

from asya_infra.limits.aws_limits import CONCURRENT_RUNS, WORKERS
from asya_infra.mesh_file.actor_model import (
    ApplicationSection,
    SizeSection,
    SizeWorkerSection,
    SparkSection,
    WorkerSection,
    conf_megabytes,
)
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.result_index import SECTION, compacts_index

QUEUE_TIMEOUT_MINUTES = 360
MEMORY_PER_VCPU_GB = 8
_MB_PER_GB = 1024
_MIN_OVERHEAD_MB = 384
_OVERHEAD_FACTOR = 0.1
SET_BY_EMR = ("spark.master", "spark.submit.deployMode")
"""Settings of Spark that EMR Serverless gives: its guide lists no `--master` and no `--deploy-mode`."""
INITIAL_EXECUTORS = "spark.dynamicAllocation.initialExecutors"


@dataclass(frozen=True)
class Capacity:
    """An amount of vCPU and memory."""

    vcpu: int
    memory_gb: int


@dataclass(frozen=True)
class WarmWorker(Capacity):
    """The size of a pre-initialized worker; its disk is the default of EMR Serverless if it is None."""

    disk_gb: int | None = None


@dataclass(frozen=True)
class WarmSize:
    """The pre-initialized workers of the application."""

    driver: WarmWorker
    executor: WarmWorker


@dataclass(frozen=True)
class RunSize:
    """The workers of one job run."""

    driver: Capacity
    executor: Capacity

    def total(self, executors: int) -> Capacity:
        """Return the capacity of a run with its driver and this number of executors."""
        return Capacity(
            self.driver.vcpu + executors * self.executor.vcpu,
            self.driver.memory_gb + executors * self.executor.memory_gb,
        )

    def executors_within(self, capacity: Capacity) -> int:
        """Return the most executors that fit beside the driver, alone in the application."""
        return max(
            0,
            min(
                (capacity.vcpu - self.driver.vcpu) // self.executor.vcpu,
                (capacity.memory_gb - self.driver.memory_gb) // self.executor.memory_gb,
            ),
        )


def application_capacity(section: ApplicationSection) -> Capacity:
    """Return the maximum capacity of the application."""
    memory = section.max_memory // _MB_PER_GB if section.max_memory else section.max_vcpu * MEMORY_PER_VCPU_GB
    return Capacity(section.max_vcpu, memory)


def knows_capacity(section: ApplicationSection) -> bool:
    """Return whether the mesh file has the capacity. Of an existing application, only `max_vcpu` states it."""
    return section.id is None or "max_vcpu" in section.written


def overhead_mb(conf: Mapping[str, str], kind: str, memory_mb: int) -> int:
    """Return the memory beside the heap: that of `conf`, else a tenth, at least 384 MB.

    Args:
        conf: the settings of Spark.
        kind: `driver` or `executor`, as in the names of Spark's settings.
        memory_mb: the heap.
    """
    fixed = conf_megabytes(conf.get(f"spark.{kind}.memoryOverhead"))
    if fixed is None:
        named = (f"spark.{kind}.memoryOverheadFactor", "spark.emr-serverless.memoryOverheadFactor")
        try:
            factor = float(next((conf[name] for name in named if name in conf), _OVERHEAD_FACTOR))
        except ValueError:
            factor = _OVERHEAD_FACTOR
        fixed = max(_MIN_OVERHEAD_MB, int(memory_mb * factor))
    python = conf_megabytes(conf.get("spark.executor.pyspark.memory")) if kind == "executor" else None
    return fixed + (python or 0)


def worker_capacity(spark: SparkSection, kind: str, worker: WorkerSection) -> Capacity:
    """Return the size of a worker. EMR Serverless offers memory in steps, so the size is rounded up."""
    shape = WORKERS[worker.cores]
    needed = -(-(worker.memory + overhead_mb(spark.conf, kind, worker.memory)) // _MB_PER_GB)
    return Capacity(worker.cores, max(shape.min_gb, -(-needed // shape.step_gb) * shape.step_gb))


def sized_sections(spark: SparkSection) -> list[tuple[str, SparkSection]]:
    """Return the job in each of its sizes, by name: the job itself, with an empty name, if it has none."""
    return [(name, _sized(spark, size)) for name, size in spark.sizes.items()] or [("", spark)]


def _sized(spark: SparkSection, size: SizeSection) -> SparkSection:
    return replace(
        spark,
        driver=replace(spark.driver, **_named(size.driver)),
        executors=replace(spark.executors, **_named(size.executors)),
        conf=spark.conf | size.conf,
        sizes={},
        size_by=None,
    )


def _named(section: SizeWorkerSection) -> dict[str, Any]:
    return {name: value for name, value in asdict(section).items() if value is not None}


def run_size(spark: SparkSection) -> RunSize:
    """Return the workers of a job in one size."""
    return RunSize(worker_capacity(spark, "driver", spark.driver), worker_capacity(spark, "executor", spark.executors))


def warm_size(mesh: MeshFile) -> WarmSize:
    """Return the size of warm workers: a job uses only those that are as large as its own, so they fit the largest."""
    sections = [actor.spark for actor in mesh.actors.values() if actor.spark] or [SparkSection(job="none")]
    jobs = [job for section in sections for _, job in sized_sections(section)]
    return WarmSize(
        _warm_worker([(run_size(job).driver, job.driver) for job in jobs]),
        _warm_worker([(run_size(job).executor, job.executors) for job in jobs]),
    )


def _warm_worker(workers: Sequence[tuple[Capacity, WorkerSection]]) -> WarmWorker:
    cores = max(worker.cores for _, worker in workers)
    shape, memory = WORKERS[cores], max(capacity.memory_gb for capacity, _ in workers)
    disks = [worker.disk for _, worker in workers if worker.disk is not None]
    return WarmWorker(
        cores,
        max(shape.min_gb, -(-memory // shape.step_gb) * shape.step_gb),
        -(-max(disks) // _MB_PER_GB) if disks else None,
    )


def warm_capacity(mesh: MeshFile) -> Capacity:
    """Return the capacity that the warm workers take all the time."""
    warm, size = mesh.spark.application.warm, warm_size(mesh)
    return Capacity(
        warm.drivers * size.driver.vcpu + warm.executors * size.executor.vcpu,
        warm.drivers * size.driver.memory_gb + warm.executors * size.executor.memory_gb,
    )


def max_executors(spark: SparkSection, section: ApplicationSection) -> int:
    """Return `executors.max`, clamped to what fits into the application beside the driver."""
    if not knows_capacity(section):
        return spark.executors.max
    fit = run_size(spark).executors_within(application_capacity(section))
    return min(spark.executors.max, max(fit, spark.executors.min, 1))


def max_concurrent_runs(mesh: MeshFile) -> int:
    """Return how many job runs may be active at once.

    An explicit `max_concurrent_runs` wins. Otherwise it is the number of runs of the largest job that fit with all
    their executors; with `oversubscribe`, with their fewest ones. Returns 0 if not even one run fits.
    """
    section = mesh.spark.application
    if section.max_concurrent_runs is not None:
        return section.max_concurrent_runs
    capacity = application_capacity(section)
    runs = min((_runs_of(spark, section, capacity) for spark in _jobs(mesh)), default=CONCURRENT_RUNS.usable)
    if not knows_capacity(section):
        runs = max(1, runs)  # its capacity is a guess; one run at a time is always right
    return min(runs, CONCURRENT_RUNS.usable)


def _runs_of(spark: SparkSection, section: ApplicationSection, capacity: Capacity) -> int:
    # A run without an executor would hold its driver in vain, so one executor is counted at least.
    executors = max(1, spark.executors.min) if section.oversubscribe else max_executors(spark, section)
    total = run_size(spark).total(executors)
    return max(0, min(capacity.vcpu // total.vcpu, capacity.memory_gb // total.memory_gb))


def _jobs(mesh: MeshFile) -> Iterable[SparkSection]:
    """Return the jobs of all heavy actors in all their sizes, and that of x-index if the mesh has it."""
    sections = [*mesh.actors.values(), *([SECTION] if compacts_index(mesh) else [])]
    return [job for actor in sections if actor.spark is not None for _, job in sized_sections(actor.spark)]


_GLUE = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.metastore.client.factory.class": (
        "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"
    ),
}
# `asya_spark.tables` has the name of the catalog too, for its error.
_ICEBERG = {
    "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.iceberg.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
    "spark.sql.catalog.iceberg.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
}
_JARS, _EXTENSIONS = "spark.jars", "spark.sql.extensions"
_ICEBERG_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
_ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
# A jar of the user with this in its name replaces that of EMR, such as one of a newer version.
_ICEBERG_NAME = "iceberg-spark"


def spark_conf(spark: SparkSection) -> dict[str, str]:
    """Return the settings of a job: those of its catalog and its tables, under its own `conf`, which wins.

    Jars and extensions of `conf` are added to those of Iceberg.
    """
    conf: dict[str, str] = {}
    if spark.catalog == "glue":
        conf |= _GLUE
    if spark.tables == "iceberg":
        conf |= _ICEBERG
        conf[_EXTENSIONS] = _joined(_ICEBERG_EXTENSIONS, spark.conf, _EXTENSIONS)
        brings_jar = _ICEBERG_NAME in spark.conf.get(_JARS, "")
        conf[_JARS] = spark.conf[_JARS] if brings_jar else _joined(_ICEBERG_JAR, spark.conf, _JARS)
    own = {key: value for key, value in spark.conf.items() if key not in conf or key not in (_EXTENSIONS, _JARS)}
    return conf | own


def _joined(own: str, conf: Mapping[str, str], key: str) -> str:
    others = [part.strip() for part in conf.get(key, "").split(",")]
    return ",".join(dict.fromkeys([own, *filter(None, others)]))
