"""Computes the flight-delay statistics with pandas, to check the result of the pipeline.

This module shares no code with the Spark jobs.
"""

import math
from pathlib import Path
from typing import Any

import pandas as pd

RELATIVE_TOLERANCE = 1e-9
HOUR = ["origin", "year", "month", "day", "hour"]


def assert_agrees(result: dict[str, Any], folder: Path) -> None:
    """Compares the final payload with the statistics of the files that it references.

    `folder` stands for the data prefix. The AssertionError lists the first 20 differences.
    """
    tables = {table: result[table] for table in ("flights", "airlines", "airports", "weather")}
    expected = compute_result(tables, folder)
    lines = differences({key: result.get(key) for key in expected}, expected)
    assert not lines, f"{len(lines)} difference(s) from pandas:\n" + "\n".join(lines[:20])


def compute_result(payload: dict[str, str], folder: Path) -> dict[str, Any]:
    """Computes `rows_in`, `duplicates`, `cancelled` and `statistics` from the files that the payload references."""
    raw = pd.read_csv(folder / payload["flights"])
    airlines, airports = pd.read_csv(folder / payload["airlines"]), pd.read_csv(folder / payload["airports"])
    flights = join_weather(raw.drop_duplicates(), pd.read_csv(folder / payload["weather"]))
    routes = measure_delays(flights, ["origin", "dest"])
    routes = routes[routes["flights"] >= 365]
    worst = routes.sort_values(["mean_arr_delay", "origin", "dest"], ascending=[False, True, True])[:20]
    dest_names = airports.drop_duplicates("faa").rename(columns={"faa": "dest", "name": "dest_name"})
    return {
        "rows_in": len(raw),
        "duplicates": len(raw) - len(flights),
        "cancelled": int(flights["dep_time"].isna().sum()),
        "statistics": {
            "by_airport": [by_airport(out, airlines, airports) for _, out in flights.groupby("origin", sort=True)],
            "by_carrier": by_carrier(flights, airlines),
            "by_origin_month": records(measure_delays(flights, ["origin", "month"])),
            "by_hour": records(measure_delays(flights, ["hour"])),
            "worst_routes": records(worst.merge(dest_names[["dest", "dest_name"]], on="dest", how="left")),
            "weather": records(measure_delays(flights, ["weather"])),
        },
    }


def by_airport(flights: pd.DataFrame, airlines: pd.DataFrame, airports: pd.DataFrame) -> dict[str, Any]:
    """The row of one airport; `flights` are its departures."""
    [row] = records(measure_delays(flights, ["origin"]))
    airport = row.pop("origin")
    names = airports.loc[airports["faa"] == airport, "name"]
    return {
        "airport": airport,
        "name": None if names.empty else names.iloc[0],
        **row,
        "by_carrier": by_carrier(flights, airlines),
        "by_hour": records(measure_delays(flights, ["hour"])),
        "weather": records(measure_delays(flights, ["weather"])),
    }


def by_carrier(flights: pd.DataFrame, airlines: pd.DataFrame) -> list[dict[str, Any]]:
    """One row per airline, with its name."""
    names = airlines.drop_duplicates("carrier")
    return records(measure_delays(flights, ["carrier"]).merge(names, on="carrier", how="left"))


def join_weather(flights: pd.DataFrame, weather: pd.DataFrame) -> pd.DataFrame:
    """Adds the weather of the hour: wet, dry, or unknown without a record of precipitation."""
    joined = flights.merge(weather.drop_duplicates(HOUR)[[*HOUR, "precip"]], on=HOUR, how="left")
    joined["weather"] = "unknown"
    joined.loc[joined["precip"].notna(), "weather"] = "dry"
    joined.loc[joined["precip"] > 0, "weather"] = "wet"
    return joined


def measure_delays(flights: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Measures the delays of each group; one row per group, ordered by its keys."""
    groups = flights.groupby(keys, sort=True, dropna=False)
    return pd.DataFrame(
        {
            "flights": groups.size(),
            "cancelled": groups["dep_time"].agg(lambda times: int(times.isna().sum())),
            "mean_dep_delay": groups["dep_delay"].mean(),
            "mean_arr_delay": groups["arr_delay"].mean(),
            "p95_arr_delay": groups["arr_delay"].quantile(0.95),
        }
    ).reset_index()


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Converts rows to JSON objects; NaN becomes null."""
    return [
        {str(key): None if pd.isna(value) else value for key, value in row.items()} for row in table.to_dict("records")
    ]


def differences(actual: Any, expected: Any, path: str = "") -> list[str]:
    """Lists the paths at which two JSON values differ; numbers have a relative tolerance of 1e-9."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = sorted(expected.keys() | actual.keys())
        absent = "(absent)"
        return [
            line
            for key in keys
            for line in differences(actual.get(key, absent), expected.get(key, absent), f"{path}.{key}")
        ]
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return [f"{path}: {len(actual)} rows, pandas has {len(expected)}"]
        return [
            line
            for index, pair in enumerate(zip(actual, expected, strict=True))
            for line in differences(*pair, f"{path}[{index}]")
        ]
    if _is_number(expected) and _is_number(actual):
        equal = math.isclose(actual, expected, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-12)
    else:
        equal = actual == expected and isinstance(actual, str | None)
    return [] if equal else [f"{path}: {actual!r}, pandas has {expected!r}"]


def _is_number(value: object) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, bool)
