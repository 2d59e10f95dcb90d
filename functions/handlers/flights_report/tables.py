"""HTML tables, with bars in the cells."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Any, NamedTuple

Row = dict[str, Any]
Cell = Callable[[Any, Row, "list[Row]"], str]


class Column(NamedTuple):
    """A column: its heading, the key of its values, and the function that renders a cell."""

    heading: str
    key: str
    cell: Cell
    numeric: bool = False


def table(rows: list[Row], columns: Iterable[Column]) -> str:
    """Return the rows as a table, in the order given."""
    columns = list(columns)
    head = "".join(f"<th{_kind(column)}>{escape(column.heading)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td{_kind(c)}>{c.cell(row[c.key], row, rows)}</td>" for c in columns) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _kind(column: Column) -> str:
    return ' class="number"' if column.numeric else ""


def text(value: object, *_: object) -> str:
    """Return any text escaped; a dash for null."""
    return "–" if value is None else escape(str(value))


def count(value: int, *_: object) -> str:
    """Format a count: 336,776."""
    return f"{value:,}"


def minutes(value: float | None, *_: object) -> str:
    """Format a delay: 12.3, or −4.0 with a true minus sign."""
    return "–" if value is None else f"{value:.1f}".replace("-", "−")


def share(value: int, row: Row, *_: object) -> str:
    """Format a count as a share of the row's flights: 2.5 %."""
    return f"{100 * value / row['flights']:.1f} %" if row["flights"] else "–"


def bar(value: float | None, row: Row, rows: list[Row]) -> str:  # noqa: ARG001  (one signature for all cells)
    """Render a delay with a bar, scaled to the longest of the column. Early arrivals have a color of their own."""
    longest = max((abs(other["mean_arr_delay"] or 0) for other in rows), default=0)
    width = 100 * abs(value or 0) / longest if longest else 0
    early = " early" if (value or 0) < 0 else ""
    return f'<span class="bar{early}" style="--length:{width:.1f}%"></span>{minutes(value)}'


def shaded(longest: float) -> Cell:
    """Return a renderer that shades delays: the closer to the longest, the darker."""

    def cell(value: float | None, *_: object) -> str:
        part = max(0.0, value or 0.0) / longest if longest > 0 else 0.0
        return f'<span class="shade" style="--part:{100 * part:.0f}%">{minutes(value)}</span>'

    return cell
