"""Triggers whose tasks may write an object that starts them again are refused."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import problems_of

pytestmark = pytest.mark.usefixtures("folder")

MESH = """
namespace: shop
{storage}
actors:
  a: {{handler: shop.one{a}}}
  b: {{handler: shop.one{b}}}
tools: {{analyse: {{route: [a, b]}}, b: {{}}}}
triggers:
  t: {trigger}
{more}
"""
LANDED = "{route: [a], s3: {bucket: data, prefix: raw/, suffix: .csv}}"


def problems(a: str = "", b: str = "", trigger: str = LANDED, storage: str = "", more: str = "") -> list[str]:
    return problems_of(MESH.format(a=a, b=b, trigger=trigger, storage=storage, more=more))


def access(entry: str) -> str:
    return f", access: [{{bucket: logs, write: x}}, {entry}]"


@pytest.mark.rule("16.objects.loop")
@pytest.mark.parametrize(
    "entry",
    [
        "{bucket: data, write: 'raw/*'}",
        "{bucket: data, write: true}",
        "{bucket: data, write: 'raw/done.csv'}",
        "{bucket: data, write: [x, '*.csv']}",
        "{bucket: data, write: 'r?w/*/part-*'}",
        "{database: sales, location: raw, write: orders}",
        "{statement: {Action: 's3:*', Resource: '*'}}",
        "{statement: {Action: ['s3:put*'], Resource: 'arn:aws:s3:::asya-shop-111122223333-eu-west-1/data/raw/*'}}",
    ],
)
def test_16_an_actor_of_the_route_may_not_write_such_objects(entry: str) -> None:
    [problem] = problems(a=access(entry))
    assert problem.endswith(
        "triggers.t.s3: the actor 'a' of its tasks may write objects that start it again: actors.a.access[1] lets it write keys "
        "of data/raw/*.csv. Let it write elsewhere, or choose a prefix or a suffix that its output does not have"
    )


@pytest.mark.rule("16.objects.loop")
@pytest.mark.parametrize(
    "entry",
    [
        "{bucket: data, read: 'raw/*', write: 'clean/*'}",
        "{bucket: data, write: 'raw/*.parquet'}",
        "{bucket: results, write: 'raw/*.csv'}",
        "{bucket: other, write: true}",
        "{table: rates, write: true}",
        "{statement: {Effect: Deny, Action: 's3:*', Resource: '*'}}",
        "{statement: {Action: 's3:GetObject', Resource: '*'}}",
        "{statement: {Action: 's3:PutObject', Resource: 'arn:aws:s3:::other/*'}}",
    ],
)
def test_16_what_an_actor_writes_elsewhere_starts_nothing(entry: str) -> None:
    assert problems(a=access(entry)) == []


WRITES = access("{bucket: data, write: 'raw/*'}")


@pytest.mark.rule("16.objects.loop")
@pytest.mark.parametrize(
    ("a", "trigger", "more"),
    [
        ("", "{tool: analyse, s3: {bucket: data, prefix: raw/}}", ""),
        ("", "{tool: b, s3: {bucket: data, prefix: raw/}}", ""),
        (", can_send_to: [b]", LANDED, ""),
        (", can_send_to: '*'", LANDED, ""),
        (", resiliency: {policies: {default: {then_route: [b]}}}", LANDED, ""),
        ("", LANDED, "sink: {hooks: [b]}"),
    ],
)
def test_16_so_may_not_an_actor_that_the_task_may_come_to(a: str, trigger: str, more: str) -> None:
    assert problems(a=a, trigger=trigger) == [] or a or more or "tool" in trigger
    [problem] = problems(a=a, b=WRITES, trigger=trigger, more=more)
    assert "the actor 'b' of its tasks may write objects that start it again: actors.b.access[1]" in problem


def test_an_actor_that_the_task_does_not_come_to_may_write_them() -> None:
    """Another tool produces the objects."""
    assert problems(b=WRITES) == []


@pytest.mark.rule("16.objects.loop")
@pytest.mark.parametrize(
    ("source", "storage", "told"),
    [
        ("{bucket: results, prefix: succeeded/}", "", "x-sink writes results/succeeded/*.json"),
        ("{bucket: results, prefix: sump/}", "", "x-sump writes results/sump/*.json"),
        ("{bucket: results, prefix: index/}", "", "x-sink writes results/index/recent/*.jsonl"),
        ("{bucket: ends, prefix: failed/}", "storage: {results_bucket: ends}", "x-sink writes results/failed/*.json"),
        (
            "{bucket: data, suffix: .json}",
            "storage: {results_bucket: ends, data_bucket: ends}",
            "x-sink writes results/succeeded/*.json",
        ),
    ],
)
def test_16_results_of_tasks_may_not_start_them_again(source: str, storage: str, told: str) -> None:
    found = problems(trigger=f"{{route: [a], s3: {source}}}", storage=storage)
    assert any(f"each task may start it again: {told}" in each for each in found), found


def test_all_results_are_one_problem() -> None:
    (problem,) = problems(trigger="{route: [a], s3: {bucket: results}}")
    assert "x-sink writes results/failed/*.json, x-sink writes results/canceled/*.json" in problem
    assert "x-sump writes results/sump/*.json" in problem


def test_other_objects_of_the_results_start_tasks() -> None:
    assert problems(trigger="{route: [a], s3: {bucket: results, prefix: exports/}}") == []
    assert problems(trigger="{route: [a], s3: {bucket: results, suffix: .parquet}}") == []
