"""The picture of the overview shows the dashboard that is deployed, with recorded metrics."""

import json
from datetime import UTC, datetime
from html import escape
from typing import Any

import pytest

from tests.infra.dashboard_picture import svg
from tests.infra.dashboard_picture.expressions import Line, lines_of
from tests.infra.dashboard_picture.graphs import nice_top, short
from tests.infra.dashboard_picture.page import shown_titles
from tests.infra.dashboard_picture.picture import PICTURE, example_overview, metric_names, picture
from tests.infra.dashboard_picture.record import from_messages
from tests.infra.dashboard_picture.recording import Recording, Series
from tests.paths import PROJECT

REDRAW = "If the dashboard has changed: python -m tests.infra.dashboard_picture"


@pytest.fixture
def overview_body() -> dict[str, Any]:
    return example_overview()


def test_the_picture_is_that_of_the_dashboard(overview_body: dict[str, Any]) -> None:
    assert picture(overview_body) == PICTURE.read_text(), REDRAW


def test_the_picture_shows_every_widget(overview_body: dict[str, Any]) -> None:
    drawn = PICTURE.read_text()
    titles = list(shown_titles(overview_body))
    assert "Failures by actor and reason" in titles
    assert [title for title in titles if f">{escape(title, quote=False)}</text>" not in drawn] == []


def test_the_guide_shows_the_picture() -> None:
    guide = PROJECT / "docs" / "how-to" / "watch-a-mesh.md"
    assert f"](../images/{PICTURE.name})" in guide.read_text()


def series(metric: str, values: dict[int, list[float]], **dimensions: str) -> Series:
    return Series(metric, {"namespace": "shop", **dimensions}, values)


RECORDING = Recording(
    "by hand",
    datetime(2026, 1, 2, 23, 59, tzinfo=UTC),
    3,
    [
        series("Received", {0: [1, 1], 1: [3]}, actor="greet"),
        series("Received", {1: [5]}, actor="x-sink"),
        series("HandlerDuration", {0: list(range(1, 101))}, actor="greet"),
        series("Failed", {2: [4]}, actor="greet", reason="Timeout"),
    ],
    [],
)


def of_the_mesh(metric: str, statistic: str) -> list[Any]:
    return ["Asya", metric, "namespace", "shop", {"stat": statistic, "label": "all"}]


def of_search(form: str, terms: str, *, split: str = "", statistic: str = "Sum") -> list[Any]:
    schema = f"Asya,namespace,actor{split and ',' + split}"
    search = f"SEARCH('{{{schema}}} {terms}', '{statistic}', 300)"
    return [{"expression": form.format(search), "label": "${PROP('Dim.actor')}"}]


def test_a_metric_of_the_mesh_counts_all_actors() -> None:
    assert lines_of(of_the_mesh("Received", "Sum"), RECORDING) == [Line("all", {0: 2, 1: 8})]
    assert lines_of(of_the_mesh("Received", "SampleCount"), RECORDING) == [Line("all", {0: 2, 1: 2})]
    assert lines_of(of_the_mesh("Failed", "Sum"), RECORDING) == [Line("all", {2: 4})]


def test_the_whole_range_is_one_period() -> None:
    assert lines_of(of_the_mesh("Received", "Sum"), RECORDING, whole=True) == [Line("all", {0: 10})]


@pytest.mark.parametrize(("statistic", "value"), [("p50", 50), ("p95", 95), ("Maximum", 100), ("Average", 50.5)])
def test_statistics(statistic: str, value: float) -> None:
    assert lines_of(of_the_mesh("HandlerDuration", statistic), RECORDING) == [Line("all", {0: value})]


@pytest.mark.parametrize(
    ("terms", "actors"),
    [
        ('MetricName="Received" namespace="shop"', ["greet", "x-sink"]),
        ('MetricName="Received" namespace="sho"', []),
        ('MetricName="Received" namespace=sho', ["greet", "x-sink"]),
        ('MetricName="Received" NOT actor="x-sink" NOT actor="x-sump"', ["greet"]),
        ('MetricName="Received" (actor="x-sump" OR actor="x-sink")', ["x-sink"]),
        ('MetricName="Failed"', []),  # it has one more dimension
    ],
)
def test_a_search_finds_series_by_its_terms(terms: str, actors: list[str]) -> None:
    assert [line.label for line in lines_of(of_search("{}", terms), RECORDING)] == actors


def test_a_search_finds_series_with_its_dimensions_only() -> None:
    found = lines_of(of_search("{}", 'MetricName="Failed"', split="reason"), RECORDING)
    assert found == [Line("greet", {2: 4})]


def test_math_over_a_search() -> None:
    terms = 'MetricName="Received"'
    received = {form: lines_of(of_search(form, terms), RECORDING) for form in ("SUM({})", "MAX({})")}
    assert [line.points for line in received["SUM({})"]] == [{0: 2, 1: 8}]
    assert [line.points for line in received["MAX({})"]] == [{0: 2, 1: 5}]
    largest = lines_of(of_search("SORT({}, MAX, DESC, 1)", terms), RECORDING)
    assert [line.label for line in largest] == ["x-sink"]


def test_other_math_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown form of an expression: RATE\(m1\)"):
        lines_of([{"expression": "RATE(m1)", "label": ""}], RECORDING)


def test_metrics_of_other_services_have_no_data() -> None:
    throttles = ["AWS/Lambda", "Throttles", {"stat": "Sum", "label": "throttled calls"}]
    assert lines_of(throttles, RECORDING) == [Line("throttled calls", {})]


def emf(minute: int, value: Any, **dimensions: str) -> str:
    names = ["namespace", *dimensions]
    metrics = {"Namespace": "Asya", "Dimensions": [names, ["namespace"]], "Metrics": [{"Name": "Received"}]}
    head = {"Timestamp": minute * 60_000 + 59_999, "CloudWatchMetrics": [metrics]}
    return json.dumps({"_aws": head, "namespace": "shop", **dimensions, "Received": value})


def test_a_recording_has_the_last_complete_minutes() -> None:
    messages = [
        emf(9, [1.0], actor="greet"),
        emf(12, [2.5, 1.0], actor="greet"),
        emf(10, 4, actor="greet"),
        emf(13, [8.0], actor="greet"),
    ]
    recording = from_messages(["START RequestId: 1", *messages, '{"message":"other"}'], {"Received"}, 3, "by hand")
    assert recording.series == [series("Received", {0: [4], 2: [1, 2]}, actor="greet")]
    assert (recording.time(0), recording.time(2)) == ("00:10", "00:12")


def test_a_recording_has_the_metrics_of_the_dashboard_only() -> None:
    assert from_messages([emf(1, 1, actor="greet"), emf(2, 1, actor="greet")], {"Failed"}, 1, "by hand").series == []


def test_the_metrics_of_a_dashboard_are_those_of_its_lines_and_searches() -> None:
    metrics = [of_the_mesh("Failed", "Sum"), of_search("SUM({})", 'MetricName="Received"')]
    widgets = [{"properties": {"metrics": metrics}}, {"properties": {"markdown": "# Mesh"}}]
    assert metric_names({"widgets": widgets}) == {"Failed", "Received"}


def test_a_recording_has_the_last_failures() -> None:
    def failure(second: int, message: str = "envelope failed") -> str:
        line = {"message": message, "timestamp": f"2026-01-02 00:00:{second:02},5+0000", "envelope_id": f"e{second}"}
        return json.dumps({**line, "payload": "{}"})

    messages = [failure(second) for second in range(25)] + [failure(30, "handler failed"), emf(1, 1, actor="greet")]
    failures = from_messages(messages, {"Received"}, 1, "by hand").failures
    assert failures[0] == {"@timestamp": "2026-01-02 00:00:24.5", "envelope_id": "e24"}
    assert [each["envelope_id"] for each in failures] == [f"e{second}" for second in range(24, 4, -1)]


def test_a_log_without_metrics_is_refused() -> None:
    with pytest.raises(ValueError, match="the functions have logged no metrics; send envelopes first"):
        from_messages(["START RequestId: 1"], {"Received"}, 3, "by hand")


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (1, 1), (1.2, 1.5), (58, 60), (60, 60), (61, 80), (173_000, 200_000)]
)
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert nice_top(value) == top


def test_numbers_of_an_axis_are_short() -> None:
    assert [short(value) for value in (0, 0.5, 60, 1500, 200_000, 3_000_000)] == [
        "0",
        "0.5",
        "60",
        "1.5k",
        "200k",
        "3M",
    ]


def test_text_is_escaped_and_shortened() -> None:
    assert ">a &lt; b &amp; c</text>" in svg.text(0, 0, "a < b & c")
    assert svg.shortened("abcdefgh", svg.width_of("abcdef")) == "abcde…"
    assert svg.shortened("abcdef", svg.width_of("abcdef") + 1) == "abcdef"
