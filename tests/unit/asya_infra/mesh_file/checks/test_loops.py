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
        "{statement: {Action: 's3:*', Resource: 'arn:aws:s3:eu-west-1:111122223333:accesspoint/raw/object/*'}}",
        "{statement: {Action: ['s3:put*'], Resource: 'arn:aws:s3:::asya-shop-111122223333-eu-west-1/data/raw/*'}}",
    ],
)
def test_16_an_actor_of_the_route_may_not_write_such_objects(entry: str) -> None:
    [problem] = problems(a=access(entry))
    assert problem.endswith(
        "triggers.t.s3: its own tasks may start it again: actors.a.access[1] lets it write keys of data/raw/*.csv. "
        "Let it write elsewhere, or choose a prefix or a suffix that its output does not have"
    )


@pytest.mark.rule("16.objects.loop")
def test_16_a_second_source_that_never_loops_is_no_reason_to_crash() -> None:
    both = "{route: [a], cron: 0 3 * * *, s3: {bucket: data, prefix: raw/}}"
    found = problems(a=access("{bucket: data, write: 'raw/*'}"), trigger=both)
    assert len(found) == 2
    assert "triggers.t: has cron and s3; a trigger has one source" in found[0]
    assert "triggers.t.s3: its own tasks may start it again" in found[1]


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
    assert "its own tasks may start it again: actors.b.access[1]" in problem


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
    assert any("its own tasks may start it again: " in each and told in each for each in found), found


def test_all_results_are_one_problem() -> None:
    (problem,) = problems(trigger="{route: [a], s3: {bucket: results}}")
    assert "x-sink writes results/failed/*.json, x-sink writes results/canceled/*.json" in problem
    assert "x-sump writes results/sump/*.json" in problem


def test_other_objects_of_the_results_start_tasks() -> None:
    assert problems(trigger="{route: [a], s3: {bucket: results, prefix: exports/}}") == []
    assert problems(trigger="{route: [a], s3: {bucket: results, suffix: .parquet}}") == []


LOOPS = """
namespace: shop
actors:
  a: {{handler: shop.one{a}}}
  b: {{handler: shop.one{b}}}
  heavy: {{spark: {{job: heavy.crunch}}}}
triggers:
  first: {{route: [a], {first}}}
  second: {{route: [{second_route}], {second}}}
  hourly: {{route: [a], cron: "0 * * * *"}}
"""
IN, OUT = "s3: {bucket: data, prefix: in/}", "s3: {bucket: data, prefix: out/}"
PUTS = "{statement: {Action: events:PutEvents, Resource: 'arn:aws:events:eu-west-1:111122223333:event-bus/default'%s}}"
RAW = "source: aws.s3, detail: {bucket: {name: [lake]}, object: {key: [{prefix: raw/}]}}"
SHOP_ONLY = ", Condition: {StringEquals: {'events:source': shop}}"


def loops(first: str, second: str, a: str = "", b: str = "", second_route: str = "b") -> list[str]:
    def entry(text: str) -> str:
        return f", access: [{text}]" if text and not text.startswith(",") else text

    return problems_of(LOOPS.format(first=first, second=second, a=entry(a), b=entry(b), second_route=second_route))


@pytest.mark.rule("16.loop")
def test_16_two_triggers_may_not_start_each_other() -> None:
    (problem,) = loops(IN, OUT, a="{bucket: data, write: 'out/*'}", b="{bucket: data, write: 'in/*'}")
    assert problem.endswith(
        "triggers.first.s3: it and 'second' may start each other for ever: a task of 'first' may start 'second': "
        "actors.a.access[0] lets it write keys of data/out/*; a task of 'second' may start 'first': actors.b.access[0] lets it "
        "write keys of data/in/*. Let it write elsewhere, or choose a prefix or a suffix that its output does not have"
    )
    assert loops(IN, OUT, a="{bucket: data, write: 'out/*'}", b="{bucket: data, write: 'done/*'}") == []


@pytest.mark.rule("16.loop")
@pytest.mark.parametrize(
    ("event", "writes", "is_loop"),
    [
        ("source: shop", PUTS % "", True),
        ("detail-type: order", PUTS % "", True),
        ("source: shop", PUTS % SHOP_ONLY, True),
        ("source: shop", "{statement: {Action: 'events:*', Resource: '*'}}", True),
        ("source: other", PUTS % SHOP_ONLY, False),
        ("source: aws.ec2", PUTS % "", False),
        ("source: shop, bus: orders", PUTS % "", False),
        ("source: shop", "{statement: {Effect: Deny, Action: events:PutEvents, Resource: '*'}}", False),
        ("source: shop", "{statement: {Action: events:PutRule, Resource: '*'}}", False),
        (
            "source: aws.s3, detail: {bucket: {name: [lake]}, object: {key: [{prefix: raw/}]}}",
            "{bucket: lake, write: 'raw/*'}",
            True,
        ),
        ("source: aws.s3, detail: {bucket: {name: [lake]}}", "{bucket: lake, write: 'raw/*'}", True),
        (
            "source: aws.s3, detail: {bucket: {name: [lake]}, object: {key: [{prefix: raw/}]}}",
            "{bucket: lake, write: 'out/*'}",
            False,
        ),
        ("source: aws.s3, detail-type: Object Deleted", "{bucket: lake, write: true}", False),
    ],
)
@pytest.mark.parametrize("is_own", [True, False])
def test_16_events_that_tasks_send_are_part_of_loops(event: str, writes: str, is_loop: bool, is_own: bool) -> None:
    if is_own:
        found = loops(f"event: {{{event}}}", OUT, a=writes)
    else:
        found = loops(f"event: {{{event}}}", OUT, a="{bucket: data, write: 'out/*'}", b=writes)
    assert len(found) == is_loop, found
    assert all(("its own tasks may start it again" in each) is is_own for each in found)


@pytest.mark.rule("16.loop")
@pytest.mark.parametrize(
    ("event", "is_loop"),
    [
        ("source: aws.emr-serverless", True),
        (
            "source: aws.emr-serverless, detail-type: EMR Serverless Job Run State Change, detail: {state: [FAILED]}",
            True,
        ),
        ("source: aws.emr-serverless, detail: {applicationId: [00f1]}", False),
        ("source: aws.emr-serverless, bus: orders", False),
    ],
)
def test_16_so_are_the_events_of_job_runs(event: str, is_loop: bool) -> None:
    found = loops(IN, f"event: {{{event}}}", second_route="heavy")
    assert len(found) == is_loop, found


@pytest.mark.rule("16.loop")
@pytest.mark.parametrize("holds", [", secrets: {KEY: hooks/shop}", "{secret: hooks/shop, read: true}"])
def test_16_so_is_an_actor_with_the_keys_of_a_webhook(holds: str) -> None:
    """It can sign a call."""
    hook = "webhook: {secret: hooks/%s, signature: hmac-sha256}"
    (problem,) = loops(hook % "shop", OUT, a="{bucket: data, write: 'out/*'}", b=holds)
    assert "has the keys of the webhook. " in problem
    assert problem.endswith("Give the webhook a secret of its own")
    assert loops(hook % "other", OUT, a="{bucket: data, write: 'out/*'}", b=holds) == []


@pytest.mark.rule("16.loop")
def test_16_a_longer_loop_is_one_problem() -> None:
    """Each trigger of it is named once, in the order of the starts; a trigger that only starts it is not."""
    text = "namespace: shop\nactors:\n"
    for number in range(4):
        text += f"  a{number}: {{handler: shop.one, access: [{{bucket: data, write: 'p{(number + 1) % 4}/*'}}]}}\n"
    text += "triggers:\n  hourly: {route: [a0], cron: '0 * * * *'}\n"
    for number in (2, 0, 3, 1):
        text += f"  t{number}: {{route: [a{number}], s3: {{bucket: data, prefix: p{number}/}}}}\n"
    (problem,) = problems_of(text)
    assert "triggers.t2.s3: it and 't3' and 't0' and 't1' may start each other for ever" in problem
