"""Envelopes per second at `parallel` 1, 4 and 8, on two cores: `python -m bench.parallel_jobs`, in turns.

Each envelope waits for a service for 0.4 s and runs a small Spark job, so the cluster is idle most of the time.
"""

from __future__ import annotations

import importlib
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.job_run import run_job, session
from bench.side_by_side import Measurement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

ENVELOPES = 24
TURNS = 3
LEVELS = (1, 4, 8)
WAIT_SECONDS = 0.4


def look_up(spark: SparkSession, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Wait as for a service, and count a few rows."""
    time.sleep(WAIT_SECONDS)
    return {**payload, "rows": spark.range(1000).repartition(2).count()}


def run_all() -> list[tuple[str, Measurement, float]]:
    """Measure all levels in turns; return name, measurement and ratio to one at a time."""
    spark = session()
    seconds: dict[int, list[float]] = {level: [] for level in LEVELS}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS + 1):
            for level in LEVELS:
                payloads = [{"n": number} for number in range(ENVELOPES)]
                taken = run_job(
                    spark, f"{__name__}.look_up", payloads, Path(folder) / f"{turn}-{level}", parallel=level
                )
                if turn:  # the first turn warms up the JVM
                    seconds[level].append(taken)
    spark.stop()
    base = Measurement(tuple(seconds[1]))
    return [
        (f"parallel: {level}", measurement := Measurement(tuple(seconds[level])), measurement.ratio(base))
        for level in LEVELS
    ]


if __name__ == "__main__":
    for name, measurement, ratio in importlib.import_module("bench.parallel_jobs").run_all():
        print(f"{name}: {measurement.seconds:.2f} s, {ENVELOPES / measurement.seconds:.1f} envelopes/s, {ratio:.2f}")
