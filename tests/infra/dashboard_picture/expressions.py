"""Evaluates the metrics of a dashboard over a recording, as CloudWatch does over its metrics.

It knows the forms that the dashboards of a mesh use: metrics, SEARCH, SUM, MAX or SORT of a SEARCH, and MAX or SORT of metrics.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from asya.protocol.names import METRICS_NAMESPACE
from tests.infra.dashboard_picture.recording import Recording, Series, Values

Points = dict[int, float]
"""The value of each minute that has one."""

_FORM = re.compile(
    r"(?:(?P<function>SUM|MAX|SORT)\()?"
    r"SEARCH\('\{(?P<schema>[^}]*)\} (?P<terms>[^']*)', '(?P<statistic>\w+)', \d+\)"
    r"(?:, MAX, DESC, (?P<count>\d+))?\)?"
)
_TERM = re.compile(r'(NOT )?(\w+)=(?:"([^"]*)"|([^\s")]+))|\(([^)]*)\)')


@dataclass(frozen=True)
class Line:
    """A line of a graph, or a number."""

    label: str
    points: Points


def lines_of(metric: list[Any], recording: Recording, *, whole: bool = False) -> list[Line]:
    """Return the lines of one entry under `metrics`.

    Args:
        metric: the entry.
        recording: the values.
        whole: whether all minutes count as one period, the first one.

    Raises:
        ValueError: the expression has an unknown form.
    """
    if len(metric) > 1:
        if metric[-1].get("visible") is False:
            return []
        namespace, name, *dimensions, options = metric
        pairs = dict(zip(dimensions[::2], dimensions[1::2], strict=True))
        matches = [each for each in recording.series if namespace == METRICS_NAMESPACE and _is(each, name, pairs)]
        return [Line(options["label"], _points(matches, options["stat"], whole=whole))]
    (options,) = metric
    if listed := re.match(r"(SORT|MAX)\(\[", options["expression"]):
        return (
            [] if listed[1] == "SORT" else [Line(options["label"], {})]
        )  # of queues or functions, which have no values here
    form = _FORM.fullmatch(options["expression"])
    if form is None:
        raise ValueError(f"unknown form of an expression: {options['expression']}")
    results = [
        Line(_label(options["label"], each), _points([each], form["statistic"], whole=whole))
        for each in _results(recording.series, form["schema"], form["terms"])
    ]
    match form["function"]:
        case "SORT":
            return sorted(results, key=lambda line: -max(line.points.values()))[: int(form["count"])]
        case "SUM" | "MAX" as function:
            return [Line(options["label"], _over(function, results))]
    return results


def _over(function: str, lines: list[Line]) -> Points:
    reduce = sum if function == "SUM" else max
    minutes = sorted({minute for line in lines for minute in line.points})
    return {at: reduce(line.points[at] for line in lines if at in line.points) for at in minutes}


def _is(series: Series, name: str, dimensions: dict[str, str]) -> bool:
    """Whether a metric counts a series. The metric of the mesh counts all series of its name."""
    is_total = dimensions.keys() == {"namespace"}
    return series.metric == name and (
        dimensions.items() <= series.dimensions.items() if is_total else dimensions == series.dimensions
    )


def _results(series: Iterable[Series], schema: str, terms: str) -> list[Series]:
    namespace, *names = schema.split(",")
    return [
        each
        for each in series
        if namespace == METRICS_NAMESPACE and each.dimensions.keys() == {*names} and _matches(each, terms)
    ]


def _matches(series: Series, terms: str) -> bool:
    properties = {"MetricName": series.metric, **series.dimensions}
    for negated, key, exact, part, alternatives in _TERM.findall(terms):
        if alternatives:
            if not any(_matches(series, each) for each in alternatives.split(" OR ")):
                return False
        elif bool(negated) == (properties[key] == exact if exact else part in properties[key]):
            return False
    return True


def _label(label: str, series: Series) -> str:
    return re.sub(r"\$\{PROP\('Dim\.(\w+)'\)\}", lambda match: series.dimensions[match[1]], label)


def _points(series: Iterable[Series], statistic: str, *, whole: bool) -> Points:
    values: Values = {}
    for each in series:
        for minute, of_minute in each.values.items():
            values.setdefault(0 if whole else minute, []).extend(of_minute)
    return {minute: _statistic(statistic, values[minute]) for minute in sorted(values)}


def _statistic(name: str, values: list[float]) -> float:
    if name.startswith("p"):
        return sorted(values)[math.ceil(len(values) * float(name[1:]) / 100) - 1]
    functions = {"Sum": sum, "Maximum": max, "SampleCount": len, "Average": lambda items: sum(items) / len(items)}
    return float(functions[name](values))
