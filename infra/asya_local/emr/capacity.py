"""Computes the size of a job run and whether it fits into the application's capacity. Pure."""

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
class Size:
    """The size of a run at its start: its driver and its initial executors."""

    vcpu: float
    memory_gb: float
    disk_gb: float


@dataclass(frozen=True)
class Limits:
    """The capacity of an application."""

    max_vcpu: float
    max_memory_gb: float
    max_concurrent_runs: int


def size_of(conf: Mapping[str, str]) -> Size:
    """Return the size of a run from its Spark configuration."""
    driver_cores = int(conf.get("spark.driver.cores", DEFAULT_CORES))
    executor_cores = int(conf.get("spark.executor.cores", DEFAULT_CORES))
    executors = _initial_executors(conf)
    driver_disk = gigabytes(conf.get("spark.emr-serverless.driver.disk"), DEFAULT_DISK_GB)
    executor_disk = gigabytes(conf.get("spark.emr-serverless.executor.disk"), DEFAULT_DISK_GB)
    return Size(
        driver_cores + executors * executor_cores,
        gigabytes(conf.get("spark.driver.memory"), DEFAULT_MEMORY_GB)
        + executors * gigabytes(conf.get("spark.executor.memory"), DEFAULT_MEMORY_GB),
        driver_disk + executors * executor_disk,
    )


def _initial_executors(conf: Mapping[str, str]) -> int:
    if conf.get("spark.dynamicAllocation.enabled", "true").lower() == "false":
        return int(conf.get("spark.executor.instances", DEFAULT_EXECUTORS))
    keys = ("spark.dynamicAllocation.initialExecutors", "spark.executor.instances")
    initial = next((int(conf[key]) for key in keys if key in conf), DEFAULT_EXECUTORS)
    maximum = int(conf.get("spark.dynamicAllocation.maxExecutors", initial))
    return max(min(initial, maximum), int(conf.get("spark.dynamicAllocation.minExecutors", 0)))


def gigabytes(text: str | None, default: float) -> float:
    """Convert a memory size of Spark (`2g`, `512m`, `2048` for MB) to GB; return `default` if it is not one."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", (text or "").lower())
    if match is None:
        return default
    return float(match[1]) * _UNITS_TO_GB[match[2] or "m"]


def fits(size: Size, active: Collection[Size], limits: Limits) -> bool:
    """Return whether a run may start next to the active runs.

    A run larger than the application starts when it is alone, as EMR Serverless would give it fewer executors.
    """
    if len(active) >= limits.max_concurrent_runs:
        return False
    if not active:
        return True
    vcpu = sum(other.vcpu for other in active) + size.vcpu
    memory = sum(other.memory_gb for other in active) + size.memory_gb
    return vcpu <= limits.max_vcpu and memory <= limits.max_memory_gb
