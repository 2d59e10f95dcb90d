"""The layout of the page: its figures, charts and tables, in order."""

from pathlib import Path
from string import Template
from typing import Any

from .charts import Values, columns, lines, multiples
from .tables import Column, bar, count, minutes, shaded, share, table, text
from .words import figure, hour_name, key_figures, month_name, title

Row = dict[str, Any]

TEMPLATE = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))


def render(payload: dict[str, Any]) -> str:
    """Render the report on the payload of a finished pipeline. Equal payloads give equal pages.

    Raises:
        KeyError: if the payload lacks statistics.
    """
    statistics = payload["statistics"]
    return TEMPLATE.substitute(
        title=text(title(statistics)),
        source=text(payload["flights"]),
        approval=approval(payload),
        figures="".join(figure(*each) for each in key_figures(payload)),
        by_airport=table(statistics["by_airport"], [*AIRPORT, *MEASURES]),
        airports_by_hour=airport_charts(statistics["by_airport"]),
        airlines_at_airports=airline_table(statistics),
        by_hour=hour_chart(statistics["by_hour"]),
        by_month=month_chart(statistics["by_origin_month"]),
        by_weather=table(statistics["weather"], [Column("Weather", "weather", text), *MEASURES]),
        by_carrier=table(latest_first(statistics["by_carrier"]), [*CARRIER, *MEASURES]),
        worst_routes=table(statistics["worst_routes"], [*ROUTE, *MEASURES]),
    )


MEASURES = [
    Column("Flights", "flights", count, numeric=True),
    Column("Canceled", "cancelled", share, numeric=True),
    Column("Departure delay", "mean_dep_delay", minutes, numeric=True),
    Column("Arrival delay", "mean_arr_delay", bar, numeric=True),
    Column("95 % arrive within", "p95_arr_delay", minutes, numeric=True),
]
AIRPORT = [Column("", "airport", text), Column("Airport", "name", text)]
CARRIER = [Column("", "carrier", text), Column("Airline", "name", text)]
ROUTE = [Column("From", "origin", text), Column("To", "dest", text), Column("", "dest_name", text)]


def hour_chart(rows: list[Row]) -> str:
    """Draw mean delays by scheduled hour of departure."""
    labels = [hour_name(row["hour"]) for row in rows]
    return columns(labels, {"departure": pick(rows, "mean_dep_delay"), "arrival": pick(rows, "mean_arr_delay")})


def airport_charts(rows: list[Row]) -> str:
    """Draw mean departure delays by hour, one small chart per airport."""
    hours = sorted({row["hour"] for airport in rows for row in airport["by_hour"] if row["hour"] is not None})
    delays = {
        text(airport["airport"]): {row["hour"]: row["mean_dep_delay"] for row in airport["by_hour"]} for airport in rows
    }
    series: dict[str, Values] = {name: [at.get(hour) for hour in hours] for name, at in delays.items()}
    return multiples([hour_name(hour) for hour in hours], series)


def airline_table(statistics: dict[str, list[Row]]) -> str:
    """Return a table of mean arrival delays by airline and airport. A darker cell is a longer delay."""
    airports = statistics["by_airport"]
    delays = {
        (airport["airport"], row["carrier"]): row["mean_arr_delay"]
        for airport in airports
        for row in airport["by_carrier"]
    }
    longest = max((delay for delay in delays.values() if delay is not None), default=0.0)
    rows = [
        {"carrier": row["carrier"], "name": row["name"], "all": row["mean_arr_delay"]}
        | {str(airport["airport"]): delays.get((airport["airport"], row["carrier"])) for airport in airports}
        for row in latest_first(statistics["by_carrier"])
    ]
    shade = shaded(longest)
    codes = [str(airport["airport"]) for airport in airports]
    measured = [Column(code, code, shade, numeric=True) for code in [*codes]]
    return table(rows, [*CARRIER, *measured, Column("All", "all", minutes, numeric=True)])


def approval(payload: Row) -> str:
    """Name the approver, if the route had an approval."""
    return f" Approved by {text(payload['approved_by'])}." if payload.get("approved_by") else ""


def month_chart(rows: list[Row]) -> str:
    """Draw mean arrival delays by month, one line per airport."""
    delays = {(row["origin"], row["month"]): row["mean_arr_delay"] for row in rows}
    months = sorted({month for _, month in delays}, key=lambda month: month or 0)
    origins = sorted({origin for origin, _ in delays}, key=str)
    series: dict[str, Values] = {str(origin): [delays.get((origin, month)) for month in months] for origin in origins}
    return lines([month_name(month) for month in months], series)


def latest_first(rows: list[Row]) -> list[Row]:
    """Sort rows by mean arrival delay, the longest first and missing ones last."""
    return sorted(rows, key=lambda row: (row["mean_arr_delay"] is None, -(row["mean_arr_delay"] or 0)))


def pick(rows: list[Row], key: str) -> Values:
    """Return one column of the rows."""
    return [row[key] for row in rows]
