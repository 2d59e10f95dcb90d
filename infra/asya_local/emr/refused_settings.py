"""Finds what EMR Serverless refuses in the Spark configuration of a run. Pure.

Its guide has the options of spark-submit and the sizes of workers:
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/jobs-spark.html and
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html. The words on executors are those of the service,
as its users cite them. All other words are of the stand-in, because no source has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asya_infra.limits.aws_limits import WORKERS
from asya_infra.mesh_file.actor_model import conf_megabytes
from asya_infra.mesh_file.spark import INITIAL_EXECUTORS, SET_BY_EMR, overhead_mb
from asya_local.emr.capacity import (
    DEFAULT_CORES,
    DEFAULT_MEMORY_GB,
    allocates_dynamically,
    initial_executors,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LEAST, _MOST = "spark.dynamicAllocation.minExecutors", "spark.dynamicAllocation.maxExecutors"
_NUMBERS = ("spark.driver.cores", "spark.executor.cores", "spark.executor.instances", INITIAL_EXECUTORS, _LEAST, _MOST)


def refusal(conf: Mapping[str, str]) -> str | None:
    """Return why EMR Serverless refuses a run with these settings; None if it takes them."""
    return next(_refusals(conf), None)


def _refusals(conf: Mapping[str, str]) -> Iterator[str]:
    for name in SET_BY_EMR:
        if name in conf:
            yield f"{name} is set by EMR Serverless; remove it from the settings of the run"
    for name in _NUMBERS:
        if not conf.get(name, "0").strip().isdecimal():
            yield f"{name} should be a whole number; got {conf[name]!r}"
    for kind in ("driver", "executor"):
        yield from _worker(conf, kind)
    if allocates_dynamically(conf):
        initial, least, most = initial_executors(conf), conf.get(_LEAST, "0"), conf.get(_MOST)
        if most is not None and initial > int(most):
            yield (
                f"Maximum value of {INITIAL_EXECUTORS}: {initial} must be between spark.dynamicAllocation.minExecutor {least} "
                f"and {_MOST} {most}."
            )


def _worker(conf: Mapping[str, str], kind: str) -> Iterator[str]:
    """Yield why no worker has the size that the settings ask for."""
    cores, memory = int(conf.get(f"spark.{kind}.cores", DEFAULT_CORES)), f"spark.{kind}.memory"
    shape = WORKERS.get(cores)
    if shape is None:
        yield f"spark.{kind}.cores should be one of {', '.join(map(str, WORKERS))}; got {cores}"
        return
    heap = conf_megabytes(conf.get(memory, f"{DEFAULT_MEMORY_GB}g"))
    if heap is None:
        yield f"{memory} should be an amount of memory, such as 4g; got {conf[memory]!r}"
        return
    overhead = overhead_mb(conf, kind, heap)
    if heap + overhead > shape.max_gb * 1024:
        yield (
            f"{memory} is {heap} MB, and {overhead} MB overhead are added, but a worker with {cores} cores has at most "
            f"{shape.max_gb * 1024} MB"
        )
