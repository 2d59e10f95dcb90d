"""Widgets of CloudWatch dashboards as data, and their places on the grid.

A SEARCH finds the metrics of all actors when the dashboard is shown, so its size does not depend on their number. The dimension
`namespace` makes it exact. Metrics of queues and functions have no such dimension, and a prefix is also in the names of other
stages. So they are listed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

WIDTH = 24
_GRAPH_HEIGHT = 6
_NUMBER_HEIGHT = 4


@dataclass(frozen=True, kw_only=True)
class Line:
    """One metric, or one expression with the lines that it finds.

    Attributes:
        metric: namespace, name, then names and values of dimensions; empty for an expression.
        expression: metric math. `{listed}` is the array of the listed metrics.
        label: the text in the legend; dynamic labels such as `${PROP('Dim.actor')}` are allowed.
        statistic: the statistic of a metric.
        listed: the metrics that the expression reads, in the form of `metric`. They are not drawn themselves.
        period: the period in seconds of the listed metrics.
    """

    metric: tuple[str, ...] = ()
    expression: str = ""
    label: str = ""
    statistic: str = "Sum"
    listed: tuple[tuple[str, ...], ...] = ()
    period: int = 300


@dataclass(frozen=True, kw_only=True)
class Widget:
    """A widget without its place.

    Attributes:
        height: rows of the grid.
        width: columns of the grid, of 24.
    """

    kind: Literal["metric", "text", "log"]
    properties: dict[str, Any]
    height: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for metrics of one name.

    Attributes:
        schema: the namespace and the names of the dimensions.
        metric: the name of the metric.
        terms: further terms, such as `namespace="shop"`.
        statistic: the statistic.
        period: seconds.
    """

    schema: tuple[str, ...]
    metric: str
    terms: Sequence[str] = ()
    statistic: str = "Sum"
    period: int = 300

    def __str__(self) -> str:
        text = " ".join((f'MetricName="{self.metric}"', *self.terms))
        return f"SEARCH('{{{','.join(self.schema)}}} {text}', '{self.statistic}', {self.period})"

    def top(self, count: int = 10) -> str:
        """Return metric math for the largest ones."""
        return f"SORT({self}, MAX, DESC, {count})"


@dataclass(frozen=True)
class Page:
    """A page of widgets, placed from left to right and from top to bottom."""

    region: str
    placed: list[dict[str, Any]] = field(default_factory=list)

    def row(self, *widgets: Widget) -> None:
        """Add a row; the widgets fit into 24 columns."""
        y = max((each["y"] + each["height"] for each in self.placed), default=0)
        x = 0
        for widget in widgets:
            place = {"x": x, "y": y, "width": widget.width, "height": widget.height}
            properties = widget.properties if widget.kind == "text" else {"region": self.region, **widget.properties}
            self.placed.append({"type": widget.kind, **place, "properties": properties})
            x += widget.width

    def section(self, title: str) -> None:
        """Add a heading."""
        self.row(text(f"## {title}", height=1))


def text(markdown: str, *, height: int) -> Widget:
    """Return a text over the whole width."""
    return Widget(kind="text", properties={"markdown": markdown}, height=height, width=WIDTH)


def number(title: str, lines: Iterable[Line], *, width: int, whole_range: bool = False) -> Widget:
    """Return a widget with numbers: the latest ones, or those of the whole time range."""
    properties = {
        "title": title,
        "view": "singleValue",
        "sparkline": not whole_range,
        "setPeriodToTimeRange": whole_range,
        "metrics": _metrics(lines),
    }
    return Widget(kind="metric", properties=properties, height=_NUMBER_HEIGHT, width=width)


def graph(title: str, lines: Iterable[Line], *, width: int = 8, period: int = 300) -> Widget:
    """Return a graph over time."""
    properties = {
        "title": title,
        "view": "timeSeries",
        "period": period,
        "yAxis": {"left": {"min": 0}},
        "metrics": _metrics(lines),
    }
    return Widget(kind="metric", properties=properties, height=_GRAPH_HEIGHT, width=width)


ERRORS = (
    "fields @timestamp, service, level, message, envelope_id, reason",
    'filter level in ["ERROR", "WARNING"] or ispresent(errorType) or record.status in ["timeout", "error", "failure"]'
    " or @message like /Task timed out|Status: timeout|Runtime.ExitError|signal: killed/",
    "sort @timestamp desc",
    "limit 20",
)
"""The query for the errors and warnings in a log group: of the code, and of Lambda, in its text and in its JSON format."""


def log_table(title: str, log_group: str, query: Sequence[str]) -> Widget:
    """Return the result of a query of CloudWatch Logs Insights."""
    properties = {"title": title, "view": "table", "query": " | ".join((f"SOURCE '{log_group}'", *query))}
    return Widget(kind="log", properties=properties, height=_GRAPH_HEIGHT + 2, width=WIDTH)


def _metrics(lines: Iterable[Line]) -> list[list[Any]]:
    metrics: list[list[Any]] = []
    for index, line in enumerate(lines):
        label = {"label": line.label} if line.label else {}
        if line.expression:
            ids = [f"e{index}m{number}" for number, _ in enumerate(line.listed)]
            expression = line.expression.replace("{listed}", f"[{', '.join(ids)}]")
            metrics.append([{"expression": expression, "id": f"e{index}", **label}])
            hidden = {"stat": line.statistic, "period": line.period, "visible": False}
            metrics += [[*metric, {"id": name, **hidden}] for name, metric in zip(ids, line.listed, strict=True)]
        else:
            metrics.append([*line.metric, {"stat": line.statistic, **label}])
    return metrics
