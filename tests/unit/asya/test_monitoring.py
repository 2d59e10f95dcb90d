"""The declared metrics and alarms: functions write what is declared, and the protocol has the same."""

import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from asya import registry
from asya.capabilities.operations.aws.mesh_numbers import ActorMetrics
from asya.monitoring import AWS_METRICS, Alarm, Metric, Of, Series, Threshold, Total
from asya.testing.services.functions import QuietTelemetry
from asya.testing.services.process import Process
from docs_site.reference.metrics import written
from tests.doubles.envelopes import mesh
from tests.paths import PROJECT

METRICS = registry.PRODUCT.metrics
ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| (\w+) \| (?:`(\w+)`)? ?\|", re.MULTILINE)


@pytest.mark.rule("15.dimensions")
@pytest.mark.slow
def test_functions_write_the_declared_metrics() -> None:
    found = {name: (metric.units, metric.splits) for name, metric in written().items()}
    assert found == {
        name: ({metric.unit}, {metric.split} if metric.split else set()) for name, metric in METRICS.items()
    }


def test_the_protocol_has_the_declared_metrics() -> None:
    section = (PROJECT / "docs" / "protocol.md").read_text().partition("## 15. Metrics")[2].partition("\n## ")[0]
    table = {
        name: Metric(name, unit, split or None)  # type: ignore[arg-type]
        for names, unit, split in ROW.findall(section)
        for name in re.findall(r"\w+", names)
    }
    assert table == METRICS
    assert set(re.findall(r"\*\*§15\.([A-Z]\w+)\*\*", section)) == METRICS.keys()


def test_no_two_declarations_have_one_name() -> None:
    metrics = [each.name for capability in registry.PRODUCT.capabilities for each in capability.metrics]
    alarms = [each.name for each in registry.PRODUCT.alarms]
    names = Counter([*metrics, *alarms, *AWS_METRICS])
    assert [name for name, count in names.items() if count > 1] == []


def test_alarms_with_one_key_have_one_threshold() -> None:
    keys = {each.threshold.key: each.threshold for each in registry.PRODUCT.alarms}
    assert all(each.threshold is keys[each.threshold.key] for each in registry.PRODUCT.alarms)


RECEIVED = Series(metric="Received")


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"says": "{actor} is late."}, "unknown placeholder {actor}; known are mesh, queue, each, log, undone"),
        ({"name": "Late ones"}, "use a name such as stuck-runs"),
        ({"watched": Series(metric="Received", of=Of.ACTORS)}, "it cannot read a series of each actor"),
        ({"watched": Total(RECEIVED)}, "it cannot read a series of the mesh"),
    ],
)
def test_an_alarm_says_what_is_wrong_with_it(declared: dict[str, Any], problem: str) -> None:
    alarm = {"name": "late", "says": "", "watched": RECEIVED, "threshold": Threshold(key="late", text="Late.")}
    with pytest.raises(ValueError, match=rf"^alarm '{declared.get('name', 'late')}': {re.escape(problem)}$"):
        Alarm(**(alarm | declared))


@pytest.mark.parametrize(
    ("metric", "of"),
    [("Errors", Of.MESH), ("Errors", Of.QUEUES), ("NumberOfMessagesSent", Of.MESH), ("Mine", Of.ACCOUNT)],
)
def test_a_series_is_of_what_has_its_metric(metric: str, of: Of) -> None:
    with pytest.raises(
        ValueError, match=rf"^there is no {metric} of {of.value}; use the name of an actor, or Of: [A-Z]"
    ):
        Series(metric=metric, of=of)


def test_each_alarm_names_a_graph_of_the_overview() -> None:
    titles = {each.title for each in registry.PRODUCT.graphs if each.section.page == "overview"}
    named = {each.graph.partition(";")[0] for each in registry.PRODUCT.alarms if each.graph}
    assert {name for name in named if not any(title.startswith(name) for title in titles)} == set()


def test_what_alarms_and_graphs_read_is_declared() -> None:
    watched = [each.watched for each in registry.PRODUCT.alarms]
    series = [part for each in watched for part in vars(each).values() if isinstance(part, Series)]
    series += [each for each in watched if isinstance(each, Series)]
    series += [line for graph in registry.PRODUCT.graphs for line in graph.lines]
    assert {each.metric for each in series} - AWS_METRICS.keys() - METRICS.keys() == set()
    assert METRICS.keys() - {each.metric for each in series} == set()  # each is shown


def test_the_numbers_of_actors_are_of_declared_metrics() -> None:
    """`GET /api/v1/operations/mesh` reads metrics by name: its function imports no manifest."""
    asked: list[tuple[str, str, frozenset[str]]] = []

    class CloudWatch:
        def get_paginator(self, _action: str) -> "CloudWatch":
            return self

        def paginate(self, **request: Any) -> list[dict[str, Any]]:
            for query in request["MetricDataQueries"]:
                metric = query["MetricStat"]["Metric"]
                names = frozenset(each["Name"] for each in metric["Dimensions"])
                asked.append((metric["Namespace"], metric["MetricName"], names))
            return []

    metrics = ActorMetrics(CloudWatch(), "shop")
    metrics.rates(["infer"], datetime(2026, 11, 28, tzinfo=UTC))
    metrics.durations("infer", datetime(2026, 11, 28, tzinfo=UTC))
    own = {
        ("Asya", name, frozenset(filter(None, ("namespace", "actor", metric.split))))
        for name, metric in METRICS.items()
    }
    of_queues = {(service, name, frozenset({"QueueName"})) for name, service in AWS_METRICS.items()}
    assert set(asked) <= own | of_queues


def test_the_kit_refuses_a_metric_that_is_not_declared() -> None:
    telemetry = QuietTelemetry(cast(Process, None), mesh())
    telemetry.count("Processed", by=("outcome", "succeeded"))
    telemetry.measure("HandlerDuration", 1.0, "Milliseconds")
    for wrong in (
        lambda: telemetry.count("Lost"),
        lambda: telemetry.count("Processed"),
        lambda: telemetry.measure("HandlerDuration", 1.0, "Seconds"),
    ):
        with pytest.raises(ValueError, match=r"add it to METRICS of the manifest of its capability"):
            wrong()
