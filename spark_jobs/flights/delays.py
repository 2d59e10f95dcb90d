"""The delay statistics, each a function from DataFrames to a small, ordered DataFrame.

Means and 95th percentiles (linear interpolation) are in minutes over the flights that have a value; null where none
has. `flights` counts cancelled ones too.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .tables import first_per

ROUTE_MINIMUM = 365  # flights in the data; fewer say little about a route
WORST_ROUTES = 20
HOUR = ("origin", "year", "month", "day", "hour")
USED = (*HOUR, "carrier", "dest", "cancelled", "dep_delay", "arr_delay")  # of the clean flights
MEASURES = ("flights", "cancelled", "mean_dep_delay", "mean_arr_delay", "p95_arr_delay")


def by_carrier(flights: DataFrame, airlines: DataFrame) -> DataFrame:
    """Delays of each airline, with its name (null if `airlines` does not list it)."""
    names = first_per(airlines, "carrier").select("carrier", "name")
    table = summarise(flights, "carrier").join(names, "carrier", "left")
    return table.select("carrier", "name", *MEASURES).orderBy("carrier")


def by_origin_month(flights: DataFrame) -> DataFrame:
    """Delays by airport of departure and month."""
    return summarise(flights, "origin", "month").orderBy("origin", "month")


def by_hour(flights: DataFrame) -> DataFrame:
    """Delays by scheduled hour of departure."""
    return summarise(flights, "hour").orderBy("hour")


def by_weather(flights: DataFrame) -> DataFrame:
    """Delays by `weather` (see `with_weather`)."""
    return summarise(flights, "weather").orderBy("weather")


def worst_routes(flights: DataFrame, airports: DataFrame) -> DataFrame:
    """The routes with the highest mean arrival delay, among those with enough flights, worst first."""
    names = first_per(airports, "faa").select(F.col("faa").alias("dest"), F.col("name").alias("dest_name"))
    routes = summarise(flights, "origin", "dest").where(F.col("flights") >= ROUTE_MINIMUM)
    table = routes.join(names, "dest", "left").select("origin", "dest", "dest_name", *MEASURES)
    return table.orderBy(F.desc_nulls_last("mean_arr_delay"), "origin", "dest").limit(WORST_ROUTES)


def with_weather(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Add `weather` at the scheduled hour and airport of departure.

    `wet` if any precipitation was measured, `dry` if none was, `unknown` where nothing was measured: no weather row for
    that hour, or one without `precip`. Of several rows for one hour (clocks going back) the first counts.
    """
    measured = first_per(weather, *HOUR).select(*HOUR, "precip")
    precip = F.col("precip")
    condition = F.when(precip > 0, "wet").when(precip <= 0, "dry").otherwise("unknown")
    return flights.join(F.broadcast(measured), [*HOUR], "left").withColumn("weather", condition)


def counts(flights: DataFrame, key: str) -> DataFrame:
    """What adds up: of each group how many flights had which arrival delay, and all that means over several sets need.

    A percentile of two airports does not follow from their percentiles. From how often each has which delay it does.
    """
    departure = F.col("dep_delay")
    by_delay = flights.groupBy(F.col(key).alias("group"), "arr_delay").agg(
        F.count("*").alias("flights"),
        F.count_if("cancelled").alias("cancelled"),
        F.count(departure).alias("departed"),
        F.sum(departure).alias("dep_delay"),
    )
    delays = F.collect_list(
        F.when(F.col("arr_delay").isNotNull(), F.array("arr_delay", F.col("flights").cast("double")))
    )
    table = by_delay.groupBy("group").agg(
        F.sum("flights").alias("flights"),
        F.sum("cancelled").alias("cancelled"),
        F.sum("departed").alias("departed"),
        F.coalesce(F.sum("dep_delay"), F.lit(0.0)).alias("dep_delay"),
        F.sort_array(delays).alias("arr_delays"),
    )
    return table.orderBy("group")


def summarise(flights: DataFrame, *keys: str) -> DataFrame:
    """The `MEASURES` of each group."""
    return flights.groupBy(*keys).agg(
        F.count("*").alias("flights"),
        F.count_if("cancelled").alias("cancelled"),
        F.avg("dep_delay").alias("mean_dep_delay"),
        F.avg("arr_delay").alias("mean_arr_delay"),
        F.percentile("arr_delay", 0.95).alias("p95_arr_delay"),
    )
