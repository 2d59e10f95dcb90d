"""The second HTTP API, for callers with a token (JWT), in the template of a mesh that has one."""

import json
from typing import Any

import pytest

from asya.capabilities.a2a.http_calls import CARD
from asya.gateway.call_table import CALLS
from asya.gateway.doors import doors_of

SIGNED, TOKENS = "asya-plain-test", "asya-plain-test-jwt"
SIGNED_CALLS = [call for call in CALLS if call.audience != "other systems" and call is not CARD]
"""The mesh has callbacks, no webhooks and no tools."""


@pytest.fixture(scope="module")
def apis(plain: Any) -> dict[str, str]:
    """The names of the APIs, by the references of their resources."""
    resources = plain.templates["gateway"]["Resources"].items()
    return {
        f"<{key}>": each["Properties"]["Name"] for key, each in resources if each["Type"] == "AWS::ApiGatewayV2::Api"
    }


def of(mesh: Any, apis: dict[str, str], kind: str, name: str) -> list[dict[str, Any]]:
    """The resources of one API."""
    return [each for each in mesh.resources(f"AWS::ApiGatewayV2::{kind}", "gateway") if apis[each["ApiId"]] == name]


def test_the_second_api_is_optional(plain: Any, shop: Any, apis: dict[str, str]) -> None:
    assert sorted(apis.values()) == [SIGNED, TOKENS]
    assert {"JwtGatewayUrl", "JwtGatewayApiId"} <= plain.templates["gateway"]["Outputs"].keys()
    assert len(shop.resources("AWS::ApiGatewayV2::Api")) == 1
    assert shop.resources("AWS::ApiGatewayV2::Authorizer") == []
    assert not {name for name in shop.templates["gateway"]["Outputs"] if "Jwt" in name}


@pytest.mark.rule("13.jwt")
def test_the_authorizer_checks_issuer_and_audience(plain: Any, apis: dict[str, str]) -> None:
    [authorizer] = plain.resources("AWS::ApiGatewayV2::Authorizer")
    assert apis[authorizer["ApiId"]] == TOKENS
    assert (authorizer["AuthorizerType"], authorizer["IdentitySource"]) == ("JWT", ["$request.header.Authorization"])
    assert authorizer["JwtConfiguration"] == {
        "Issuer": "https://login.example.com/",
        "Audience": ["plain", "plain-web"],
    }


@pytest.mark.rule("13.jwt")
def test_every_route_needs_a_token_but_the_public_ones(plain: Any, apis: dict[str, str]) -> None:
    routes = of(plain, apis, "Route", TOKENS)
    authorization = {route["RouteKey"]: route["AuthorizationType"] for route in routes}
    people = [call for call in SIGNED_CALLS if call.group is not None and call.audience == "clients"]
    assert authorization == {door.key: "NONE" if door.is_open else "JWT" for door in doors_of(people)}
    [authorizer] = {route["AuthorizerId"] for route in routes if route["AuthorizationType"] == "JWT"}
    assert authorizer.startswith("<")
    assert "POST /api/v1/mesh/events" not in authorization


def test_every_route_of_the_first_api_needs_a_signature_but_the_public_ones(plain: Any, apis: dict[str, str]) -> None:
    authorization = {route["RouteKey"]: route["AuthorizationType"] for route in of(plain, apis, "Route", SIGNED)}
    assert authorization == {door.key: "NONE" if door.is_open else "AWS_IAM" for door in doors_of(SIGNED_CALLS)}


def test_the_mesh_file_may_limit_the_calls_with_tokens() -> None:
    token_routes = {call.route for call in CALLS if call.takes_tokens(("tools",))}
    assert "POST /tools/call" in token_routes
    assert not {route for route in token_routes if route.split()[1].startswith("/api/")}
    assert not [call for call in CALLS if call.is_public and call.takes_tokens(("tasks",))]


def test_both_apis_are_throttled_and_logged(plain: Any, apis: dict[str, str]) -> None:
    [signed], [tokens] = (of(plain, apis, "Stage", name) for name in (SIGNED, TOKENS))
    assert tokens["DefaultRouteSettings"] == signed["DefaultRouteSettings"]
    assert tokens["RouteSettings"].keys() == {"ANY /{proxy+}"}
    assert tokens["AccessLogSettings"]["DestinationArn"] != signed["AccessLogSettings"]["DestinationArn"]
    assert json.loads(tokens["AccessLogSettings"]["Format"])["caller"] == "$context.authorizer.claims.sub"
    groups = {group["LogGroupName"] for group in plain.resources("AWS::Logs::LogGroup", "gateway")}
    assert {f"/aws/vendedlogs/{name}-gateway" for name in (SIGNED, TOKENS)} <= groups


def test_each_api_has_one_permission_for_all_routes_of_a_function(plain: Any, apis: dict[str, str]) -> None:
    """Lambda limits the policy of a function to 20 KB, about 40 permissions."""
    permissions = plain.resources("AWS::Lambda::Permission", "gateway")
    sources = [each["SourceArn"] for each in permissions if each["Principal"] == "apigateway.amazonaws.com"]
    assert all(source.endswith("/*/*/*") for source in sources)
    by_api = {name: sum(reference in source for source in sources) for reference, name in apis.items()}
    functions = {call.function for call in SIGNED_CALLS}
    assert by_api == dict.fromkeys((SIGNED, TOKENS), len(functions))


@pytest.mark.rule("13.jwt.functions")
def test_all_functions_report_to_the_api_for_signed_calls(plain: Any, apis: dict[str, str]) -> None:
    [signed] = (reference for reference, name in apis.items() if name == SIGNED)
    for call in SIGNED_CALLS:
        variables = plain.function(call.function, "plain-test")["Environment"]["Variables"]
        assert variables["ASYA_GATEWAY_URL"] == f"{signed.removesuffix('>')}.ApiEndpoint>"
