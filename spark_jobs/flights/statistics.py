"""The job `delay-statistics`: who is late, where, when, and does rain matter?"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from asya_spark import data

from .delays import USED, by_carrier, by_hour, by_origin_month, by_weather, counts, with_weather, worst_routes
from .tables import AIRLINES, AIRPORTS, WEATHER, first_per, read_table

Row = dict[str, Any]


def delay_statistics(spark: SparkSession, payload: dict[str, Any]) -> dict[str, Any]:
    """Add to the payload, about the flights out of its `airport` (all flights if it names none)

    - `name`: the airport's,
    - `statistics`: for each kind a list of rows, in a fixed order, delays in minutes,
    - `counts`: what `statistics` over several airports can be computed from.
    """
    airlines = read_table(spark, payload["airlines"], AIRLINES)
    airports = read_table(spark, payload["airports"], AIRPORTS)
    weather = read_table(spark, payload["weather"], WEATHER)
    clean = spark.read.parquet(data.uri(payload["clean"])).select(*USED)
    if "airport" in payload:
        clean = clean.where(F.col("origin").eqNullSafe(F.lit(payload["airport"])))
    flights = with_weather(clean, weather).cache()
    try:
        return {
            **payload,
            "name": name_of(payload.get("airport"), airports),
            "statistics": {
                "by_carrier": rows(by_carrier(flights, airlines)),
                "by_origin_month": rows(by_origin_month(flights)),
                "by_hour": rows(by_hour(flights)),
                "worst_routes": rows(worst_routes(flights, airports)),
                "weather": rows(by_weather(flights)),
            },
            "counts": {key: rows(counts(flights, key)) for key in ("carrier", "hour", "weather")},
        }
    finally:
        flights.unpersist()


def name_of(airport: str | None, airports: DataFrame) -> str | None:
    """An airport's name, null if the table does not list it."""
    row = first_per(airports, "faa").where(F.col("faa") == airport).first()
    return row["name"] if row else None


def rows(table: DataFrame) -> list[Row]:
    """A small table as JSON objects."""
    return [row.asDict() for row in table.collect()]
