"""Checks heavy actors and the Spark application against the limits of EMR Serverless."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from math import inf
from urllib.parse import urlsplit

from asya.protocol.keys import DATA_PREFIX, RESULTS_PREFIX
from asya.protocol.mesh_table import FAIR_BY_OWNER
from asya_infra.addresses import is_own_bucket
from asya_infra.limits.aws_limits import RUN_MINUTES, WORKERS
from asya_infra.mesh_file.actor_model import (
    ActorSection,
    ApplicationSection,
    SizeExecutorsSection,
    SizeSection,
    SparkSection,
    WorkerSection,
)
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.forms import format_duration
from asya_infra.mesh_file.mesh_model import StorageSection
from asya_infra.mesh_file.source import Location
from asya_infra.mesh_file.spark import (
    INITIAL_EXECUTORS,
    SET_BY_EMR,
    application_capacity,
    knows_capacity,
    max_concurrent_runs,
    max_executors,
    overhead_mb,
    run_size,
    sized_sections,
    warm_capacity,
)

_MOST_SIZES = 8
_SIZE_NAME = re.compile(r"[a-z0-9-]{1,20}")
_WINDOW = 900  # the limit of a delayed message
# Keys that an existing application may have: they describe it, or limit this mesh.
_OF_EXISTING = frozenset({"id", "max_vcpu", "max_memory", "max_concurrent_runs", "oversubscribe"})
# Settings of Spark that have a key of their own. In `conf` they would override what the capacity is computed from.
_OWN_KEYS = {
    "spark.driver.cores": "driver.cores",
    "spark.driver.memory": "driver.memory",
    "spark.executor.cores": "executors.cores",
    "spark.executor.memory": "executors.memory",
    "spark.executor.instances": "executors.min and executors.max",
    "spark.dynamicAllocation.enabled": "executors.min and executors.max",
    "spark.dynamicAllocation.minExecutors": "executors.min",
    "spark.dynamicAllocation.maxExecutors": "executors.max",
    "spark.archives": "archives",
    "spark.submit.pyFiles": "py_files",
}
# A catalog of files needs a rename that fails if the target exists, and S3 has none: two writers would lose a commit.
_NO_CATALOG = "needs catalog: glue beside it: without a catalog, Iceberg loses commits of several writers on S3; set catalog: glue"
_FILE_SETTINGS = ("spark.jars", "spark.files")


def check_spark(context: Context) -> Iterator[Finding]:
    """Check heavy actors and the Spark application."""
    application, storage = context.mesh.spark.application, context.mesh.storage
    others = sorted(application.written.keys() - _OF_EXISTING)
    if application.id is not None and others:
        yield (
            ("spark", "application", others[0]),
            "conflicts with id: an existing application has its own settings; remove this key",
        )
    needed, capacity = warm_capacity(context.mesh), application_capacity(application)
    if needed.vcpu > capacity.vcpu or needed.memory_gb > capacity.memory_gb:
        yield (
            ("spark", "application", "warm"),
            f"needs {needed.vcpu} vCPU and {needed.memory_gb} GB, because each warm worker fits the largest job, but the "
            f"application has {capacity.vcpu} vCPU and {capacity.memory_gb} GB; raise max_vcpu or max_memory",
        )
    if context.mesh.spark.tables == "iceberg" and context.mesh.spark.catalog != "glue":
        yield ("spark", "tables"), _NO_CATALOG
    misfits = False
    for name, actor in context.mesh.actors.items():
        if actor.spark is None:
            continue
        sections = sized_sections(actor.spark)
        findings = [*_actor(actor, actor.spark), *_sizes(actor.spark)]
        for size, spark in sections:
            checked = (
                *_workers(spark),
                *_settings(spark, application),
                *_files(actor, spark, storage, context.namespace),
            )
            findings += [(_place(actor.spark, size, location), message) for location, message in checked]
        if not findings and knows_capacity(application):
            findings = [
                (_place(actor.spark, size, location), message)
                for size, spark in sections
                for location, message in _fits(spark, application)
            ]
            misfits = misfits or bool(findings)
        # A key of the actor is wrong in all its sizes.
        for location, message in dict.fromkeys(findings):
            yield ("actors", name, *location), message
    if not misfits and max_concurrent_runs(context.mesh) < 1:
        yield (
            ("spark", "application"),
            "has no room for one job run of x-index, which needs 2 vCPU and 6 GB; raise max_vcpu or max_memory",
        )


def _place(spark: SparkSection, size: str, location: Location) -> Location:
    """Return where the mesh file has the key of a size: at the size if it names the key, else at the actor."""
    if not size or location[0] != "spark":
        return location
    keys = location[1:]
    named: object = spark.sizes[size]
    for key in keys:
        named = named.get(key) if isinstance(named, dict) else getattr(named, str(key), None)
    return ("spark", "sizes", size, *keys) if named not in (None, SizeExecutorsSection()) else location


def _sizes(spark: SparkSection) -> Iterator[Finding]:
    """Check the order of sizes, and their names, which are those of runs."""
    if spark.size_by is not None and not spark.sizes:
        yield ("spark", "size_by"), "selects among sizes, and there are none; add sizes, or remove this key"
    if len(spark.sizes) == 1 or len(spark.sizes) > _MOST_SIZES:
        yield ("spark", "sizes"), f"should have 2 to {_MOST_SIZES} sizes; got {len(spark.sizes)}"
    *others, last = spark.sizes.items() or [("", SizeSection())]
    for name in spark.sizes:
        if not _SIZE_NAME.fullmatch(name):
            yield ("spark", "sizes", name), "should be a name of 1 to 20 lowercase letters, digits and -"
    before = -inf
    for name, size in others if spark.size_by is not None else ():
        if size.up_to is None:
            yield ("spark", "sizes", name), f"needs up_to, the largest value at {spark.size_by} that has this size"
        elif size.up_to <= before:
            yield ("spark", "sizes", name, "up_to"), f"should be more than that of the size before ({before:g})"
        before = before if size.up_to is None else size.up_to
    for name, size in spark.sizes.items():
        if spark.size_by is None and size.up_to is not None:
            yield ("spark", "sizes", name, "up_to"), "needs size_by, a JSON pointer into the payload"
    if spark.size_by is not None and last[1].up_to is not None:
        yield ("spark", "sizes", last[0], "up_to"), "is that of the last size, which has all larger values; remove it"


def _isolation(actor: ActorSection, spark: SparkSection) -> Iterator[Finding]:
    if spark.isolation == "tenant" and actor.fair_by != FAIR_BY_OWNER:
        yield (
            ("spark", "isolation"),
            f"needs fair_by: {FAIR_BY_OWNER}, which names the proven tenant; set it too",
        )
    if spark.isolation != "envelope":
        return
    if spark.parallel > 1:
        yield ("spark", "parallel"), "has no effect with isolation: envelope, whose runs have one envelope; remove it"
    if spark.linger:
        yield (
            ("spark", "linger"),
            "has no effect with isolation: envelope, whose drivers take no further batch; remove it",
        )


def _actor(actor: ActorSection, spark: SparkSection) -> Iterator[Finding]:
    if actor.batch.window > _WINDOW:
        yield ("batch", "window"), f"should be at most {_WINDOW}s for a heavy actor"
    if actor.timeout > spark.max_run:
        yield (
            ("timeout",),
            f"is longer than the time limit of a job run (spark.max_run, {format_duration(spark.max_run)})",
        )
    if spark.max_run > RUN_MINUTES.usable * 60:
        yield ("spark", "max_run"), f"should be at most {RUN_MINUTES.usable // 1440}d, the limit of EMR Serverless"
    if spark.linger > spark.max_run:
        yield ("spark", "linger"), f"is longer than the time limit of a job run ({format_duration(spark.max_run)})"
    yield from _isolation(actor, spark)
    for key in ("archives", "py_files"):
        for index, address in enumerate(getattr(spark, key)):
            if not address.startswith("s3://"):
                yield (
                    ("spark", key, index),
                    f"should be an s3:// address; got {address!r}; put code into the jobs folder instead",
                )
    if spark.tables == "iceberg" and spark.catalog != "glue" and {"catalog", "tables"} & spark.written.keys():
        yield ("spark", "tables"), _NO_CATALOG


def _workers(spark: SparkSection) -> Iterator[Finding]:
    if spark.executors.min > spark.executors.max:
        yield ("spark", "executors", "min"), f"is more than max ({spark.executors.max})"
    for key, kind, worker in (("driver", "driver", spark.driver), ("executors", "executor", spark.executors)):
        yield from _worker(spark, key, kind, worker)


def _settings(spark: SparkSection, application: ApplicationSection) -> Iterator[Finding]:
    """Check the settings of Spark that a mesh file cannot set, and those that EMR Serverless refuses."""
    for setting in spark.conf:
        if setting in _OWN_KEYS:
            yield ("spark", "conf", setting), f"has a key of its own; set {_OWN_KEYS[setting]} instead"
        if setting in SET_BY_EMR:
            yield (
                ("spark", "conf", setting),
                "is set by EMR Serverless, which places the driver and its executors; remove it",
            )
    place, text = ("spark", "conf", INITIAL_EXECUTORS), spark.conf.get(INITIAL_EXECUTORS)
    if text is None:
        return
    if not text.isdecimal():
        yield place, f"should be a whole number; got {text!r}"
        return
    initial, most = int(text), max_executors(spark, application)
    if initial > spark.executors.max:
        yield (
            place,
            f"is more than executors.max ({spark.executors.max}), which EMR Serverless refuses; lower it, or raise executors.max",
        )
    elif initial > most:
        yield (
            place,
            f"is more than the {most} executors that fit into the application, to which executors.max is clamped; lower it, or "
            "raise spark.application.max_vcpu or max_memory",
        )


def _worker(spark: SparkSection, key: str, kind: str, worker: WorkerSection) -> Iterator[Finding]:
    shape, overhead = WORKERS[worker.cores], overhead_mb(spark.conf, kind, worker.memory)
    if worker.memory + overhead > shape.max_gb * 1024:
        yield (
            ("spark", key, "memory"),
            f"{worker.memory} MB + {overhead} MB overhead exceeds the {shape.max_gb * 1024} MB of a worker "
            f"with {worker.cores} cores",
        )


def _fits(spark: SparkSection, application: ApplicationSection) -> Iterator[Finding]:
    needed, capacity = run_size(spark).total(max(1, spark.executors.min)), application_capacity(application)
    if needed.vcpu > capacity.vcpu:
        yield (
            ("spark", "executors"),
            f"a job run needs {needed.vcpu} vCPU to start, but the application has {capacity.vcpu} "
            "(spark.application.max_vcpu)",
        )
    if needed.memory_gb > capacity.memory_gb:
        yield (
            ("spark", "executors"),
            f"a job run needs {needed.memory_gb} GB of memory to start, but the application has "
            f"{capacity.memory_gb} GB (spark.application.max_memory)",
        )


def _files(actor: ActorSection, spark: SparkSection, storage: StorageSection, namespace: str) -> Iterator[Finding]:
    """Check that a run may read the files that its settings name."""
    for setting in _FILE_SETTINGS:
        for address in filter(None, (part.strip() for part in spark.conf.get(setting, "").split(","))):
            parts = urlsplit(address)
            if parts.scheme not in {"s3", "s3a"}:
                continue  # a file of the image (local://, file://), or a repository
            if not _is_readable(actor, storage, namespace, parts.netloc, parts.path.lstrip("/")):
                yield (
                    ("spark", "conf", setting),
                    f"the job may not read {address}; add to access: "
                    f'{{bucket: {parts.netloc}, read: ["{parts.path.lstrip("/")}"]}}',
                )


def _is_readable(actor: ActorSection, storage: StorageSection, namespace: str, bucket: str, key: str) -> bool:
    folders: Mapping[str, tuple[str, str | None]] = {
        "data": (DATA_PREFIX, storage.data_bucket),
        "results": (RESULTS_PREFIX, storage.results_bucket),
    }
    for entry in actor.access:
        if entry.statement is not None:
            return True  # its effect is unknown
        if entry.bucket is None:
            continue
        prefix, existing = folders.get(entry.bucket, ("", entry.bucket))
        own = existing is None and is_own_bucket(bucket, namespace)
        if (own or bucket == existing) and any(
            fnmatchcase(key, (prefix if existing is None else "") + pattern) for pattern in entry.read
        ):
            return True
    return False
