"""How large a job run is, and whether it fits into what the application may use. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# The shapes EMR Serverless gives a Spark job that says nothing.
DEFAULT_CORES = 4
DEFAULT_MEMORY_GB = 14.0
DEFAULT_DISK_GB = 20.0
DEFAULT_EXECUTORS = 3

_UNITS_TO_GB = {"k": 1 / 1024**2, "m": 1 / 1024, "g": 1.0, "t": 1024.0}


@dataclass(frozen=True)
class Size:
    """What a run asks for at its start: its driver and its first executors."""

    vcpu: float
    memory_gb: float
    disk_gb: float


@dataclass(frozen=True)
class Limits:
    """What an application may use at once."""

    max_vcpu: float
    max_memory_gb: float
    max_concurrent_runs: int


def size_of(conf: Mapping[str, str]) -> Size:
    """The size of a run, from its Spark configuration."""
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
    named = ("spark.dynamicAllocation.initialExecutors", "spark.executor.instances")
    first = next((int(conf[name]) for name in named if name in conf), DEFAULT_EXECUTORS)
    most = int(conf.get("spark.dynamicAllocation.maxExecutors", first))
    return max(min(first, most), int(conf.get("spark.dynamicAllocation.minExecutors", 0)))


def gigabytes(text: str | None, default: float) -> float:
    """A memory size as Spark writes it (`2g`, `512m`, `2048` for MB), in GB; `default` when it says nothing."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", (text or "").lower())
    if match is None:
        return default
    return float(match[1]) * _UNITS_TO_GB[match[2] or "m"]


def fits(wanted: Size, holding: Collection[Size], limits: Limits) -> bool:
    """Whether one more run may start beside those that hold capacity now.

    A run larger than the application itself runs when it is alone: EMR Serverless would give it fewer executors.
    """
    if len(holding) >= limits.max_concurrent_runs:
        return False
    if not holding:
        return True
    vcpu = sum(size.vcpu for size in holding) + wanted.vcpu
    memory = sum(size.memory_gb for size in holding) + wanted.memory_gb
    return vcpu <= limits.max_vcpu and memory <= limits.max_memory_gb
