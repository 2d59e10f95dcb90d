"""protocol §11, the index of results: writers, compaction and switches."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from asya.protocol.mesh_table import MeshTable
from asya_infra.mesh_file import load_mesh, to_table
from tests.infra.test_permissions import resources

QUEUE = "arn:<Partition>:sqs:<Region>:<AccountId>:asya-shop-x-index"
RULE = "arn:<Partition>:events:<Region>:<AccountId>:rule/asya-shop-result-index"


@pytest.mark.rule("11.index.compacted")
def test_a_schedule_sends_an_envelope_each_night(shop: Any) -> None:
    rule = shop.one("AWS::Events::Rule", Name="asya-shop-result-index")
    assert rule["ScheduleExpression"] == "cron(30 0 * * ? *)"
    (target,) = rule["Targets"]
    assert target["Arn"] == QUEUE
    assert target["InputTransformer"]["InputPathsMap"] == {"event": "$.id", "time": "$.time"}
    sent = target["InputTransformer"]["InputTemplate"].replace("<time>", "2025-11-19T00:30:00Z")
    sent = sent.replace("<event>", "7bf73129-1428-4cd3-a780-95db273d1602")
    assert json.loads(sent) == {
        "id": "x-index-7bf73129-1428-4cd3-a780-95db273d1602",
        "route": {"prev": [], "curr": "x-index", "next": []},
        "payload": {"time": "2025-11-19T00:30:00Z"},
    }


def test_only_the_schedule_may_send_to_the_queue_from_outside(shop: Any) -> None:
    statements = [
        statement
        for policy in shop.resources("AWS::SQS::QueuePolicy", "queues-0")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow" and RULE in str(statement)
    ]
    (statement,) = statements
    assert statement["Principal"] == {"Service": "events.amazonaws.com"}
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": RULE}}


def test_the_job_has_access_to_the_index_only(shop: Any) -> None:
    (policy,) = [
        policy
        for policy in shop.resources("AWS::IAM::ManagedPolicy")
        if policy["ManagedPolicyName"].endswith("asya-shop-x-index-access")
    ]
    bucket = "arn:<Partition>:s3:::asya-shop-<AccountId>-<Region>"
    allowed = {
        (action, resource)
        for statement in policy["PolicyDocument"]["Statement"]
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
        if not action.startswith("s3:ListBucket") and "scratch" not in resource
    }
    days = [f"{bucket}/results/index/days", f"{bucket}/results/index/days/*"]
    writing = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
    assert allowed == {
        ("s3:GetObject", f"{bucket}/results/index"),
        ("s3:GetObject", f"{bucket}/results/index/*"),
        *((action, key) for action in writing for key in days),
        ("kms:Decrypt", "arn:<Partition>:kms:*:*:key/*"),  # of the bucket with its code
    }


def as_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def test_x_sump_may_write_rows_but_no_days(plain: Any) -> None:
    assert resources(plain, "x-sump", "s3:PutObject", "plain-test") >= {
        "arn:<Partition>:s3:::lake-results/sump/*",
        "arn:<Partition>:s3:::lake-results/index/recent/*",
    }


def test_compacted_rows_expire_after_a_month(shop: Any) -> None:
    bucket = shop.one("AWS::S3::Bucket")
    rules = {rule.get("Prefix"): rule for rule in bucket["LifecycleConfiguration"]["Rules"]}
    assert rules["results/index/recent/"]["ExpirationInDays"] == 30
    assert not any(prefix and prefix.startswith("results/index/days") for prefix in rules)


def test_a_mesh_without_a_heavy_actor_writes_rows_without_compaction(plain: Any) -> None:
    queues = {queue["QueueName"] for queue in plain.resources("AWS::SQS::Queue")}
    assert "asya-plain-test-x-index" not in queues
    assert [rule for rule in plain.resources("AWS::Events::Rule") if "result-index" in rule["Name"]] == []


def table_of(folder: Path, more: str) -> MeshTable:
    (folder / "spark_jobs").mkdir()
    (folder / "spark_jobs" / "sales.py").write_text("def count(spark, payload): return payload\n")
    (folder / "functions" / "handlers").mkdir(parents=True)
    file = folder / "mesh.yaml"
    file.write_text(dedent("namespace: shop\nactors: {count: {spark: {job: sales.count}}}\n") + more)
    return to_table(load_mesh(file))


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ("", True),
        ("sink: {index: true}\n", True),
        ("sink: {index: false}\n", False),
        ("sink: {persist: false}\n", False),  # where nothing is written there is nothing to find
    ],
)
def test_the_mesh_file_turns_the_index_off(tmp_path: Path, more: str, kept: bool) -> None:
    table = table_of(tmp_path, more)
    assert table.sink.index is kept
    assert ("x-index" in table.actors) is kept
    if kept:
        index = table.actors["x-index"]
        assert (index.kind, index.can_send_to) == ("spark", ())
        assert index.spark is not None
        assert (index.spark.job, index.spark.shape) == ("asya_spark.result_days.compact", "payload")
