"""The overhead of `asya_spark`: a transformation as a plain PySpark script and as a job of a heavy actor, in turns."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody writes Spark so

from bench.job_run import run_job, session
from bench.side_by_side import Measurement

if TYPE_CHECKING:
    from collections.abc import Mapping

ROWS = 400_000_000
TURNS = 5
PLAIN, ACTOR = "plain PySpark script", "asya_spark"
GOAL = 1.10


def transform(spark: SparkSession, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Read, group and write for a few seconds, like a small real job."""
    rows = spark.range(int(payload["rows"])).withColumn("group", F.col("id") % 1000)
    groups = rows.groupBy("group").agg(F.sum("id").alias("sum"), F.avg(F.sqrt("id")).alias("mean"))
    groups.orderBy("group").write.mode("overwrite").parquet(str(payload["out"]))
    return {**payload, "groups": spark.read.parquet(str(payload["out"])).count()}


def run_all() -> list[tuple[str, Measurement, float]]:
    """Measure both in turns; return name, measurement and ratio to the plain script."""
    spark = session()
    plain: list[float] = []
    actor: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS + 1):
            payload = {"rows": ROWS, "out": f"{folder}/out-{turn}"}
            job = f"{__name__}.transform"
            seconds = _plain(spark, payload), run_job(spark, job, [payload], Path(folder) / str(turn))
            if turn:  # the first turn warms up the JVM
                plain.append(seconds[0])
                actor.append(seconds[1])
    spark.stop()
    base, measurement = Measurement(tuple(plain)), Measurement(tuple(actor))
    return [(PLAIN, base, 1.0), (ACTOR, measurement, measurement.ratio(base))]


def _plain(spark: SparkSession, payload: Mapping[str, Any]) -> float:
    began = perf_counter()
    transform(spark, payload)
    return perf_counter() - began


if __name__ == "__main__":
    for name, measurement, ratio in importlib.import_module("bench.spark_overhead").run_all():
        print(f"{name}: {measurement.seconds:.3f} s, {ratio:.3f}")
