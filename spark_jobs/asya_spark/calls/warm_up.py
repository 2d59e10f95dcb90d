"""Waits for the first executor of a run before any envelope is at work (`protocol §10.warm-up`)."""

from typing import Any

from pyspark.sql import SparkSession


def warm_up(spark: SparkSession) -> None:
    """Runs one trivial task, which no time limit covers and no envelope is charged with.

    Raises:
        py4j.protocol.Py4JError: if Spark gives up; the run fails before any envelope was at work.
    """
    context, jvm = spark.sparkContext, spark._jvm
    one: Any = jvm.java.util.Collections.singletonList(1)  # type: ignore[union-attr]
    context.setJobDescription("wait for the first executor")
    try:
        context._jsc.parallelize(one, 1).count()
    finally:
        context.setJobDescription(None)  # type: ignore[arg-type]
