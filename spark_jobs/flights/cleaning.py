"""The job `clean-flights`: from a CSV file as it came to typed, deduplicated Parquet."""

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
    - `rows_in`: rows of the source file, `duplicates`: identical rows left out,
    - `cancelled`: flights that never departed,
    - `origins`: the airports that flights leave from, in alphabetical order.

    Raises:
        ValueError: if the file lacks a column or holds no flight.
    """
    raw = read_table(spark, payload["flights"], FLIGHTS)
    rows_in = raw.count()
    if rows_in == 0:
        raise ValueError(f"{payload['flights']} holds no flights, only a header")

    # A folder of its own for each run: should two runs ever overlap, neither touches the other's files.
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
    """Every distinct row once, with `cancelled` true for flights that never departed; a month is in one partition.

    Equal rows are of one month, so the shuffle that gives each month one file is all that the search for them needs.
    """
    return raw.repartition("month").dropDuplicates().withColumn("cancelled", F.col("dep_time").isNull())
