"""What a Spark on this machine takes of the configuration of a job run. Pure.

`asya run`, the test kit, `asya dev` and the local cloud ask this module alone, so a job has one configuration in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from asya.protocol.mesh_table import Actor

DEFAULT_MEMORY = "2048m"
"""The heap of a driver for which the mesh file says nothing."""

# The drivers and executors of this machine run on its own Python.
PYTHON_VARIABLES = frozenset({"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "ASYA_JOB_PYTHON"})
FILE_SETTINGS = ("spark.submit.pyFiles", "spark.files", "spark.jars", "spark.archives")

_MEMORY = "spark.driver.memory"
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

_ONE_PROCESS = "driver and executors are one process here, with the driver's heap"
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
    # `spark.executor.memoryOverhead` and its factor, too.
    "spark.executor.memory": _ONE_PROCESS,
    "spark.driver.cores": _ONE_PROCESS,
    "spark.driver.memoryOverhead": _ONE_PROCESS,
    "spark.master": _ONE_PROCESS,
    "spark.submit.deployMode": _ONE_PROCESS,
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


@dataclass(frozen=True)
class Launch:
    """What the JVM of a driver starts with.

    Attributes:
        memory: Its heap, as `spark.driver.memory` has it.
        java_options: Options of the JVM.
        jars: Paths of jars.
        conf: Further settings that spark-submit reads at the start.
    """

    memory: str = DEFAULT_MEMORY
    java_options: str = ""
    jars: tuple[str, ...] = ()
    conf: tuple[tuple[str, str], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether another job may have the JVM: only its heap may be special."""
        return not (self.java_options or self.jars or self.conf)


def launch_of(conf: Mapping[str, str], jars: tuple[str, ...] = ()) -> Launch:
    """Return what a driver starts with.

    Args:
        conf: The configuration of the run.
        jars: The paths of its jars on this machine.
    """
    return Launch(
        conf.get(_MEMORY) or DEFAULT_MEMORY,
        conf.get(_JAVA_OPTIONS, ""),
        jars,
        tuple((name, conf[name]) for name in _READ_AT_START if name in conf),
    )


def local_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a run that its Spark context gets: neither files, nor those of the launch, nor unheeded ones."""
    launched = {_MEMORY, _JAVA_OPTIONS, *_READ_AT_START, *FILE_SETTINGS}
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
        for setting in actor.spark.conf:
            if (reason := reason_against(setting)) is not None:
                by_reason.setdefault(reason, []).append(setting)
        for reason, settings in by_reason.items():
            yield f"{name}: Spark does not heed {', '.join(settings)} on this machine: {reason}"
        if actor.spark.driver.memory_mb > memory_mb:
            yield (
                f"{name}: the driver may use {actor.spark.driver.memory_mb} MB, and this machine has {memory_mb} MB of memory"
            )
