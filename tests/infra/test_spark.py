"""The resources of heavy actors, which a mesh without one does not have."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from asya_infra.constructs.spark import application
from asya_infra.deployment.removed_queues import no_longer_heavy
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.sections import read_section

# An event of the service's own shape, every field it has.
RECORDED = json.loads((Path(__file__).parent / "emr-job-run-state-change.json").read_text())


def matches(pattern: Any, event: Any) -> bool:
    """Match an event against an EventBridge pattern of plain values and prefixes."""
    if isinstance(pattern, dict):
        return isinstance(event, dict) and all(key in event and matches(pattern[key], event[key]) for key in pattern)
    return any(event.startswith(each["prefix"]) if isinstance(each, dict) else event == each for each in pattern)


def test_a_mesh_without_heavy_actors_has_no_spark_resources(plain: Any) -> None:
    for kind in ("AWS::EMRServerless::Application", "AWS::IAM::ManagedPolicy"):
        assert plain.resources(kind) == []
    rules = {rule["Name"] for rule in plain.resources("AWS::Events::Rule")}
    assert not rules & {"asya-plain-test-job-runs", "asya-plain-test-reconcile"}
    names = [function["FunctionName"] for function in plain.resources("AWS::Lambda::Function")]
    assert not any("dispatch" in name or "completion" in name for name in names)


def test_the_application(shop: Any) -> None:
    application = shop.one("AWS::EMRServerless::Application")
    assert application["ReleaseLabel"] == "emr-spark-8.1.0"
    assert (application["Type"], application["Architecture"]) == ("SPARK", "ARM64")
    assert application["MaximumCapacity"] == {"Cpu": "16 vCPU", "Memory": "128 GB"}
    assert application["AutoStopConfiguration"] == {"Enabled": True, "IdleTimeoutMinutes": 15}
    assert "InitialCapacity" not in application


def test_the_application_has_a_stack_of_its_own(shop: Any, plain: Any, example: Any) -> None:
    template = shop.templates["spark"]
    assert {resource["Type"] for resource in template["Resources"].values()} == {
        "AWS::EMRServerless::Application",
        "AWS::SSM::Parameter",
    }
    assert "Outputs" not in template  # an export could not change
    assert "spark" not in plain.templates
    assert "spark" not in example.templates


def test_no_tag_of_cloudformation_changes_the_application(shop: Any) -> None:
    assert "Tags" not in shop.one("AWS::EMRServerless::Application")
    assert shop.one("AWS::SSM::Parameter")["Tags"] == {"asya:namespace": "shop", "team": "orders"}
    assert "Metadata" not in shop.templates["spark"]
    manifest = json.loads((shop.folder / "manifest.json").read_text())
    # This one never changes.
    assert manifest["artifacts"]["Asya-shop-spark"]["properties"]["tags"] == {"asya:namespace": "shop"}


def test_the_functions_read_the_id_of_the_application_from_ssm(shop: Any) -> None:
    parameter = shop.one("AWS::SSM::Parameter", Name="/asya/shop/spark-application-id")
    assert parameter["Value"] == "<Application.ApplicationId>"
    read = {
        name: each["Default"]
        for name, each in shop.templates["functions-0"]["Parameters"].items()
        if each["Default"] == parameter["Name"]
    }
    assert len(read) == 1
    variables = shop.function("x-dispatch")["Environment"]["Variables"]
    assert variables["ASYA_SPARK_APPLICATION_ID"] == f"<{next(iter(read))}>"
    manifest = json.loads((shop.folder / "manifest.json").read_text())
    assert "Asya-shop-spark" in manifest["artifacts"]["Asya-shop-functions-0"]["dependencies"]


def test_the_application_limits_its_job_runs(shop: Any) -> None:
    scheduler = shop.one("AWS::EMRServerless::Application")["SchedulerConfiguration"]
    assert scheduler == {"MaxConcurrentRuns": 5, "QueueTimeoutMinutes": 360}


def test_warm_workers_and_concurrent_runs() -> None:
    section = {"warm": {"drivers": 1, "executors": 4}, "max_concurrent_runs": 7, "max_memory": "64g", "idle_stop": "5m"}
    file = read_section(
        MeshFile,
        {
            "namespace": "shop",
            "actors": {
                "small": {"spark": {"job": "jobs.one"}},
                "large": {"spark": {"job": "jobs.two", "executors": {"cores": 4, "memory": "12g", "disk": "40g"}}},
            },
            "spark": {"application": section},
        },
    )
    stack = Stack(App())
    mesh: Any = SimpleNamespace(namespace="shop", file=file, spark_vpc=None)
    application(stack, mesh)
    (resource,) = Template.from_stack(stack).find_resources("AWS::EMRServerless::Application").values()
    made = resource["Properties"]
    assert made["SchedulerConfiguration"] == {"MaxConcurrentRuns": 7, "QueueTimeoutMinutes": 360}
    assert made["MaximumCapacity"] == {"Cpu": "16 vCPU", "Memory": "64 GB"}
    assert made["AutoStopConfiguration"]["IdleTimeoutMinutes"] == 5
    assert {each["Key"]: each["Value"]["WorkerCount"] for each in made["InitialCapacity"]} == {
        "Driver": 1,
        "Executor": 4,
    }
    assert {each["Key"]: each["Value"]["WorkerConfiguration"] for each in made["InitialCapacity"]} == {
        "Driver": {"Cpu": "1 vCPU", "Memory": "3 GB"},
        "Executor": {"Cpu": "4 vCPU", "Memory": "14 GB", "Disk": "40 GB"},
    }


def test_an_existing_application_replaces_the_new_one(example: Any) -> None:
    assert example.resources("AWS::EMRServerless::Application") == []
    variables = example.function("x-dispatch", "flights")["Environment"]["Variables"]
    assert variables["ASYA_SPARK_APPLICATION_ID"] == "00abc123"


def test_run_events_reach_the_completion_queue(example: Any) -> None:
    rule = example.one("AWS::Events::Rule", Name="asya-flights-job-runs")
    assert matches(rule["EventPattern"], RECORDED)
    assert [target["Arn"] for target in rule["Targets"]] == [
        "arn:<Partition>:sqs:<Region>:<AccountId>:asya-flights-x-completion"
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("source", "my.app"),
        ("detail-type", "EMR Serverless Application State Change"),
        ("detail", {**RECORDED["detail"], "applicationId": "00other"}),
        ("detail", {**RECORDED["detail"], "jobRunName": "asya.flights-test.clean-flights.0000000001"}),
        ("detail", {**RECORDED["detail"], "jobRunName": "nightly"}),
    ],
)
def test_other_events_do_not_reach_it(example: Any, key: str, value: Any) -> None:
    rule = example.one("AWS::Events::Rule", Name="asya-flights-job-runs")
    assert not matches(rule["EventPattern"], {**RECORDED, key: value})


def test_only_this_rule_may_send_to_the_completion_queue(example: Any) -> None:
    allowed = [
        statement
        for policy in example.resources("AWS::SQS::QueuePolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow" and "xcompletion" in str(policy["Queues"])
    ]
    assert len(allowed) == 1
    assert allowed[0]["Principal"] == {"Service": "events.amazonaws.com"}
    rule = "arn:<Partition>:events:<Region>:<AccountId>:rule/asya-flights-job-runs"
    assert allowed[0]["Condition"] == {"ArnEquals": {"aws:SourceArn": rule}}


def test_each_heavy_actor_has_a_policy_for_its_runs(shop: Any) -> None:
    policy = shop.one("AWS::IAM::ManagedPolicy", ManagedPolicyName="<Region>-asya-shop-crunch-access")
    resources = {
        resource
        for statement in policy["PolicyDocument"]["Statement"]
        for resource in ([statement["Resource"]] if isinstance(statement["Resource"], str) else statement["Resource"])
    }
    bucket = "arn:<Partition>:s3:::asya-shop-<AccountId>-<Region>"
    folders = [f"{bucket}/data/{prefix}" for prefix in ("clean", "stats")]
    secret = "arn:<Partition>:secretsmanager:<Region>:<AccountId>:secret:shop/crunch-??????"
    keys = "arn:<Partition>:kms:*:*:key/*"
    assert resources == {bucket, *folders, *(f"{folder}/*" for folder in folders), secret, keys}


def test_the_roles_of_job_runs_tell_which_actors_are_heavy(shop: Any) -> None:
    """`make deploy` compares them: an actor that becomes light loses its role."""
    parts = [json.loads(file.read_text()) for file in shop.folder.glob("*-functions-*.template.json")]
    actors = ["crunch", "free", "gather", "intake", "score", "x-index"]
    heavy = [actor for part in parts for actor in no_longer_heavy(part, {}, actors, "shop", "eu-west-1")]
    assert sorted(heavy) == ["crunch", "x-index"]
    assert not any(no_longer_heavy(part, part, actors, "shop", "eu-west-1") for part in parts)


@pytest.mark.rule("10.resident.commit")
def test_10_commits_of_actors_that_linger_reach_the_completion(shop: Any, example: Any) -> None:
    bucket = shop.one("AWS::S3::Bucket")
    assert bucket["NotificationConfiguration"] == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    rule = shop.one("AWS::Events::Rule", Name="asya-shop-commits")
    assert rule["EventPattern"] == {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {
            "bucket": {"name": ["asya-shop-<AccountId>-<Region>"]},
            "object": {"key": [{"wildcard": "runs/crunch/*/commit.json"}]},
        },
    }
    policy = json.dumps(shop.resources("AWS::SQS::QueuePolicy"))
    for name in ("asya-shop-job-runs", "asya-shop-commits"):
        assert f"rule/{name}" in policy
    # A mesh whose runs end has none of it.
    assert "NotificationConfiguration" not in example.one("AWS::S3::Bucket")
    assert not [rule for rule in example.resources("AWS::Events::Rule") if rule["Name"].endswith("-commits")]
