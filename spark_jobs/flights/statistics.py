"""The job `delay-statistics`: who is late, where, when, and does rain matter?"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from asya_spark import data

from .delays import USED, by_carrier, by_hour, by_origin_month, by_weather, with_weather, worst_routes
from .tables import AIRLINES, AIRPORTS, WEATHER, read_table

Row = dict[str, Any]


def delay_statistics(spark: SparkSession, payload: dict[str, Any]) -> dict[str, Any]:
    """Add `statistics` to the payload: for each kind a list of rows, in a fixed order, delays in minutes."""
    airlines = read_table(spark, payload["airlines"], AIRLINES)
    airports = read_table(spark, payload["airports"], AIRPORTS)
    weather = read_table(spark, payload["weather"], WEATHER)
    clean = spark.read.parquet(data.uri(payload["clean"])).select(*USED)
    flights = with_weather(clean, weather).cache()
    try:
        statistics = {
            "by_carrier": rows(by_carrier(flights, airlines)),
            "by_origin_month": rows(by_origin_month(flights)),
            "by_hour": rows(by_hour(flights)),
            "worst_routes": rows(worst_routes(flights, airports)),
            "weather": rows(by_weather(flights)),
        }
    finally:
        flights.unpersist()
    return {**payload, "statistics": statistics}


def rows(table: DataFrame) -> list[Row]:
    """A small table as JSON objects."""
    return [row.asDict() for row in table.collect()]
