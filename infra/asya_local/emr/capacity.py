"""Computes the size of a job run and what of it fits into the application: first its driver, then its executors. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# The defaults of EMR Serverless for a Spark job.
DEFAULT_CORES = 4
DEFAULT_MEMORY_GB = 14.0
DEFAULT_DISK_GB = 20.0
DEFAULT_EXECUTORS = 3

_UNITS_TO_GB = {"k": 1 / 1024**2, "m": 1 / 1024, "g": 1.0, "t": 1024.0}


@dataclass(frozen=True)
class Resources:
    """An amount of vCPU, memory and disk."""

    vcpu: float
    memory_gb: float
    disk_gb: float

    def plus(self, other: Resources, times: int = 1) -> Resources:
        """Return the sum with so many of the others."""
        return Resources(
            self.vcpu + times * other.vcpu,
            self.memory_gb + times * other.memory_gb,
            self.disk_gb + times * other.disk_gb,
        )


@dataclass(frozen=True)
class Size:
    """The workers of a run at its start: its driver and its initial executors."""

    driver: Resources
    executor: Resources
    executors: int

    def with_executors(self, executors: int) -> Resources:
        """Return the resources of the driver and so many executors."""
        return self.driver.plus(self.executor, executors)


@dataclass(frozen=True)
class Limits:
    """The capacity of an application."""

    max_vcpu: float
    max_memory_gb: float
    max_concurrent_runs: int


def size_of(conf: Mapping[str, str]) -> Size:
    """Return the size of a run from its Spark configuration."""
    return Size(_worker(conf, "driver"), _worker(conf, "executor"), initial_executors(conf))


def _worker(conf: Mapping[str, str], kind: str) -> Resources:
    return Resources(
        int(conf.get(f"spark.{kind}.cores", DEFAULT_CORES)),
        gigabytes(conf.get(f"spark.{kind}.memory"), DEFAULT_MEMORY_GB),
        gigabytes(conf.get(f"spark.emr-serverless.{kind}.disk"), DEFAULT_DISK_GB),
    )


def initial_executors(conf: Mapping[str, str]) -> int:
    """Return the executors that a run begins with: the largest number that its settings name."""
    if not allocates_dynamically(conf):
        return int(conf.get("spark.executor.instances", DEFAULT_EXECUTORS))
    keys = ("spark.dynamicAllocation.initialExecutors", "spark.executor.instances")
    named = [int(conf[key]) for key in keys if key in conf] or [DEFAULT_EXECUTORS]
    return max(*named, int(conf.get("spark.dynamicAllocation.minExecutors", 0)))


def allocates_dynamically(conf: Mapping[str, str]) -> bool:
    """Return whether the number of executors follows the work, which is the default."""
    return conf.get("spark.dynamicAllocation.enabled", "true").lower() != "false"


def gigabytes(text: str | None, default: float) -> float:
    """Convert a memory size of Spark (`2g`, `512m`, `2048` for MB) to GB; return `default` if it is not one."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", (text or "").lower())
    if match is None:
        return default
    return float(match[1]) * _UNITS_TO_GB[match[2] or "m"]


def driver_fits(size: Size, used: Collection[Resources], limits: Limits) -> bool:
    """Return whether a run may leave the queue: EMR Serverless asks only for room for its driver.

    Args:
        size: the size of the run.
        used: the resources of each active run.
        limits: the capacity of the application.
    """
    if len(used) >= limits.max_concurrent_runs:
        return False
    return not used or _fits(_sum(used).plus(size.driver), limits)


def executors_that_fit(size: Size, used: Collection[Resources], limits: Limits) -> int:
    """Return how many initial executors a run gets beside the active runs, its own driver among them.

    It waits for all of them, unless it is alone: then it takes fewer.
    """
    total = _sum(used)
    if _fits(total.plus(size.executor, size.executors), limits):
        return size.executors
    if len(used) > 1:
        return 0
    return next((count for count in range(size.executors, 0, -1) if _fits(total.plus(size.executor, count), limits)), 0)


def _sum(used: Collection[Resources]) -> Resources:
    total = Resources(0, 0, 0)
    for resources in used:
        total = total.plus(resources)
    return total


def _fits(total: Resources, limits: Limits) -> bool:
    return total.vcpu <= limits.max_vcpu and total.memory_gb <= limits.max_memory_gb
