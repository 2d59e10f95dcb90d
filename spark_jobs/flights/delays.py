"""Computes delays by airline, month, hour, route and weather, as small, ordered lists of rows.

Means and 95th percentiles (linear interpolation) are in minutes over the flights with a value; null if no flight has
one. `flights` includes canceled flights.

One query computes all groupings: the flights fit into memory, so planning a query takes most of the time.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F

from .tables import first_per

Row = dict[str, Any]

ROUTE_MINIMUM = 365  # flights in the data; fewer are not significant
WORST_ROUTES = 20
HOUR = ("origin", "year", "month", "day", "hour")
USED = (*HOUR, "carrier", "dest", "cancelled", "dep_delay", "arr_delay")  # columns of the clean flights
GROUPINGS = (("carrier",), ("origin", "month"), ("hour",), ("origin", "dest"), ("weather",))
COUNTED = (("carrier",), ("hour",), ("weather",))


def with_weather(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Add the column `weather` for the airport and the scheduled hour of departure.

    `wet` means measured precipitation, `dry` a measurement of zero. `unknown` means no measurement: no weather row for
    that hour, or a row without `precip`. Of several rows for one hour (end of daylight saving) the first counts.
    """
    measured = first_per(weather, *HOUR).select(*HOUR, "precip")
    precip = F.col("precip")
    condition = F.when(precip > 0, "wet").when(precip <= 0, "dry").otherwise("unknown")
    return flights.join(F.broadcast(measured), [*HOUR], "left").withColumn("weather", condition)


def statistics(
    flights: DataFrame, airlines: Mapping[str | None, str | None], airports: Mapping[str | None, str | None]
) -> dict[str, list[Row]]:
    """Return flights and delays by airline, by airport and month, by hour, for the worst routes, and by weather.

    Args:
        airlines, airports: names by code; an unlisted code has the name null.
    """
    found = summarise(flights)
    carriers, routes = found["carrier",], found["origin", "dest"]
    return {
        "by_carrier": [{"carrier": row["carrier"], "name": airlines.get(row["carrier"]), **row} for row in carriers],
        "by_origin_month": found["origin", "month"],
        "by_hour": found["hour",],
        "worst_routes": [
            {"origin": row["origin"], "dest": row["dest"], "dest_name": airports.get(row["dest"]), **row}
            for row in worst(routes)
        ],
        "weather": found["weather",],
    }


def worst(routes: Iterable[Row]) -> list[Row]:
    """Return the routes with the longest mean arrival delay, worst first. Routes with few flights are left out."""

    def order(row: Row) -> tuple[bool, float]:
        delay = row["mean_arr_delay"]
        return delay is None, -(delay or 0.0)

    # The sort is stable: routes with equal delays stay in the order of their airports.
    return sorted((row for row in routes if row["flights"] >= ROUTE_MINIMUM), key=order)[:WORST_ROUTES]


def summarise(flights: DataFrame) -> dict[tuple[str, ...], list[Row]]:
    """Return flights and delays in each group of each of `GROUPINGS`."""
    table = grouped(flights, GROUPINGS).agg(
        F.grouping_id().alias("grouping"),
        F.count("*").alias("flights"),
        F.count_if("cancelled").alias("cancelled"),
        F.avg("dep_delay").alias("mean_dep_delay"),
        F.avg("arr_delay").alias("mean_arr_delay"),
        F.percentile("arr_delay", 0.95).alias("p95_arr_delay"),
    )
    return rows_of(table, GROUPINGS)


def counts(flights: DataFrame) -> dict[str, list[Row]]:
    """Return mergeable counts by airline, hour and weather: flights per arrival delay, and the sums for means.

    The percentile of two airports does not follow from their percentiles, but it follows from their delay counts.
    """
    departure = F.col("dep_delay")
    by_delay = grouped(flights, [("arr_delay", *grouping) for grouping in COUNTED]).agg(
        F.grouping_id().alias("grouping"),
        F.count("*").alias("flights"),
        F.count_if("cancelled").alias("cancelled"),
        F.count(departure).alias("departed"),
        F.sum(departure).alias("dep_delay"),
    )
    delays = F.collect_list(
        F.when(F.col("arr_delay").isNotNull(), F.array("arr_delay", F.col("flights").cast("double")))
    )
    table = by_delay.groupBy("grouping", *keys_of(COUNTED)).agg(
        F.sum("flights").alias("flights"),
        F.sum("cancelled").alias("cancelled"),
        F.sum("departed").alias("departed"),
        F.coalesce(F.sum("dep_delay"), F.lit(0.0)).alias("dep_delay"),
        F.sort_array(delays).alias("arr_delays"),
    )
    found = rows_of(table, COUNTED)
    return {key: [{"group": row.pop(key), **row} for row in found[key,]] for (key,) in COUNTED}


def keys_of(groupings: Iterable[Sequence[str]]) -> list[str]:
    """Return all columns of these groupings, each once."""
    return list(dict.fromkeys(key for grouping in groupings for key in grouping))


def grouped(flights: DataFrame, groupings: Sequence[Sequence[str]]) -> GroupedData:
    """Group the flights in several ways at once; `grouping_id` identifies the grouping of a row."""
    return flights.groupingSets([list(grouping) for grouping in groupings], *keys_of(groupings))


def rows_of(table: DataFrame, groupings: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], list[Row]]:
    """Return the rows of each grouping, sorted by its keys, null first. `grouping` is the number of the grouping."""
    keys = keys_of(groupings)
    # One bit per key, the first key highest; a set bit means that the grouping lacks the key.
    numbers = {
        sum((key not in grouping) << place for place, key in enumerate(reversed(keys))): grouping
        for grouping in groupings
    }
    found: dict[tuple[str, ...], list[Row]] = {grouping: [] for grouping in groupings}
    for row in table.collect():
        grouping = numbers[row["grouping"]]
        left_out = {"grouping", *keys} - set(grouping)
        found[grouping].append({name: value for name, value in row.asDict().items() if name not in left_out})
    for grouping, rows in found.items():
        rows.sort(key=lambda row: [(row[key] is not None, row[key]) for key in grouping])
    return found
