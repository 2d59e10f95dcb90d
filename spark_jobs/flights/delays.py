"""Computes delays by airline, month, hour, route and weather, for each airport.

Means and 95th percentiles (linear interpolation) are in minutes over the flights with a value; null if no flight has
one. `flights` includes canceled flights.

One query computes everything. It first counts the flights of each group and arrival delay: a few thousand rows, from which
all figures follow.
"""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .tables import first_per

ROUTE_MINIMUM = 365  # flights in the data; fewer are not significant
WORST_ROUTES = 20
HOUR = ["origin", "year", "month", "day", "hour"]
USED = [*HOUR, "carrier", "dest", "cancelled", "dep_delay", "arr_delay"]  # columns of the clean flights
GROUPS = ["carrier", "month", "hour", "dest", "weather"]  # the flights of an airport are grouped by each of them
MEASURES = ["flights", "cancelled", "mean_dep_delay", "mean_arr_delay", "p95_arr_delay"]
COUNTS = ["flights", "cancelled", "departed", "dep_delay", "arr_delays"]


def with_weather(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Add the column `weather` for the airport and the scheduled hour of departure.

    `wet` means measured precipitation, `dry` a measurement of zero. `unknown` means no measurement: no weather row for
    that hour, or a row without `precip`. Of several rows for one hour (end of daylight saving) the first counts.
    """
    precip = F.col("precip")
    condition = F.when(precip > 0, "wet").when(precip <= 0, "dry").otherwise("unknown")
    return flights.join(first_per(weather, HOUR, "precip"), HOUR, "left").withColumn("weather", condition)


def by_airport(flights: DataFrame, airlines: DataFrame, airports: DataFrame) -> DataFrame:
    """Return one row for each airport that flights leave from: `origin`, `statistics` and `counts`.

    `counts` can be merged. The percentile of two airports does not follow from their percentiles, but it follows from
    their delay counts.

    Args:
        airlines, airports: names by `carrier` and by `faa`; an unlisted code has the name null.
    """
    destinations = airports.select(F.col("faa").alias("dest"), F.col("name").alias("dest_name"))
    groups = measured(counted(flights)).join(airlines, "carrier", "left").join(destinations, "dest", "left")
    statistics = F.struct(
        rows("carrier", ["carrier", "name", *MEASURES]).alias("by_carrier"),
        rows("month", ["origin", "month", *MEASURES]).alias("by_origin_month"),
        rows("hour", ["hour", *MEASURES]).alias("by_hour"),
        worst_routes().alias("worst_routes"),
        rows("weather", ["weather", *MEASURES]).alias("weather"),
    )
    counts = F.struct(*(counts_by(group).alias(group) for group in ("carrier", "hour", "weather")))
    return groups.groupBy("origin").agg(statistics.alias("statistics"), counts.alias("counts"))


def counted(flights: DataFrame) -> DataFrame:
    """Count the flights of each group and arrival delay. `by` is the group that a row belongs to."""
    sets = [["origin", "arr_delay", group] for group in GROUPS]
    by = F.coalesce(*(F.when(F.grouping(group) == 0, group) for group in GROUPS))
    return flights.groupingSets(sets, "origin", "arr_delay", *GROUPS).agg(
        by.alias("by"),
        F.count("*").alias("flights"),
        F.count_if("cancelled").alias("cancelled"),
        F.count("dep_delay").alias("departed"),
        F.sum("dep_delay").alias("dep_delay"),
    )


def measured(delays: DataFrame) -> DataFrame:
    """Compute the measures and the counts of each group from its flights per arrival delay."""
    delay, flights = F.col("arr_delay"), F.col("flights")
    arrived = F.sum(F.when(delay.isNotNull(), flights))
    return (
        delays.groupBy("by", "origin", *GROUPS)
        .agg(
            F.sum("flights").alias("flights"),
            F.sum("cancelled").alias("cancelled"),
            F.sum("departed").alias("departed"),
            F.coalesce(F.sum("dep_delay"), F.lit(0.0)).alias("dep_delay"),
            F.try_divide(F.sum(delay * flights), arrived).alias("mean_arr_delay"),
            F.percentile(delay, 0.95, flights).alias("p95_arr_delay"),
            F.sort_array(F.collect_list(F.when(delay.isNotNull(), F.array(delay, flights.cast("double"))))).alias(
                "arr_delays"
            ),
        )
        .withColumn("mean_dep_delay", F.try_divide("dep_delay", "departed"))
    )


def rows(group: str, columns: Iterable[str]) -> Column:
    """Collect the rows of one group, sorted by their first columns, null first."""
    return F.sort_array(F.collect_list(F.when(F.col("by") == group, F.struct(*columns))))


def counts_by(group: str) -> Column:
    """Collect the mergeable counts of one group."""
    row = F.struct(F.col(group).alias("group"), *COUNTS)
    return F.sort_array(F.collect_list(F.when(F.col("by") == group, row)))


def worst_routes() -> Column:
    """Collect the routes with the longest mean arrival delay, worst first. Routes with few flights are left out.

    Routes without a delay are last. Routes with equal delays are in the order of their airports.
    """
    delay = F.col("mean_arr_delay")
    shown = F.struct("origin", "dest", "dest_name", *MEASURES).alias("route")
    counts = (F.col("by") == "dest") & (F.col("flights") >= ROUTE_MINIMUM)
    routes = F.collect_list(
        F.when(counts, F.struct(delay.isNull().alias("last"), (-delay).alias("order"), "dest", shown))
    )
    return F.slice(F.sort_array(routes), 1, WORST_ROUTES)["route"]
