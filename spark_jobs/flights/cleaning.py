"""The job `clean-flights`: converts a CSV file to typed Parquet without duplicates."""

from typing import Any
from urllib.parse import quote

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from asya_spark import context, data

from .tables import FLIGHTS, read_table

COPIES = "_copies"  # of equal rows in the source


def clean_flights(spark: SparkSession, payload: dict[str, Any]) -> dict[str, Any]:
    """Write the clean flights, partitioned by month.

    Adds to the payload:

    - `clean`: the reference of that Parquet folder,
    - `rows_in`: rows of the source file, `duplicates`: identical rows removed,
    - `cancelled`: flights that never departed,
    - `origins`: the airports that flights leave from, in alphabetical order.

    Raises:
        ValueError: if the file lacks a column or has no flight.
        PySparkException: if a row does not fit.
    """
    # Each run writes to its own folder, so runs that overlap cannot touch each other's files.
    run = spark.sparkContext.applicationId
    clean = f"clean/{quote(context().id, safe='')}/{run}/flights"
    written = Observation()
    flights = cleaned(read_table(spark, payload["flights"], FLIGHTS)).observe(written, *figures())
    flights.drop(COPIES).write.partitionBy("month").parquet(data.uri(clean, write=True), mode="overwrite")

    found = written.get
    if not found["rows_in"]:
        raise ValueError(f"{payload['flights']} has a header but no flights")
    nameless = [None] if found["nameless"] else []
    return {
        **payload,
        "clean": clean,
        "rows_in": found["rows_in"],
        "duplicates": found["rows_in"] - found["flights"],
        "cancelled": found["cancelled"],
        "origins": [*nameless, *sorted(found["origins"])],
    }


def cleaned(raw: DataFrame) -> DataFrame:
    """Remove duplicate rows, counting them in `COPIES`, and mark flights that never departed as `cancelled`.

    Each month is one partition. Equal rows belong to one month, so one shuffle by month serves both the duplicates and
    the files.
    """
    unique = raw.repartition("month").groupBy(*raw.columns).agg(F.count("*").alias(COPIES))
    return unique.withColumn("cancelled", F.col("dep_time").isNull())


def figures() -> list[Column]:
    """Return what Spark counts while it writes the clean flights, without another pass over them.

    All are counts of the last stage, also those of the source: Spark may run a task of an earlier stage again, and would
    count its rows twice.
    """
    return [
        F.sum(COPIES).alias("rows_in"),
        F.count("*").alias("flights"),
        F.count_if("cancelled").alias("cancelled"),
        F.count_if(F.col("origin").isNull()).alias("nameless"),
        F.collect_set("origin").alias("origins"),
    ]
