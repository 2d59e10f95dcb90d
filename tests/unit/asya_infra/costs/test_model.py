"""The costs of a mesh: each resource that AWS charges for adds its price, and nothing else does."""

from typing import Any

import pytest

from asya_infra.costs import model, prices
from asya_infra.costs.counts import FULL, LOADS, SINGLE, counts

METRIC = {"Dimensions": [{"Name": "QueueName", "Value": "asya-shop-bill"}], "MetricName": "Age", "Namespace": "AWS/SQS"}
MINUTES = 730 * 60


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def source(queue: str = "bill", **properties: Any) -> dict[str, Any]:
    arn = {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f":sqs:eu-west-1:1:asya-shop-{queue}"]]}
    return resource("AWS::Lambda::EventSourceMapping", EventSourceArn=arn, **properties)


def rule(expression: str, target: Any = None) -> dict[str, Any]:
    arn = target or {"Fn::GetAtt": ["Sweep", "Arn"]}
    return resource("AWS::Events::Rule", ScheduleExpression=expression, Targets=[{"Arn": arn, "Id": "sweep"}])


def dollars(**resources: dict[str, Any]) -> float:
    return model.total(model.idle({"stack": {"Resources": resources}}))


@pytest.mark.parametrize(
    ("kind", "price"),
    [
        (resource("AWS::KMS::Key"), 1.0),
        (resource("AWS::CloudWatch::Dashboard"), 3.0),
        (resource("AWS::CloudWatch::Alarm", **METRIC), 0.1),
        (
            resource(
                "AWS::CloudWatch::Alarm",
                Metrics=[{"Expression": "m0 + m1"}, *({"MetricStat": {"Metric": METRIC}} for _ in range(2))],
            ),
            0.2,
        ),
        (source(ScalingConfig={"MaximumConcurrency": 50}), 5 * 3 * MINUTES * 0.4e-6),
        (source(), 2 * 3 * MINUTES * 0.4e-6),
        (source(ProvisionedPollerConfig={"MinimumPollers": 3}), 3 * 730 * 0.00925),
        (resource("AWS::Lambda::EventSourceMapping", EventSourceArn={"Fn::ImportValue": "stream"}), 0),
        (resource("AWS::SQS::Queue", KmsMasterKeyId="arn:aws:kms:eu-west-1:1:key/own"), 1.0),
        (resource("AWS::SQS::Queue"), 0),
        (resource("AWS::Lambda::Function", MemorySize=512), 0),
        (resource("AWS::DynamoDB::Table"), 0),
    ],
)
def test_what_a_resource_adds(kind: dict[str, Any], price: float) -> None:
    assert dollars(one=kind) == pytest.approx(price)


def test_queues_with_one_key_of_the_user_add_it_once() -> None:
    queue = resource("AWS::SQS::Queue", KmsMasterKeyId="arn:aws:kms:eu-west-1:1:key/own")
    assert dollars(one=queue, other=queue) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("expression", "minutes"), [("rate(1 minute)", 1), ("rate(5 minutes)", 5), ("rate(1 hour)", 60)]
)
def test_a_sweep_costs_its_calls_its_time_and_what_it_uses(expression: str, minutes: int) -> None:
    function = resource("AWS::Lambda::Function", Environment={"Variables": {"ASYA_ACTOR": "x-pause-sweep"}})
    used = counts()["sweeps"]["x-pause-sweep"]["base"]
    runs = MINUTES / minutes
    expected = (
        runs * (0.2e-6 + 0.2 * 0.5 * prices.LAMBDA_SECOND.dollars)
        + runs * used["read units"] * prices.READ_UNIT.dollars
        + runs * used.get("log bytes", 0) / 1e9 * 0.5
    )
    assert "custom metrics" not in used
    assert dollars(Sweep=function, rule=rule(expression)) == pytest.approx(expected)


def test_sweeps_of_a_mesh_with_alarms_write_a_metric_each_and_one_of_the_mesh() -> None:
    def sweep(name: str, **more: str) -> Any:
        return resource("AWS::Lambda::Function", Environment={"Variables": {"ASYA_ACTOR": name, **more}})

    silent, counted = (
        dollars(a=sweep("x-dlq", **more), b=sweep("x-task-sweep", **more)) for more in ({}, {"ASYA_HEARTBEATS": "on"})
    )
    assert counted - silent == pytest.approx(3 * prices.METRIC.dollars)


@pytest.mark.parametrize(
    ("queue", "is_watched"),
    [("bill", True), ("x-sink", True), ("x-dispatch", True), ("x-ends", False), ("x-push", False)],
)
def test_a_queue_with_envelopes_adds_what_sweeps_do_for_it(queue: str, is_watched: bool) -> None:
    function = resource("AWS::Lambda::Function", Environment={"Variables": {"ASYA_ACTOR": "x-dlq"}})
    sweep = {"Sweep": function, "rule": rule("rate(1 minute)")}
    more = dollars(**sweep, feed=source(queue)) - dollars(**sweep) - dollars(feed=source(queue))
    assert more == pytest.approx(MINUTES * 0.4e-6 if is_watched else 0)


def test_the_nightly_job_run_of_the_index() -> None:
    queue = {"Fn::Join": ["", ["arn:aws:sqs:eu-west-1:1:", "asya-shop-x-index"]]}
    hours = 30 * 3 / 60 * 3
    expected = hours * (prices.VCPU_HOUR.dollars + 3 * prices.SPARK_GB_HOUR.dollars)
    assert dollars(rule=rule("cron(30 0 * * ? *)", queue)) == pytest.approx(expected)


def test_one_actor_is_what_a_mesh_costs_more_with_it() -> None:
    template = {"Resources": {"feed": source(), "alarm": resource("AWS::CloudWatch::Alarm", **METRIC)}}
    [polling, metrics] = model.idle_actor({"stack": template}, "bill")
    assert (polling.quantity, metrics.quantity) == (2 * 3 * MINUTES, 1)
    assert model.idle_actor({"stack": template}, "ship") == []


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (1, 1, "costs +$0.00 a month"),
        (0, 1, "costs +$3.00 a month"),
        (2, 1, "costs -$3.00 a month"),
    ],
)
def test_what_a_deployment_changes(before: int, after: int, text: str) -> None:
    def template(dashboards: int) -> Any:
        board = resource("AWS::CloudWatch::Dashboard")
        return {"stack": {"Resources": {f"board{number}": board for number in range(dashboards)}}}

    assert model.change(template(before), template(after)) == text


def test_object_events_charge_each_object_that_is_written() -> None:
    bucket = resource("AWS::S3::Bucket", NotificationConfiguration={"EventBridgeConfiguration": {}})
    assert model.sends_object_events({"stack": {"Resources": {"bucket": bucket}}})
    used = counts()["loads"][FULL.name]["task"]
    without, with_events = (model.total(model.calls(used, FULL, object_events=each)) for each in (False, True))
    assert with_events - without == pytest.approx(used["s3 writes"])


def test_every_use_that_is_measured_has_a_price() -> None:
    """A count that the model leaves out would make the mesh look cheap."""
    for load in LOADS:
        for used in counts()["loads"][load.name].values():
            for name in used.keys() - {"custom metrics"}:
                assert model.total(model.calls({name: 1.0}, load)) > 0, name


def test_full_batches_are_cheaper_and_within_the_goal() -> None:
    hops = [model.total(model.calls(counts()["loads"][load.name]["hop"], load)) for load in (FULL, SINGLE)]
    assert hops[0] <= 1.40
    assert hops[0] < hops[1]
