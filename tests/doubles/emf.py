"""Reads the metrics that functions print, as CloudWatch reads them."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass(frozen=True)
class Metric:
    """One metric with its dimensions."""

    name: str
    dimensions: dict[str, str]
    values: list[float] = field(default_factory=list)
    unit: str = ""


def metrics(capsys: pytest.CaptureFixture[str]) -> list[Metric]:
    """All metrics printed since the last call, by actor; other lines are ignored."""
    found = []
    for line in capsys.readouterr().out.splitlines():
        if line.startswith('{"_aws"'):
            found += _of(json.loads(line))
    return found


def metric_values(found: list[Metric], name: str, **dimensions: str) -> list[float]:
    """The values of a metric with at least these dimensions."""
    return [
        value
        for metric in found
        if metric.name == name and dimensions.items() <= metric.dimensions.items()
        for value in metric.values
    ]


def _of(line: dict[str, Any]) -> list[Metric]:
    found = []
    for group in line["_aws"]["CloudWatchMetrics"]:
        assert group["Namespace"] == "Asya"
        names, of_the_mesh = group["Dimensions"]
        assert of_the_mesh == ["namespace"]
        for metric in group["Metrics"]:
            values = line[metric["Name"]]
            dimensions = {name: line[name] for name in names}
            found.append(
                Metric(metric["Name"], dimensions, values if isinstance(values, list) else [values], metric["Unit"])
            )
    return found
