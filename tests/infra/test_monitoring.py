"""protocol §15: dashboards and alarms read metrics that the functions emit, and dashboards do not grow with the mesh.

`tests/unit/asya/test_monitoring.py` compares the declared metrics with the source of the functions.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asya import registry
from asya_infra.constructs.observability.dashboards import actor_page, overview
from asya_infra.constructs.observability.series import PLACEHOLDER
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.options import Options
from tests.infra.conftest import SynthesizedMesh

# A metric: its namespace, its name, and the names of its dimensions without the namespace and the actor of the mesh.
Series = tuple[str, str, frozenset[str]]

SEARCH = re.compile(r"SEARCH\('\{([^}]*)\} MetricName=\"(\w+)\" ([^']*)', '(\w+)', (\d+)\)")
AWS_METRICS = {
    *(("AWS/SQS", name, frozenset({"QueueName"})) for name in (
        "ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible", "NumberOfMessagesSent",
        "ApproximateNumberOfMessagesNotVisible", "NumberOfMessagesDeleted",
    )),
    *(("AWS/Lambda", name, frozenset({"FunctionName"})) for name in ("Errors", "Throttles", "ConcurrentExecutions")),
    ("AWS/Lambda", "Throttles", frozenset()),
}  # fmt: skip
"""The metrics of the AWS services that are used here, as their guides list them."""

METRIC_LIMIT = 2500
WIDGET_LIMIT = 500
SEARCH_LIMIT = 1024


def emitted() -> set[Series]:
    """Every metric of the functions: per actor with its further dimension, and of the mesh."""
    return {
        ("Asya", name, frozenset(dimensions))
        for name, metric in registry.PRODUCT.metrics.items()
        for dimensions in (("namespace", "actor", *filter(None, [metric.split])), ("namespace",))
    }


def bodies(mesh: SynthesizedMesh) -> dict[str, dict[str, Any]]:
    """The dashboards of a mesh by name."""
    return {
        each["DashboardName"]: json.loads(each["DashboardBody"])
        for each in mesh.resources("AWS::CloudWatch::Dashboard", "dashboards")
    }


def on_dashboard(body: dict[str, Any]) -> set[Series]:
    """Every metric that a dashboard shows."""
    found: set[Series] = set()
    for widget in body["widgets"]:
        for metric in widget["properties"].get("metrics", ()):
            if len(metric) == 1:
                searches = SEARCH.findall(metric[0]["expression"])
                assert searches or metric[0]["expression"].startswith(("SORT([", "MAX([")), metric
                for schema, name, *_ in searches:
                    namespace, *dimensions = schema.split(",")
                    found.add((namespace, name, frozenset(dimensions)))
            else:
                namespace, name, *dimensions = metric[:-1]
                found.add((namespace, name, frozenset(dimensions[::2])))
    return found


def of_alarms(mesh: SynthesizedMesh) -> set[Series]:
    """Every metric that an alarm reads."""
    return {series for alarm in mesh.resources("AWS::CloudWatch::Alarm") for series in _sources(alarm)}


def _sources(alarm: dict[str, Any]) -> Iterator[Series]:
    for query in alarm.get("Metrics", ()):
        if "MetricStat" in query:
            metric = query["MetricStat"]["Metric"]
            yield (
                metric["Namespace"],
                metric["MetricName"],
                frozenset(each["Name"] for each in metric.get("Dimensions", ())),
            )
    if "MetricName" in alarm:
        yield alarm["Namespace"], alarm["MetricName"], frozenset(each["Name"] for each in alarm.get("Dimensions", ()))


@pytest.mark.rule("15.dimensions", "15.mesh")
def test_every_metric_of_a_dashboard_or_an_alarm_is_emitted(shop: Any, plain: Any, example: Any) -> None:
    known = emitted() | AWS_METRICS
    for mesh in (shop, plain, example):
        for name, body in bodies(mesh).items():
            assert on_dashboard(body) <= known, name
        assert of_alarms(mesh) <= known


def test_every_emitted_metric_is_on_a_dashboard(shop: Any) -> None:
    shown = {name for body in bodies(shop).values() for _, name, _ in on_dashboard(body)}
    assert {name for _, name, _ in emitted()} <= shown


def test_the_overview_begins_with_four_numbers(shop: Any, plain: Any) -> None:
    def numbers(mesh: Any, name: str) -> list[str]:
        widgets = sorted(bodies(mesh)[name]["widgets"], key=lambda each: (each["y"], each["x"]))
        assert widgets[0]["type"] == "text"
        views = [each for each in widgets if each["properties"].get("view") == "singleValue"]
        assert widgets[1 : 1 + len(views)] == views
        return [each["properties"]["title"] for each in views]

    all_four = ["Failures", "Oldest waiting message", "Open pauses", "Job runs"]
    assert numbers(shop, "asya-shop-<Region>") == all_four
    assert numbers(plain, "asya-plain-test-<Region>") == all_four[:3]


def test_a_variable_picks_the_actor(shop: Any) -> None:
    body = bodies(shop)["asya-shop-<Region>-actor"]
    (variable,) = body["variables"]
    assert (variable["type"], variable["pattern"], variable["populateFrom"]) == ("pattern", PLACEHOLDER, "actor")
    assert variable["search"] == '{Asya,namespace,actor} MetricName="Received" namespace="shop"'
    for widget in body["widgets"]:
        is_comparison = "SORT(" in json.dumps(widget)
        if widget["type"] != "text" and not is_comparison:
            assert PLACEHOLDER in json.dumps(widget), widget["properties"]["title"]


def test_the_crew_and_the_own_actors_have_graphs_of_their_own(shop: Any) -> None:
    widgets = bodies(shop)["asya-shop-<Region>"]["widgets"]
    graphs = {each["properties"].get("title"): str(each) for each in widgets}
    for actor in ("x-sink", "x-sump", "x-dispatch", "x-completion"):
        for title in ("Failures by actor and reason", "Dead letters by actor"):
            assert f'NOT actor="{actor}"' in graphs[title]
        for title in ("Messages received by the crew", "Dead letters of the crew"):
            assert f'NOT actor="{actor}"' not in graphs[title]
            assert f'actor="{actor}"' in graphs[title]


def test_the_logs_on_the_dashboards_exist(shop: Any) -> None:
    groups = {each["LogGroupName"] for each in shop.resources("AWS::Logs::LogGroup")}
    tables = [
        re.findall(r"SOURCE '([^']*)'", widget["properties"]["query"])
        for body in bodies(shop).values()
        for widget in body["widgets"]
        if widget["type"] == "log"
    ]
    assert tables == [
        ["/aws/lambda/asya-shop-x-crew"],
        ["/aws/lambda/asya-shop-x-crew"],
        [f"/aws/lambda/asya-shop-{PLACEHOLDER}"],
    ]
    assert set(tables[0]) <= groups


def test_widgets_lie_side_by_side(shop: Any) -> None:
    for body in bodies(shop).values():
        cells = [
            (x, y)
            for each in body["widgets"]
            for x in range(each["x"], each["x"] + each["width"])
            for y in range(each["y"], each["y"] + each["height"])
        ]
        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < 24


def mesh_of(folder: Path, actors: int) -> Mesh:
    """A mesh with this number of actors, a fifth of them heavy."""
    for path, content in (
        ("handlers/one.py", "def one(payload): return payload\n"),
        ("jobs/heavy.py", "def heavy(spark, payload): return payload\n"),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    kinds = ("{spark: {job: heavy.heavy}}", *["{handler: one.one}"] * 4)
    lines = [f"  actor-{number:03}: {kinds[number % 5]}" for number in range(actors)]
    file = folder / "mesh.yaml"
    head = ("namespace: large", "code: handlers", "jobs: jobs", "notify: {email: ops@example.org}")
    file.write_text("\n".join([*head, "actors:", *lines]) + "\n")
    return Mesh(load_mesh(file, ""), Options(mesh=file))


def shown_metrics(body: dict[str, Any], actors: int) -> int:
    """The number of metrics that a dashboard reads at most, those within expressions included."""
    count = 0
    for widget in body["widgets"]:
        for metric in widget["properties"].get("metrics", ()):
            is_shown_or_read = len(metric) > 1
            searches = [("", "", "", "", "")] if is_shown_or_read else SEARCH.findall(metric[0]["expression"])
            count += sum(_results(schema, name, terms, actors) for schema, name, terms, *_ in searches)
    return count


def _results(schema: str, name: str, terms: str, actors: int) -> int:
    heavy_or_rare = {"RunDelay", "RunsQueued", "RunsRunning", "PendingEnvelopes"}
    if not schema:
        return 1  # no search, but a metric
    if re.search(r'(?<!NOT )\(?actor="', terms):
        return 20
    if name in ("PausesOpen", "PausedAge", "FanInOpen"):
        return 10
    if name in heavy_or_rare:
        return actors // 5
    if name == "JobRuns":
        return actors // 5 * (terms.count("state=") or 6)
    return actors + 20


def test_dashboards_show_300_actors_and_only_the_names_of_queues_and_functions_make_them_larger(tmp_path: Path) -> None:
    def without_listed(body: dict[str, Any]) -> int:
        for widget in body["widgets"]:
            metrics = widget["properties"].get("metrics", [])
            kept = [metric for metric in metrics if metric[-1].get("visible", True)]
            widget["properties"]["metrics"] = kept
        return len(re.sub(r"\[e\dm0[^]]*\]", "", json.dumps(body)))

    few, many = mesh_of(tmp_path / "few", 6), mesh_of(tmp_path / "many", 300)
    for body_of in (overview, actor_page):
        assert shown_metrics(body_of(many), 300) <= METRIC_LIMIT
        for widget in body_of(many)["widgets"]:
            assert len(widget["properties"].get("metrics", ())) <= WIDGET_LIMIT
        assert without_listed(body_of(few)) == without_listed(body_of(many))


def test_no_graph_finds_the_queues_and_functions_of_another_stage(shop: Any, plain: Any) -> None:
    """A search by the prefix `asya-shop-` finds those of `shop-test`, too. Dimensions of the mesh's own metrics are exact."""
    for mesh, namespace in ((shop, "shop"), (plain, "plain-test")):
        listed: dict[str, set[str]] = {"QueueName": set(), "FunctionName": set()}
        for body in bodies(mesh).values():
            for query in re.findall(r"SEARCH\('([^']*)'", "".join(searches(body))):
                assert query.startswith("{Asya,namespace,")
                assert f'namespace="{namespace}"' in query
            for widget in body["widgets"]:
                for metric in widget["properties"].get("metrics", ()):
                    if metric[-1].get("visible") is False:
                        listed[metric[2]].add(metric[3])
        queues = {each["QueueName"] for each in mesh.resources("AWS::SQS::Queue")}
        functions = {each["FunctionName"] for each in mesh.resources("AWS::Lambda::Function") if "FunctionName" in each}
        reports = {f"asya-{namespace}-{name}" for name in ("x-reports", "x-ends", "x-undelivered")}
        assert listed["QueueName"] == {name for name in queues if not name.endswith("-dlq")} - reports
        assert listed["FunctionName"] == functions


def searches(body: dict[str, Any]) -> Iterable[str]:
    for widget in body["widgets"]:
        for metric in widget["properties"].get("metrics", ()):
            if len(metric) == 1:
                yield metric[0]["expression"]


def test_searches_are_within_the_limit_of_characters(shop: Any) -> None:
    for body in bodies(shop).values():
        for expression in searches(body):
            for query in re.findall(r"SEARCH\('([^']*)'", expression):
                assert len(query) + 63 < SEARCH_LIMIT, query  # a namespace may be longer than this one
