"""Merges the statistics of the airports.

Months and routes belong to one airport, so their rows are concatenated. Airlines, hours and weather occur at several airports,
so their means and percentiles are computed from the delay counts of all airports.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]

WORST_ROUTES = 20
MEASURES = ("flights", "cancelled", "mean_dep_delay", "mean_arr_delay", "p95_arr_delay")


def over_all(airports: list[Row]) -> dict[str, list[Row]]:
    """Return the statistics of all airports together, and of each airport in `by_airport`, in the order given.

    Args:
        airports: the result of `delay-statistics` for each airport.
    """
    each = [airport["statistics"] for airport in airports]
    airlines = {row["carrier"]: row["name"] for statistics in each for row in statistics["by_carrier"]}
    return {
        "by_airport": [summary(airport) for airport in airports],
        "by_carrier": [
            {"carrier": row["carrier"], "name": airlines[row["carrier"]], **{name: row[name] for name in MEASURES}}
            for row in merged(airports, "carrier")
        ],
        "by_origin_month": [row for statistics in each for row in statistics["by_origin_month"]],
        "by_hour": merged(airports, "hour"),
        "worst_routes": worst([row for statistics in each for row in statistics["worst_routes"]]),
        "weather": merged(airports, "weather"),
    }


def summary(airport: Row) -> Row:
    """Return the measures of one airport: over all its flights, then by airline, hour and weather."""
    statistics = airport["statistics"]
    return {
        "airport": airport["airport"],
        "name": airport["name"],
        **measures(airport["counts"]["weather"]),
        **{kind: statistics[kind] for kind in ("by_carrier", "by_hour", "weather")},
    }


def merged(airports: list[Row], key: str) -> list[Row]:
    """Return the measures of each carrier, hour or weather over all airports."""
    groups: dict[Any, list[Row]] = {}
    for airport in airports:
        for row in airport["counts"][key]:
            groups.setdefault(row["group"], []).append(row)
    ordered = sorted(groups, key=lambda group: (group is not None, group))
    return [{key: group, **measures(groups[group])} for group in ordered]


def measures(counts: Iterable[Row]) -> Row:
    """Return flights, cancellations, mean delays and the 95th percentile over several groups together."""
    rows = list(counts)
    departed = sum(row["departed"] for row in rows)
    arrivals: Counter[float] = Counter()
    for row in rows:
        for delay, flights in row["arr_delays"]:
            arrivals[delay] += int(flights)
    arrived = arrivals.total()
    return {
        "flights": sum(row["flights"] for row in rows),
        "cancelled": sum(row["cancelled"] for row in rows),
        "mean_dep_delay": math.fsum(row["dep_delay"] for row in rows) / departed if departed else None,
        "mean_arr_delay": math.fsum(delay * flights for delay, flights in arrivals.items()) / arrived
        if arrived
        else None,
        "p95_arr_delay": percentile(arrivals, 0.95) if arrived else None,
    }


def percentile(counts: Counter[float], share: float) -> float:
    """Return a percentile of counted values, interpolated between the two nearest ones."""
    place = share * (counts.total() - 1)
    below, part = int(place), place % 1
    first, second = value_at(counts, below), value_at(counts, below + (part > 0))
    return first + (second - first) * part


def value_at(counts: Counter[float], place: int) -> float:
    """Return the value at a position, from 0, of the sorted values."""
    passed = 0
    for value in sorted(counts):
        passed += counts[value]
        if place < passed:
            return value
    raise IndexError(f"no value at position {place}: there are {passed} values")


def worst(routes: list[Row]) -> list[Row]:
    """Return the worst routes of all airports: each is among the worst of its own airport."""

    def order(row: Row) -> tuple[bool, float, str, str]:
        delay = row["mean_arr_delay"]
        return delay is None, -(delay or 0.0), str(row["origin"]), str(row["dest"])

    return sorted(routes, key=order)[:WORST_ROUTES]
