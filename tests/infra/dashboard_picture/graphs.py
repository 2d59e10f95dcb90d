"""Draws the widgets with metrics: graphs over time, and numbers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tests.infra.dashboard_picture import svg
from tests.infra.dashboard_picture.expressions import Line
from tests.infra.dashboard_picture.recording import Recording

COLORS = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"),
    *("#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"),
)
GRAY, GRID = "#687078", "#eaeded"
EMPTY = "No data available."

_LEGEND_LINE, _LEGEND_ROWS, _LEGEND_SIZE, _AXIS_SIZE = 17, 3, 12, 11
_TOPS = (1, 1.5, 2, 3, 4, 6, 8, 10)


@dataclass(frozen=True)
class Box:
    """The inside of a widget, below its title, in pixels."""

    x: float
    y: float
    width: float
    height: float


def graph(box: Box, lines: list[Line], recording: Recording) -> Iterator[str]:
    """Draw lines over time with axes and a legend."""
    legend = list(_legend_places(box, lines))
    rows = 1 + max((row for _, row, _ in legend), default=0)
    plot = Box(box.x + 44, box.y + 4, box.width - 56, box.height - 28 - rows * _LEGEND_LINE)
    top = nice_top(max((value for line in lines for value in line.points.values()), default=0))
    yield from _axes(plot, top, recording)
    if not any(line.points for line in lines):
        yield svg.text(plot.x + plot.width / 2, plot.y + plot.height / 2, EMPTY, color=GRAY, anchor="middle")
    for index, line in enumerate(lines):
        places = [
            (_x(plot, minute, recording), plot.y + plot.height * (1 - value / top))
            for minute, value in line.points.items()
        ]
        if len(places) > 1:
            yield svg.polyline(places, COLORS[index % len(COLORS)])
        if len(places) < recording.minutes:  # gaps show which minutes have a value
            yield from (svg.dot(x, y, COLORS[index % len(COLORS)]) for x, y in places)
    for index, (x, row, label) in enumerate(legend):
        y = box.y + box.height - (rows - row) * _LEGEND_LINE + 10
        yield svg.rect(x, y - 9, 10, 10, COLORS[index % len(COLORS)])
        yield svg.text(x + 15, y, label, size=_LEGEND_SIZE, color=GRAY)


def numbers(box: Box, lines: list[Line], recording: Recording, *, sparkline: bool) -> Iterator[str]:
    """Draw the last value of each line, by default with its course below."""
    width = box.width / len(lines)
    for index, line in enumerate(lines):
        x, color = box.x + index * width, COLORS[index]
        value = f"{list(line.points.values())[-1]:,.0f}" if line.points else "--"
        yield svg.text(x + 8, box.y + 38, value, size=34, color="#16191f" if line.points else GRAY)
        yield svg.rect(x + 8, box.y + 54, 10, 10, color)
        yield svg.text(x + 23, box.y + 63, line.label, size=_LEGEND_SIZE, color=GRAY)
        if sparkline and len(line.points) > 1:
            plot = Box(x + 8, box.y + 74, width - 24, box.height - 84)
            top = max(*line.points.values(), 1)
            places = (
                (_x(plot, at, recording), plot.y + plot.height * (1 - each / top)) for at, each in line.points.items()
            )
            yield svg.polyline(places, color)


def nice_top(value: float) -> float:
    """Return the end of an axis: the first of 1, 1.5, 2, 3, 4, 6, 8, 10, 15 … that is not below the value."""
    if value <= 1:
        return 1
    power = 10 ** math.floor(math.log10(value))
    return float(next(step * power for step in _TOPS if step * power >= value))


def short(value: float) -> str:
    """Return a number as the axes of CloudWatch show it."""
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


def _axes(plot: Box, top: float, recording: Recording) -> Iterator[str]:
    for part in (0, 0.5, 1):
        y = plot.y + plot.height * (1 - part)
        yield svg.line(plot.x, y, plot.x + plot.width, y, GRID)
        yield svg.text(plot.x - 6, y + 4, short(top * part), size=_AXIS_SIZE, color=GRAY, anchor="end")
    minutes = sorted({round((recording.minutes - 1) * part / 3) for part in range(4)})
    for number, minute in enumerate(minutes):
        anchor = "middle" if number < len(minutes) - 1 else "end"
        x, y = _x(plot, minute, recording), plot.y + plot.height + 15
        yield svg.text(x, y, recording.time(minute), size=_AXIS_SIZE, color=GRAY, anchor=anchor)


def _legend_places(box: Box, lines: list[Line]) -> Iterator[tuple[float, int, str]]:
    """Yield the left edge, the row and the text of each entry, without those beyond the last row: CloudWatch scrolls there."""
    x, row = box.x + 8, 0
    for line in lines:
        label = svg.shortened(line.label, box.width - 32, _LEGEND_SIZE)
        width = svg.width_of(label, _LEGEND_SIZE) + 30
        if x > box.x + 8 and x + width > box.x + box.width:
            x, row = box.x + 8, row + 1
        if row == _LEGEND_ROWS:
            return
        yield x, row, label
        x += width


def _x(plot: Box, minute: int, recording: Recording) -> float:
    return plot.x + plot.width * minute / max(recording.minutes - 1, 1)
