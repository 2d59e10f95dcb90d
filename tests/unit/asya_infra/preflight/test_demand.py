"""The demand of a mesh, read from the output of `cdk synth`."""

import json
from pathlib import Path
from typing import Any

import pytest

from asya_infra.preflight.demand import AssemblyError, NamedResource, demand, read_demand

STATE: dict[str, Any] = {
    "Resources": {
        "Table": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "asya-shop-tasks"}},
        "Bucket": {
            "Type": "AWS::S3::Bucket",
            "Properties": {
                "BucketName": {"Fn::Join": ["", ["asya-shop-", {"Ref": "AWS::AccountId"}, "-", {"Ref": "AWS::Region"}]]}
            },
        },
    }
}
FUNCTIONS: dict[str, Any] = {
    "Resources": {
        "Live": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"FunctionName": "asya-shop-x-gateway-live", "ReservedConcurrentExecutions": 50},
        },
        "Bill": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "asya-shop-bill"}},
        "Warm": {
            "Type": "AWS::Lambda::Alias",
            "Properties": {"ProvisionedConcurrencyConfig": {"ProvisionedConcurrentExecutions": 3}},
        },
        "FeedA": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "ScalingConfig": {"MaximumConcurrency": 50},
                "BatchSize": 100,
                "EventSourceArn": {"Fn::Join": ["", ["arn:aws:sqs:", {"Ref": "AWS::Region"}, ":1:asya-shop-bill"]]},
            },
        },
        "FeedB": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "ScalingConfig": {"MaximumConcurrency": 20},
                "EventSourceArn": "arn:aws:sqs:eu-central-1:1:asya-shop-mail",
            },
        },
        "FeedC": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "ProvisionedPollerConfig": {"MinimumPollers": 2, "MaximumPollers": 5},
                "EventSourceArn": "arn:aws:sqs:eu-central-1:1:asya-shop-ship",
            },
        },
        "Stream": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {}},
        "Role": {"Type": "AWS::IAM::Role", "Properties": {}},
        "Access": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {}},
        "Application": {
            "Type": "AWS::EMRServerless::Application",
            "Properties": {"MaximumCapacity": {"Cpu": "16 vCPU", "Memory": "128 GB"}},
        },
    }
}
TEMPLATES = {"Asya-shop-state": STATE, "Asya-shop-functions-0": FUNCTIONS}


def artifacts(environment: str = "aws://unknown-account/unknown-region") -> list[dict[str, Any]]:
    properties = {
        "requiresBootstrapStackVersion": 6,
        "bootstrapStackVersionSsmParameter": "/cdk-bootstrap/mine/version",
    }
    return [{"type": "cdk:tree"}, {"environment": environment, "properties": properties}]


def test_the_demand_is_the_sum_of_all_templates() -> None:
    made = demand(artifacts(), TEMPLATES, Path("cdk.out"))
    assert made.namespace == "shop"
    assert made.reserved == {"asya-shop-x-gateway-live": 50}
    assert (made.provisioned, made.source_concurrency, made.max_vcpu) == (3, 120, 16)
    # A provisioned poller starts 10 executions at once.
    assert made.in_flight == {"asya-shop-bill": 5_000, "asya-shop-mail": 200, "asya-shop-ship": 500}
    assert (made.roles, made.policies) == (1, 1)
    assert (made.bootstrap_version, made.bootstrap_parameter) == (6, "/cdk-bootstrap/mine/version")


def test_names_get_the_account_and_the_region() -> None:
    named = demand(artifacts(), TEMPLATES, Path("cdk.out")).named("123456789012", "eu-central-1")
    assert named == {
        NamedResource("table", "asya-shop-tasks"),
        NamedResource("bucket", "asya-shop-123456789012-eu-central-1"),
    }


def test_the_environment_of_the_stacks_is_known_only_if_they_name_it() -> None:
    free = demand(artifacts(), TEMPLATES, Path("cdk.out"))
    assert (free.account, free.region) == (None, None)
    bound = demand(artifacts("aws://123456789012/eu-central-1"), TEMPLATES, Path("cdk.out"))
    assert (bound.account, bound.region) == ("123456789012", "eu-central-1")


def test_the_demand_is_read_from_the_folder(tmp_path: Path) -> None:
    for stack, template in TEMPLATES.items():
        (tmp_path / f"{stack}.template.json").write_text(json.dumps(template))
    stacks = {
        stack: {"type": "aws:cloudformation:stack", "properties": {"templateFile": f"{stack}.template.json"}}
        for stack in TEMPLATES
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": stacks}))
    assert read_demand(tmp_path).stacks == ("Asya-shop-functions-0", "Asya-shop-state")


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssemblyError, match="is not the output of `cdk synth`"):
        read_demand(tmp_path)
    (tmp_path / "manifest.json").write_text('{"artifacts": {}}')
    with pytest.raises(AssemblyError, match="has no stack Asya-…-state"):
        read_demand(tmp_path)
