"""A job that writes a table and is killed at it, with its JVM, by SIGKILL. A run of the stand-in gets this file as its code."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from asya_spark import data
from asya_spark.context import context
from asya_spark.files import HadoopFiles
from asya_spark.tables import append_once, replace_once
from asya_spark.tables.commits import S3Commits

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = (
    *((S3Commits, name) for name in ("read", "create", "names")),
    (DataFrameWriter, "parquet"),
    *((HadoopFiles, name) for name in ("tree", "exists", "rename", "remove_folder")),
)
"""All calls of a write that read or change the table."""


def write(spark: SparkSession, payload: dict[str, Any]) -> dict[str, Any]:
    """Writes `rows_of` this attempt for `day`, each in a file of its own. The attempt ends as `deaths` says, or by a return.

    A death is `{"step": n, "after": bool}`, at the n-th call of `STEPS`, or `{"seconds": n}` after the start. If the write ends
    before, the process dies at once, before the run knows of it.
    """
    attempt, deaths = context().attempt, payload["deaths"]
    death = deaths[attempt - 1] if attempt <= len(deaths) else None
    rows = [(context().id, attempt, number, payload["day"]) for number in range(rows_of(attempt))]
    rdd = spark.sparkContext.parallelize(rows, len(rows))
    frame = spark.createDataFrame(rdd, "id STRING, attempt INT, n INT, day STRING")
    if death is not None:
        _expect(death)
    WAYS[payload["way"]](frame, payload["table"], payload["day"])
    if death is not None:
        die()
    return payload


def _append(frame: DataFrame, table: str, day: str) -> None:
    del day
    append_once(frame, table)


def _replace(frame: DataFrame, table: str, day: str) -> None:
    replace_once(frame, table, where={"day": day})


def _replace_versioned(frame: DataFrame, table: str, day: str) -> None:
    replace_once(frame, table, where={"day": day}, layout="versioned")


def _plain_append(frame: DataFrame, table: str, day: str) -> None:
    del day
    frame.write.mode("append").partitionBy("day").parquet(data.uri(table, write=True))


def _plain_overwrite(frame: DataFrame, table: str, day: str) -> None:
    del day
    writer = frame.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy("day")
    writer.parquet(data.uri(table, write=True))


WAYS = {
    "append": _append,
    "replace": _replace,
    "replace-versioned": _replace_versioned,
    "plain-append": _plain_append,
    "plain-overwrite": _plain_overwrite,
}


def rows_of(attempt: int) -> int:
    """The number of rows differs between attempts that follow each other, so a mixture of two shows."""
    return 1 + attempt % 3


def die() -> None:
    """Kills the driver with its JVM; nothing of them runs any more."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _expect(death: dict[str, Any]) -> None:
    if "seconds" in death:
        timer = threading.Timer(death["seconds"], die)
        timer.daemon = True
        timer.start()
        return
    numbers = itertools.count()
    for kind, name in STEPS:
        setattr(kind, name, _dying(getattr(kind, name), numbers, death["step"], after=death["after"]))


def _dying(method: Callable[..., Any], numbers: itertools.count[int], step: int, *, after: bool) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        is_last = next(numbers) == step
        if is_last and not after:
            die()
        result = method(*arguments, **options)
        if is_last:
            die()
        return result

    return call
