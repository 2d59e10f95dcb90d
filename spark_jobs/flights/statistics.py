"""The job `delay-statistics`: computes delays by airline, month, hour, route and weather."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from asya_spark import data

from .delays import USED, counts, statistics, with_weather
from .tables import AIRLINES, AIRPORTS, WEATHER, first_per, read_table


def delay_statistics(spark: SparkSession, payload: dict[str, Any]) -> dict[str, Any]:
    """Compute the statistics of the flights out of the payload's `airport`, or of all flights if it names none.

    Adds to the payload:

    - `name`: the name of the airport,
    - `statistics`: a list of rows per grouping, in a fixed order, delays in minutes,
    - `counts`: the counts that statistics over several airports need.
    """
    airlines = names(read_table(spark, payload["airlines"], AIRLINES), "carrier")
    airports = names(read_table(spark, payload["airports"], AIRPORTS), "faa")
    weather = read_table(spark, payload["weather"], WEATHER)
    clean = spark.read.parquet(data.uri(payload["clean"])).select(*USED)
    if "airport" in payload:
        clean = clean.where(F.col("origin").eqNullSafe(F.lit(payload["airport"])))
    flights = with_weather(clean, weather).cache()
    try:
        return {
            **payload,
            "name": airports.get(payload.get("airport")),
            "statistics": statistics(flights, airlines, airports),
            "counts": counts(flights),
        }
    finally:
        flights.unpersist()


def names(table: DataFrame, key: str) -> dict[str | None, str | None]:
    """Return the names of a small table by code. Of several rows for one code the first counts."""
    return {row[key]: row["name"] for row in first_per(table, key).select(key, "name").collect()}
