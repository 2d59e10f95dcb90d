"""Draws a dashboard of CloudWatch from its body and a recording: the widgets in their places, in the light theme."""

import re
from collections.abc import Iterator
from typing import Any

from tests.infra.dashboard_picture import svg
from tests.infra.dashboard_picture.expressions import lines_of
from tests.infra.dashboard_picture.graphs import EMPTY, GRAY, GRID, Box, graph, numbers
from tests.infra.dashboard_picture.recording import Recording

_COLUMN, _ROW, _GAP, _TITLE = 50, 40, 10, 30  # pixels
_COLUMNS = 24
_PAGE, _WIDGET, _BORDER, _LINK = "#f2f3f3", "#ffffff", "#d5dbdb", "#0073bb"
_TABLE_LINE, _TABLE_SIZE = 24, 12
_SHARES = {"@timestamp": 1.4, "error_message": 3}  # of the width of a table; 1 for other columns
_LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_FIELDS = re.compile(r"\| fields (.*?) \|")


def draw(body: dict[str, Any], recording: Recording, title: str) -> str:
    """Return the dashboard as an SVG document."""
    widgets = sorted(body["widgets"], key=lambda each: (each["y"], each["x"]))
    height = max(each["y"] + each["height"] for each in widgets) * _ROW + _GAP
    width = _COLUMNS * _COLUMN + _GAP
    elements = [svg.rect(0, 0, width, height, _PAGE)]
    for widget in widgets:
        elements += _widget(widget, recording)
    return svg.document(width, height, title, elements)


def shown_titles(body: dict[str, Any]) -> Iterator[str]:
    """Yield the titles of a dashboard, and the words of its texts, as they are drawn."""
    for widget in body["widgets"]:
        properties = widget["properties"]
        if "markdown" in properties:
            yield from (_plain(line) for line in properties["markdown"].split("\n"))
        else:
            yield properties["title"]


def _widget(widget: dict[str, Any], recording: Recording) -> Iterator[str]:
    x, y = widget["x"] * _COLUMN + _GAP, widget["y"] * _ROW + _GAP
    width, height = widget["width"] * _COLUMN - _GAP, widget["height"] * _ROW - _GAP
    properties = widget["properties"]
    if widget["type"] == "text":
        yield from _text(x, y, width, height, properties["markdown"])
        return
    yield svg.rect(x, y, width, height, _WIDGET, border=_BORDER, round_by=2)
    yield svg.text(x + 10, y + 20, properties["title"], bold=True)
    box = Box(x, y + _TITLE, width, height - _TITLE)
    if widget["type"] == "log":
        yield from _table(box, properties["query"], recording)
        return
    is_number = properties["view"] == "singleValue"
    whole = is_number and properties["setPeriodToTimeRange"]
    lines = [line for metric in properties["metrics"] for line in lines_of(metric, recording, whole=whole)]
    if is_number:
        yield from numbers(box, lines, recording, sparkline=properties["sparkline"])
    else:
        yield from graph(box, lines, recording)


def _text(x: float, y: float, width: float, height: float, markdown: str) -> Iterator[str]:
    is_heading = markdown.startswith("## ")
    if not is_heading:
        yield svg.rect(x, y, width, height, _WIDGET, border=_BORDER, round_by=2)
    base = y + (23 if is_heading else 30)
    for line in markdown.split("\n"):
        size = {"# ": 22, "##": 17}.get(line[:2], 13)
        yield svg.text(
            x + (2 if is_heading else 10),
            base,
            _plain(line),
            size=size,
            bold=size > 13,
            color=_LINK if _LINKED.match(line) else "#16191f",
        )
        base += 28


def _plain(markdown: str) -> str:
    """Return a line of Markdown without its signs."""
    return _LINKED.sub(r"\1", markdown).lstrip("# ").replace("`", "")


def _table(box: Box, query: str, recording: Recording) -> Iterator[str]:
    """Draw the fields of a query for as many failures as fit."""
    match = _FIELDS.search(query)
    assert match is not None, query
    columns = {column: alternatives for column, *alternatives in _columns(match[1])}
    shares = [_SHARES.get(column, 1) for column in columns]
    y = box.y + 12
    x = box.x + 10
    edges = []
    for column, share in zip(columns, shares, strict=True):
        width = (box.width - 20) * share / sum(shares)
        yield svg.text(x, y, column, size=_TABLE_SIZE, bold=True, color=GRAY)
        edges.append((x, width - 12))
        x += width
    rows = int((box.height - 24) / _TABLE_LINE)
    if not recording.failures:
        yield svg.text(box.x + box.width / 2, box.y + box.height / 2, EMPTY, color=GRAY, anchor="middle")
    for failure in recording.failures[:rows]:
        yield svg.line(box.x + 10, y + 8, box.x + box.width - 10, y + 8, GRID)
        y += _TABLE_LINE
        for (left, width), names in zip(edges, columns.values(), strict=True):
            value = next((str(failure[name]) for name in names if name in failure), "")
            yield svg.text(left, y, svg.shortened(value, width, _TABLE_SIZE), size=_TABLE_SIZE)


def _columns(fields: str) -> Iterator[tuple[str, ...]]:
    """Yield the name of each column, then its fields. The column shows the first field that a failure has."""
    for named, column, plain in re.findall(r"coalesce\(([^)]*)\) as (\w+)|([@\w]+)", fields):
        yield (column, *named.split(", ")) if named else (plain, plain)
