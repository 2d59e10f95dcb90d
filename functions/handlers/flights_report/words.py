"""What the page says in words: its title, its key figures, months and hours."""

import calendar
from collections.abc import Iterator
from typing import Any

from .tables import count, minutes, text

Row = dict[str, Any]


def title(statistics: dict[str, list[Row]]) -> str:
    """`Flight delays out of EWR, JFK and LGA`."""
    origins = sorted({str(row["origin"]) for row in statistics["by_origin_month"]})
    listed = " and ".join([", ".join(origins[:-1]), origins[-1]] if len(origins) > 1 else origins)
    return f"Flight delays out of {listed}" if listed else "Flight delays"


def key_figures(payload: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Value, what it is, and a remark: those that the data can answer."""
    statistics = payload["statistics"]
    flights, cancelled = payload["rows_in"] - payload.get("duplicates", 0), payload["cancelled"]
    yield count(flights), "flights", f"{count(payload.get('duplicates', 0))} duplicates left out"
    if flights:
        yield f"{100 * cancelled / flights:.1f} %", "cancelled", f"{count(cancelled)} never departed"
    if row := _worst(statistics["by_hour"], "mean_dep_delay"):
        yield (
            f"{hour_name(row['hour'])}:00",
            "is the worst hour to leave",
            f"{minutes(row['mean_dep_delay'])} min behind schedule",
        )
    if row := _worst(statistics["by_carrier"], "mean_arr_delay"):
        yield text(row["carrier"]), "arrives latest", f"{text(row['name'])}, {minutes(row['mean_arr_delay'])} min"
    delays = {row["weather"]: row["mean_dep_delay"] for row in statistics["weather"]}
    if delays.get("wet") is not None and delays.get("dry") is not None:
        more = f"{delays['wet'] - delays['dry']:+.1f} min".replace("-", "−")
        yield more, "when it rains or snows", "at departure, against dry hours"


def figure(value: str, what: str, remark: str) -> str:
    """One key figure. The parts are HTML."""
    return f'<div class="figure"><b>{value}</b><span>{what}</span><small>{remark}</small></div>'


def month_name(month: int | None) -> str:
    """`Jan`."""
    return calendar.month_abbr[month] if month and 1 <= month <= 12 else "?"


def hour_name(hour: int | None) -> str:
    """`07`."""
    return "?" if hour is None else f"{hour:02d}"


def _worst(rows: list[Row], key: str) -> Row | None:
    return max((row for row in rows if row[key] is not None), key=lambda row: row[key], default=None)
