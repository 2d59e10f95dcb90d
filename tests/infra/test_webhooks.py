"""Webhooks in the templates: one open route, throttled, whose function may do three things."""

from typing import Any

import pytest

from asya.capabilities.a2a.http_calls import CARD
from asya.gateway.call_table import CALLS
from asya.gateway.doors import doors_of
from asya.protocol import names
from tests.infra.conftest import SynthesizedMesh, synthesize
from tests.infra.test_permissions import BUCKET

MESH = """
namespace: shop
code: handlers
actors:
  greet: {handler: greetings.greet}
gateway: {jwt: {issuer: https://login.example.com/, audience: [shop]}}
operators: ["arn:aws:iam::*:role/Admin"]
triggers:
  pushed: {route: [greet], webhook: {secret: hooks/github, signature: github}}
  paid: {route: [greet], webhook: {secret: "ssm:/hooks/stripe", signature: stripe}}
"""

WEBHOOK = "POST /hooks/{name}"


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    folder = tmp_path_factory.mktemp("webhooks")
    (folder / "handlers").mkdir()
    (folder / "handlers" / "greetings.py").write_text("def greet(payload):\n    return payload\n")
    (folder / "mesh.yaml").write_text(MESH)
    return synthesize(folder / "out", mesh=str(folder / "mesh.yaml"))


def routes(mesh: SynthesizedMesh, api: str) -> dict[str, dict[str, Any]]:
    resources = mesh.templates["gateway"]["Resources"]
    apis = {f"<{key}>": each["Properties"].get("Name") for key, each in resources.items()}
    found = mesh.resources("AWS::ApiGatewayV2::Route", "gateway")
    return {route["RouteKey"]: route for route in found if apis[route["ApiId"]] == api}


def test_16_the_route_is_open_and_only_on_the_signed_api(mesh: SynthesizedMesh, shop: SynthesizedMesh) -> None:
    signed = routes(mesh, "asya-shop")
    assert {key: route["AuthorizationType"] for key, route in signed.items()} == {
        door.key: "NONE" if door.is_open else "AWS_IAM"
        for door in doors_of(call for call in CALLS if call.audience != "holders of links" and call is not CARD)
    }
    tokens = routes(mesh, "asya-shop-jwt")
    assert tokens
    assert WEBHOOK not in tokens
    assert "HookUrl" in mesh.templates["gateway"]["Outputs"]
    assert WEBHOOK not in routes(shop, "asya-shop")
    assert "HookUrl" not in shop.templates["gateway"]["Outputs"]


@pytest.mark.rule("16.webhooks.limits", "13.limits")
def test_16_webhooks_are_throttled(mesh: SynthesizedMesh) -> None:
    stages = mesh.resources("AWS::ApiGatewayV2::Stage", "gateway")
    limits = [each for stage in stages if (each := stage["RouteSettings"].get(WEBHOOK)) is not None]
    assert limits == [{"ThrottlingRateLimit": 50, "ThrottlingBurstLimit": 100}]


def test_16_the_function_reads_keys_and_which_tasks_exist_and_sends_and_nothing_else(mesh: SynthesizedMesh) -> None:
    role = mesh.one("AWS::IAM::Role", RoleName=f"asya-shop-{names.WEBHOOKS}-<Region>")
    assert not role.get("ManagedPolicyArns")
    [policy] = role["Policies"]
    arn = "arn:<Partition>:{}:<Region>:<AccountId>:{}".format
    allowed = {
        (action, resource): statement.get("Condition")
        for statement in policy["PolicyDocument"]["Statement"]
        for action in _list(statement["Action"])
        for resource in _list(statement["Resource"])
        if not action.startswith("logs:")
    }
    existence = {
        "ForAllValues:StringEquals": {"dynamodb:Attributes": ["pk", "sk", "expires_at", "paused"]},
        "Null": {"dynamodb:Attributes": "false"},
        "StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
    }
    assert allowed == {
        ("secretsmanager:GetSecretValue", arn("secretsmanager", "secret:hooks/github-??????")): None,
        ("ssm:GetParameter", arn("ssm", "parameter/hooks/stripe")): None,
        ("sqs:SendMessage", arn("sqs", "asya-shop-x-triggers")): None,
        ("dynamodb:BatchGetItem", arn("dynamodb", "table/asya-shop-tasks")): existence,
        ("s3:PutObject", f"{BUCKET}/inbox/x-triggers/*"): None,
    }


def _list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
