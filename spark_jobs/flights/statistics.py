"""The job `delay-statistics`: computes delays by airline, month, hour, route and weather."""

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from asya_spark import data

from .delays import USED, by_airport, with_weather
from .tables import AIRLINES, AIRPORTS, WEATHER, first_per, read_table

TABLES = ["clean", "airlines", "airports", "weather"]


def delay_statistics(spark: SparkSession, envelopes: DataFrame) -> DataFrame:
    """Compute the statistics of the flights out of each envelope's `airport`, of all airports in one query.

    Adds to the payload:

    - `name`: the name of the airport,
    - `statistics`: a list of rows per grouping, in a fixed order, delays in minutes,
    - `counts`: the counts that statistics over several airports need.

    The envelopes of a run may come from several data sets. Each data set is one query.
    """
    asked = envelopes.select("id", "payload.*")
    airports: dict[tuple[str, ...], list[str | None]] = {}
    for row in asked.collect():  # a few names for each airport
        airports.setdefault(tuple(row[name] for name in TABLES), []).append(row["airport"])
    return reduce(DataFrame.unionByName, [results(spark, asked, *each) for each in airports.items()])


def results(spark: SparkSession, asked: DataFrame, tables: tuple[str, ...], airports: list[str | None]) -> DataFrame:
    """Return the results of the envelopes that name these tables."""
    clean, *others = tables
    airlines, listed, weather = (
        read_table(spark, name, types) for name, types in zip(others, (AIRLINES, AIRPORTS, WEATHER), strict=True)
    )
    names = first_per(listed, ["faa"], "name")
    flights = spark.read.parquet(data.uri(clean)).select(*USED).where(leaves_from(airports))
    statistics = by_airport(with_weather(flights, weather), first_per(airlines, ["carrier"], "name"), names)

    mine = asked.where(reduce(and_, (F.col(name) == table for name, table in zip(TABLES, tables, strict=True))))
    found = mine.join(F.broadcast(statistics), F.col("airport").eqNullSafe(F.col("origin")), "left")
    named = found.join(names.withColumnRenamed("faa", "airport"), "airport", "left")
    payload = F.struct("airport", *TABLES, "name", "statistics", "counts").alias("payload")
    without = F.concat(F.lit("no flight leaves from "), F.coalesce("airport", F.lit("an airport without a name")))
    return named.select("id", payload, F.when(F.isnull("counts"), without).alias("error"))


def leaves_from(airports: list[str | None]) -> Column:
    """Whether a flight leaves from one of these airports; null is one too."""
    origin = F.col("origin")
    return origin.isin([name for name in airports if name is not None]) | (origin.isNull() & F.lit(None in airports))
