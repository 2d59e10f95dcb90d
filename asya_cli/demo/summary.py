"""Prints the pipeline's result as a few small tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.columns import Columns
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

Row = dict[str, Any]
ROWS = 6


def summary(payload: Row) -> list[RenderableType]:
    """Return key figures, and tables of airports, worst airlines, worst routes and weather."""
    statistics = payload["statistics"]
    rows_in, cancelled = payload["rows_in"], payload["cancelled"]
    share = cancelled / rows_in if rows_in else 0.0
    carriers = sorted(statistics["by_carrier"], key=lambda row: _descending(row["mean_arr_delay"]))
    routes = statistics["worst_routes"]
    airports = statistics["by_airport"]
    return [
        f"[bold]{rows_in:,}[/] flights, [bold]{cancelled:,}[/] canceled ({share:.1%})",
        Columns(
            [
                delays("Airports", [""], [[row["name"] or row["airport"]] for row in airports], airports),
                delays(
                    "Airlines, worst first",
                    ["Airline"],
                    [[row["name"] or row["carrier"]] for row in carriers],
                    carriers,
                ),
                delays("Worst routes", ["From", "To"], [[row["origin"], row["dest"]] for row in routes], routes),
                delays("Weather", [""], [[row["weather"]] for row in statistics["weather"]], statistics["weather"]),
            ],
            padding=(0, 3),
        ),
    ]


def delays(title: str, headings: Sequence[str], names: Sequence[Sequence[str]], rows: Sequence[Row]) -> Table:
    """Return a table of mean arrival delays in minutes, limited to the first rows."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1), header_style="dim")
    for heading in headings:
        table.add_column(heading)
    table.add_column("flights", justify="right")
    table.add_column("delay", justify="right", style="cyan")
    for name, row in list(zip(names, rows, strict=True))[:ROWS]:
        table.add_row(*name, f"{row['flights']:,}", minutes(row["mean_arr_delay"]))
    return table


def minutes(value: float | None) -> str:
    """Format `12.3 min`, or a dash if no flight arrived."""
    return "–" if value is None else f"{value:.1f} min"


def _descending(value: float | None) -> float:
    return float("inf") if value is None else -value
