"""The flight-delay statistics computed a second time, with pandas, to hold the pipeline's result against.

Nothing here is shared with the Spark jobs. `assert_agrees(result, folder)` compares the payload that left the pipeline
with the files under `folder` (the data prefix) that its references name.
"""

import math
from pathlib import Path
from typing import Any

import pandas as pd

RELATIVE = 1e-9
HOUR = ["origin", "year", "month", "day", "hour"]


def assert_agrees(result: dict[str, Any], folder: Path) -> None:
    """Raise AssertionError naming the first places where `result` differs from the computation on the raw files."""
    wanted = expected({table: result[table] for table in ("flights", "airlines", "airports", "weather")}, folder)
    found = differences({key: result.get(key) for key in wanted}, wanted)
    assert not found, f"{len(found)} difference(s) from pandas:\n" + "\n".join(found[:20])


def expected(payload: dict[str, str], folder: Path) -> dict[str, Any]:
    """`rows_in`, `duplicates`, `cancelled` and `statistics` for the files that the payload refers to."""
    raw = pd.read_csv(folder / payload["flights"])
    airlines, airports = pd.read_csv(folder / payload["airlines"]), pd.read_csv(folder / payload["airports"])
    flights = with_weather(raw.drop_duplicates(), pd.read_csv(folder / payload["weather"]))
    routes = measured(flights, ["origin", "dest"])
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
            "by_origin_month": records(measured(flights, ["origin", "month"])),
            "by_hour": records(measured(flights, ["hour"])),
            "worst_routes": records(worst.merge(dest_names[["dest", "dest_name"]], on="dest", how="left")),
            "weather": records(measured(flights, ["weather"])),
        },
    }


def by_airport(flights: pd.DataFrame, airlines: pd.DataFrame, airports: pd.DataFrame) -> dict[str, Any]:
    """The row of one airport; `flights` are those that leave it."""
    [row] = records(measured(flights, ["origin"]))
    airport = row.pop("origin")
    names = airports.loc[airports["faa"] == airport, "name"]
    return {
        "airport": airport,
        "name": None if names.empty else names.iloc[0],
        **row,
        "by_carrier": by_carrier(flights, airlines),
        "by_hour": records(measured(flights, ["hour"])),
        "weather": records(measured(flights, ["weather"])),
    }


def by_carrier(flights: pd.DataFrame, airlines: pd.DataFrame) -> list[dict[str, Any]]:
    """A row for each airline, with its name."""
    names = airlines.drop_duplicates("carrier")
    return records(measured(flights, ["carrier"]).merge(names, on="carrier", how="left"))


def with_weather(flights: pd.DataFrame, weather: pd.DataFrame) -> pd.DataFrame:
    """The flights with the weather of their hour: wet, dry, or unknown when no precipitation was recorded."""
    joined = flights.merge(weather.drop_duplicates(HOUR)[[*HOUR, "precip"]], on=HOUR, how="left")
    joined["weather"] = "unknown"
    joined.loc[joined["precip"].notna(), "weather"] = "dry"
    joined.loc[joined["precip"] > 0, "weather"] = "wet"
    return joined


def measured(flights: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row per group, ordered by its keys."""
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
    """Rows as JSON objects: NaN is null."""
    return [
        {str(key): None if pd.isna(value) else value for key, value in row.items()} for row in table.to_dict("records")
    ]


def differences(found: Any, wanted: Any, path: str = "") -> list[str]:
    """Where two JSON values differ; numbers may by 1e-9 of their size."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        keys = sorted(wanted.keys() | found.keys())
        nothing = "(absent)"
        return [
            line
            for key in keys
            for line in differences(found.get(key, nothing), wanted.get(key, nothing), f"{path}.{key}")
        ]
    if isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            return [f"{path}: {len(found)} rows, pandas has {len(wanted)}"]
        return [
            line
            for place, pair in enumerate(zip(found, wanted, strict=True))
            for line in differences(*pair, f"{path}[{place}]")
        ]
    if _number(wanted) and _number(found):
        equal = math.isclose(found, wanted, rel_tol=RELATIVE, abs_tol=1e-12)
    else:
        equal = found == wanted and isinstance(found, str | None)
    return [] if equal else [f"{path}: {found!r}, pandas has {wanted!r}"]


def _number(value: object) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, bool)
