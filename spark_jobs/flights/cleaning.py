"""The job `clean-flights`: converts a CSV file to typed Parquet without duplicates."""

from typing import Any
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from asya_spark import context, data

from .tables import FLIGHTS, read_table


def clean_flights(spark: SparkSession, payload: dict[str, Any]) -> dict[str, Any]:
    """Write the clean flights, partitioned by month.

    Adds to the payload:

    - `clean`: the reference of that Parquet folder,
    - `rows_in`: rows of the source file, `duplicates`: identical rows removed,
    - `cancelled`: flights that never departed,
    - `origins`: the airports that flights leave from, in alphabetical order.

    Raises:
        ValueError: if the file lacks a column or has no flight.
    """
    raw = read_table(spark, payload["flights"], FLIGHTS)
    rows_in = raw.count()
    if rows_in == 0:
        raise ValueError(f"{payload['flights']} has a header but no flights")

    # Each run writes to its own folder, so runs that overlap cannot touch each other's files.
    run = spark.sparkContext.applicationId
    clean = f"clean/{quote(context().id, safe='')}/{run}/flights"
    cleaned(raw).write.partitionBy("month").parquet(data.uri(clean), mode="overwrite")

    flights = spark.read.parquet(data.uri(clean))
    by_origin = flights.groupBy("origin").agg(F.count("*").alias("flights"), F.count_if("cancelled").alias("cancelled"))
    airports = by_origin.orderBy("origin").collect()
    return {
        **payload,
        "clean": clean,
        "rows_in": rows_in,
        "duplicates": rows_in - sum(row.flights for row in airports),
        "cancelled": sum(row.cancelled for row in airports),
        "origins": [row.origin for row in airports],
    }


def cleaned(raw: DataFrame) -> DataFrame:
    """Remove duplicate rows, and mark flights that never departed as `cancelled`. Each month is one partition.

    Equal rows belong to one month, so one shuffle by month serves both the duplicates and the files.
    """
    return raw.repartition("month").dropDuplicates().withColumn("cancelled", F.col("dep_time").isNull())
