"""Tables, bucket and HTTP API in the templates."""

import json
import re
from typing import Any

import pytest

from asya.gateway.call_table import CALLS
from asya.gateway.doors import doors_of
from tests.infra.conftest import SynthesizedMesh


def test_tables_expire_items_and_can_be_restored(shop: Any) -> None:
    tables = {table["TableName"]: table for table in shop.resources("AWS::DynamoDB::Table", "state")}
    assert tables.keys() == {f"asya-shop-{kind}" for kind in ("tasks", "sink", "fan-in", "pending", "hops", "breaker")}
    for table in tables.values():
        assert table["KeySchema"] == [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ]
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_the_indexes_of_the_tasks_table_hold_keys_only(shop: Any) -> None:
    tables = {table["TableName"]: table for table in shop.resources("AWS::DynamoDB::Table", "state")}
    indexes = {index["IndexName"]: index for index in tables["asya-shop-tasks"]["GlobalSecondaryIndexes"]}
    attributes = {
        name: (*(key["AttributeName"] for key in index["KeySchema"]), index["Projection"].get("NonKeyAttributes", []))
        for name, index in indexes.items()
    }
    assert attributes == {
        "waiting": ("waits_in", "waits_since", ["actor"]),
        "listed": ("listed_in", "listed_at", []),
        "children": ("child_of", "listed_at", []),
        "due": ("due_in", "deadline_at", []),
    }


def test_a_mesh_has_all_tables_even_those_that_no_actor_needs(plain: Any) -> None:
    names = {table["TableName"] for table in plain.resources("AWS::DynamoDB::Table")}
    assert names == {f"asya-plain-test-{kind}" for kind in ("tasks", "sink", "fan-in", "pending", "hops", "breaker")}


def state_policies(mesh: Any) -> list[tuple[str, str]]:
    """The policies of the tables and the bucket for deletion and replacement."""
    return [
        (resource["DeletionPolicy"], resource["UpdateReplacePolicy"])
        for resource in mesh.templates["state"]["Resources"].values()
        if resource["Type"] in {"AWS::DynamoDB::Table", "AWS::S3::Bucket"}
    ]


def test_state_outlives_its_stack_unless_its_creation_fails(shop: Any) -> None:
    assert state_policies(shop) == [("RetainExceptOnCreate", "Retain")] * 7


def test_state_is_deleted_with_the_mesh_if_the_mesh_file_says_so(plain: Any) -> None:
    assert state_policies(plain) == [("Delete", "Delete")] * 7


def test_stacks_with_state_that_is_kept_are_protected_from_termination(shop: Any, plain: Any) -> None:
    def protected(mesh: SynthesizedMesh) -> set[str]:
        artifacts = json.loads((mesh.folder / "manifest.json").read_text())["artifacts"]
        return {name for name, each in artifacts.items() if each.get("properties", {}).get("terminationProtection")}

    assert protected(shop) == {"Asya-shop-state", *(f"Asya-shop-queues-{shard}" for shard in range(8))}
    # `storage.removal: delete`, and the local cloud, which ends with its process.
    assert protected(plain) == set()


@pytest.mark.rule("4.claim-check.lifetime")
def test_the_bucket_is_private_encrypted_and_expires_transient_objects(shop: Any) -> None:
    bucket = shop.one("AWS::S3::Bucket")
    assert bucket["BucketName"] == "asya-shop-<AccountId>-<Region>"
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    rules = bucket["LifecycleConfiguration"]["Rules"]
    days = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules if "Prefix" in rule}
    kept = dict.fromkeys(
        ("payloads/", "inbox/", "pending/", "buffered/", "slices/", "hops/", "paused/", "dlq/", "reports/", "waiting/"),
        45,
    )
    assert days == {**kept, "runs/": 14, "data/scratch/": 14, "results/": 90, "results/index/recent/": 30}
    assert "data/" not in days


def test_results_are_kept_forever_by_default(example: Any) -> None:
    rules = example.one("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]
    assert "results/" not in {rule.get("Prefix") for rule in rules}


def test_buckets_refuse_requests_without_tls(shop: Any) -> None:
    (policy,) = shop.resources("AWS::S3::BucketPolicy")
    assert any(
        statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        for statement in policy["PolicyDocument"]["Statement"]
    )


def test_outputs(shop: Any) -> None:
    assert {"DataUri", "ResultsUri", "TasksTable"} <= shop.templates["state"]["Outputs"].keys()
    outputs = shop.templates["gateway"]["Outputs"]
    assert {"GatewayUrl", "GatewayApiId"} <= outputs.keys()
    assert "Fn::ImportValue" not in json.dumps(outputs)  # no stack can import what it exports itself


def test_no_mesh_imports_what_another_one_does_not_export(shop: Any, plain: Any, private: Any, example: Any) -> None:
    """CloudFormation cannot remove an export while a deployed stack imports it, so no export depends on the mesh file."""

    def references(mesh: SynthesizedMesh, key: str) -> set[str]:
        texts = [path.read_text() for path in mesh.folder.glob("*.template.json")]
        return {
            re.sub(r"^Asya-(shop|plain-test|flights)-", "", name) for text in texts for name in re.findall(key, text)
        }

    meshes = (shop, plain, private, example)
    imported = set().union(*(references(mesh, r'"Fn::ImportValue": ?"([^"]+)"') for mesh in meshes))
    assert len(imported) >= 2
    for mesh in meshes:
        assert imported <= references(mesh, r'"Export": ?\{\s*"Name": ?"([^"]+)"')


@pytest.mark.rule("13.signed")
def test_every_route_needs_a_signature_but_the_public_ones(shop: Any) -> None:
    routes = {route["RouteKey"]: route["AuthorizationType"] for route in shop.resources("AWS::ApiGatewayV2::Route")}
    calls = [call for call in CALLS if call.audience == "clients"]
    assert routes == {door.key: "NONE" if door.is_open else "AWS_IAM" for door in doors_of(calls)}
    assert {call.route for call in calls if call.is_public} == {
        "GET /.well-known/agent-card.json",
        "GET /api/v1/mesh/{id}/stream",  # looks for a token itself
        "GET /health",
    }


def test_requests_are_logged(shop: Any) -> None:
    stage = shop.one("AWS::ApiGatewayV2::Stage")
    assert stage["StageName"] == "$default"
    assert "$context.identity.userArn" in stage["AccessLogSettings"]["Format"]


@pytest.mark.rule("13.limits")
def test_calls_are_throttled(shop: Any) -> None:
    stage = shop.one("AWS::ApiGatewayV2::Stage")
    assert stage["DefaultRouteSettings"] == {"ThrottlingRateLimit": 500, "ThrottlingBurstLimit": 1000}
    assert {route: each["ThrottlingRateLimit"] for route, each in stage["RouteSettings"].items()} == {
        "ANY /{proxy+}": 2000,
    }


def test_integrations_use_version_2(shop: Any) -> None:
    for integration in shop.resources("AWS::ApiGatewayV2::Integration"):
        assert integration["PayloadFormatVersion"] == "2.0"


def test_every_taggable_resource_has_the_tags(shop: Any) -> None:
    for kind in (
        "AWS::SQS::Queue",
        "AWS::Lambda::Function",
        "AWS::DynamoDB::Table",
        "AWS::IAM::Role",
        "AWS::S3::Bucket",
    ):
        for resource in shop.resources(kind):
            tags = {tag["Key"]: tag["Value"] for tag in resource["Tags"]}
            assert tags.items() >= {"asya:namespace": "shop", "team": "orders"}.items()
