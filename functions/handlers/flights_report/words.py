"""The texts of the page: its title, key figures, months and hours."""

import calendar
from collections.abc import Iterator
from typing import Any

from .tables import count, minutes, text

Row = dict[str, Any]


def title(statistics: dict[str, list[Row]]) -> str:
    """Return a title such as `Flight delays out of EWR, JFK and LGA`."""
    origins = sorted({str(row["origin"]) for row in statistics["by_origin_month"]})
    listed = " and ".join([", ".join(origins[:-1]), origins[-1]] if len(origins) > 1 else origins)
    return f"Flight delays out of {listed}" if listed else "Flight delays"


def key_figures(payload: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield value, label and remark of each key figure that the data have."""
    statistics = payload["statistics"]
    flights, cancelled = payload["rows_in"] - payload.get("duplicates", 0), payload["cancelled"]
    yield count(flights), "flights", f"{count(payload.get('duplicates', 0))} duplicates removed"
    if flights:
        yield f"{100 * cancelled / flights:.1f} %", "canceled", f"{count(cancelled)} never departed"
    if row := _worst(statistics["by_hour"], "mean_dep_delay"):
        yield (
            f"{hour_name(row['hour'])}:00",
            "worst hour to depart",
            f"mean departure delay {minutes(row['mean_dep_delay'])} min",
        )
    if row := _worst(statistics["by_carrier"], "mean_arr_delay"):
        yield (
            text(row["carrier"]),
            "worst airline",
            f"{text(row['name'])}, mean arrival delay {minutes(row['mean_arr_delay'])} min",
        )
    delays = {row["weather"]: row["mean_dep_delay"] for row in statistics["weather"]}
    if delays.get("wet") is not None and delays.get("dry") is not None:
        more = f"{delays['wet'] - delays['dry']:+.1f} min".replace("-", "−")
        yield more, "in rain or snow", "mean departure delay, compared to dry hours"


def figure(value: str, what: str, remark: str) -> str:
    """Return the HTML of one key figure. The parts are HTML themselves."""
    return f'<div class="figure"><b>{value}</b><span>{what}</span><small>{remark}</small></div>'


def month_name(month: int | None) -> str:
    """Return a name such as `Jan`."""
    return calendar.month_abbr[month] if month and 1 <= month <= 12 else "?"


def hour_name(hour: int | None) -> str:
    """Return an hour such as `07`."""
    return "?" if hour is None else f"{hour:02d}"


def _worst(rows: list[Row], key: str) -> Row | None:
    return max((row for row in rows if row[key] is not None), key=lambda row: row[key], default=None)
