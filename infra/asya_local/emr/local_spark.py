"""What a Spark on this machine takes of the configuration of a job run. Pure.

`asya run`, the test kit, `asya dev` and the local cloud ask this module alone, so a job has one configuration in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from asya.heavy.run_sizes import sized_jobs
from asya_infra.addresses import is_on_s3, reference_of
from asya_infra.mesh_file.actor_model import conf_megabytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from asya.protocol.mesh_table import Actor
    from asya_infra.mesh_file import LoadedMesh

DEFAULT_MEMORY = "2048m"
"""The heap of a driver for which the mesh file says nothing."""

# The drivers and executors of this machine run on its own Python.
PYTHON_VARIABLES = frozenset({"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "ASYA_JOB_PYTHON"})
_OF_A_MACHINE = frozenset({"", "file", "local"})
FILE_SETTINGS = ("spark.submit.pyFiles", "spark.files", "spark.jars", "spark.archives")

_MEMORY, _EXECUTOR_MEMORY = "spark.driver.memory", "spark.executor.memory"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# spark-submit reads these before there is a JVM. Later ones would change nothing, and say nothing.
_READ_AT_START = (
    *("spark.driver.defaultJavaOptions", "spark.driver.extraClassPath", "spark.driver.extraLibraryPath"),
    *(
        "spark.jars.packages",
        "spark.jars.excludes",
        "spark.jars.repositories",
        "spark.jars.ivy",
        "spark.jars.ivySettings",
    ),
)

_ONE_PROCESS = "driver and executors are one process here, with one heap"
_OTHER_CLUSTER = "it is a setting of EMR Serverless"
_OWN_PYTHON = "jobs run on a Python of this machine"
_CLOSED = "the driver stays closed to other users of this machine"
_UNHEEDED = {
    "spark.dynamicAllocation.": _ONE_PROCESS,
    "spark.executor.cores": _ONE_PROCESS,
    "spark.executor.defaultJavaOptions": _ONE_PROCESS,
    "spark.executor.extraClassPath": _ONE_PROCESS,
    "spark.executor.extraJavaOptions": _ONE_PROCESS,
    "spark.executor.extraLibraryPath": _ONE_PROCESS,
    "spark.executor.instances": _ONE_PROCESS,
    # Its factor, too.
    "spark.executor.memoryOverhead": _ONE_PROCESS,
    "spark.driver.cores": _ONE_PROCESS,
    "spark.driver.memoryOverhead": _ONE_PROCESS,
    "spark.emr-serverless.": _OTHER_CLUSTER,
    "spark.kubernetes.": _OTHER_CLUSTER,
    "spark.yarn.": _OTHER_CLUSTER,
    "spark.pyspark.": _OWN_PYTHON,
    **{f"spark.executorEnv.{name}": _OWN_PYTHON for name in sorted(PYTHON_VARIABLES)},
    "spark.authenticate": _CLOSED,
    "spark.network.crypto.": _CLOSED,
    "spark.ui.enabled": _CLOSED,
    "spark.driver.host": _CLOSED,
    "spark.driver.bindAddress": _CLOSED,
    "spark.local.dir": _CLOSED,
    "spark.sql.warehouse.dir": _CLOSED,
}


def files_here(addresses: Iterable[str], find: Callable[[str], str | None]) -> tuple[list[str], list[str]]:
    """Return the files of a run that a single machine has, and those that it lacks.

    Args:
        addresses: Addresses as the configuration of the run has them.
        find: Returns the path of an address on S3; None without one.
    """
    here, lacking = [], []
    for address in addresses:
        path = find(address) if is_on_s3(address) else address
        if path is None:
            lacking.append(address)
        else:
            here.append(path)
    return here, lacking


def local_path(address: str) -> str | None:
    """Return the path of an address in the file system of this machine; None for other addresses, and for no file."""
    parts = urlsplit(address)
    path = Path(unquote(parts.path) if parts.scheme else address)
    return str(path) if parts.scheme in _OF_A_MACHINE and path.is_file() else None


def data_files(loaded: LoadedMesh, data_uri: str) -> Callable[[str], str | None]:
    """Return what finds the file of an address: the data of the mesh on S3 is a folder of this machine.

    Args:
        loaded: The mesh.
        data_uri: The folder behind `file://`, as it is: no URI escapes.
    """
    folder = Path(data_uri.removeprefix("file://"))

    def find(address: str) -> str | None:
        reference = reference_of(address, loaded.namespace, loaded.mesh.storage.data_bucket)
        path = None if reference is None else folder / reference
        return str(path) if path is not None and path.is_file() else None

    return find


@dataclass(frozen=True)
class KitSetting:
    """A setting that the test kit's Spark starts with, in place of Spark's default.

    Attributes:
        value: The value; None for what the JVM started with.
        reason: Why the kit differs.
    """

    value: str | None
    reason: str


_LITTLE_DATA = "tests have next to no data: further tasks, and plans made anew in between, cost more than they save"
OF_THE_KIT = {
    "spark.driver.memory": KitSetting(None, "all tests of a process share one JVM, with the heap that it starts with"),
    "spark.sql.shuffle.partitions": KitSetting("1", _LITTLE_DATA),
    "spark.sql.adaptive.enabled": KitSetting("false", _LITTLE_DATA),
    "spark.scheduler.mode": KitSetting("FAIR", "runs with `parallel` have it, and a single call notices nothing"),
}
"""What a job finds otherwise in the test kit than in all other ways to run it, unless its actor sets it."""


@dataclass(frozen=True)
class Launch:
    """What the JVM of a driver starts with.

    Attributes:
        memory: The memory of the driver, which the job reads in `spark.driver.memory`.
        heap: The heap of the JVM; by default the memory of the driver.
        java_options: Options of the JVM.
        jars: Paths of jars.
        conf: Further settings that spark-submit reads at the start.
    """

    memory: str = DEFAULT_MEMORY
    heap: str = DEFAULT_MEMORY
    java_options: str = ""
    jars: tuple[str, ...] = ()
    conf: tuple[tuple[str, str], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether another job may have the JVM: only its heap may be special."""
        return not (self.java_options or self.jars or self.conf)


def heap_mb(driver_mb: int, executor_mb: int, machine_mb: int) -> int:
    """Return the heap of a run in MB: that of the driver and of one executor, because tasks run in the driver here.

    Two runs may work at once, so the part of the executor ends at half of the machine's memory.
    """
    return min(driver_mb + executor_mb, max(driver_mb, machine_mb // 2), max(machine_mb, 1))


def launch_of(conf: Mapping[str, str], machine_mb: int, jars: tuple[str, ...] = ()) -> Launch:
    """Return what a driver starts with.

    Args:
        conf: The configuration of the run.
        machine_mb: The memory of this machine.
        jars: The paths of its jars on this machine.
    """
    memory = conf.get(_MEMORY) or DEFAULT_MEMORY
    driver_mb = conf_megabytes(memory)
    heap = memory
    if driver_mb is not None:
        heap = f"{heap_mb(driver_mb, conf_megabytes(conf.get(_EXECUTOR_MEMORY)) or 0, machine_mb)}m"
    return Launch(
        memory,
        heap,
        conf.get(_JAVA_OPTIONS, ""),
        jars,
        tuple((name, conf[name]) for name in _READ_AT_START if name in conf),
    )


def local_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a run that its Spark context gets: neither files, nor those of the launch, nor unheeded ones."""
    launched = {_MEMORY, _EXECUTOR_MEMORY, _JAVA_OPTIONS, *_READ_AT_START, *FILE_SETTINGS}
    return {name: value for name, value in conf.items() if name not in launched and reason_against(name) is None}


def reason_against(name: str) -> str | None:
    """Return why a Spark on this machine does not heed a setting; None if it does."""
    exact = _UNHEEDED.get(name)
    return exact or next((reason for start, reason in _UNHEEDED.items() if name.startswith(start)), None)


def unheeded_notes(actors: Mapping[str, Actor], memory_mb: int) -> Iterator[str]:
    """Yield a note for each heavy actor with settings that this machine cannot honour.

    Args:
        actors: Actors by name.
        memory_mb: The memory of this machine.
    """
    for name, actor in actors.items():
        if actor.spark is None:
            continue
        by_reason: dict[str, list[str]] = {}
        jobs = sized_jobs(actor.spark)
        for setting in dict.fromkeys(setting for _, job in jobs for setting in job.conf):
            if (reason := reason_against(setting)) is not None:
                by_reason.setdefault(reason, []).append(setting)
        for reason, settings in by_reason.items():
            yield f"{name}: Spark does not heed {', '.join(settings)} on this machine: {reason}"
        for size, job in jobs:
            driver, executor = job.driver.memory_mb, job.executor.memory_mb
            heap = heap_mb(driver, executor, memory_mb)
            if heap < driver + executor:
                label = f"{name}, size {size}" if size else name
                yield (
                    f"{label}: driver and executor may use {driver} and {executor} MB of heap, and have {heap} MB together on this "
                    f"machine with {memory_mb} MB"
                )
