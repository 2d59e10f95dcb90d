"""Streams in the templates: the stream function, the key of tokens, the API of continuous streams (`protocol §13`)."""

from pathlib import Path
from typing import Any

import pytest

from asya.gateway.call_table import CALLS
from asya.protocol import names
from asya_infra.build.functions import build_server
from asya_infra.options import read_options
from tests.infra.test_permissions import reads_secret_of_tokens, resources

STREAMS = ("x-gateway-stream", "x-gateway-live")


@pytest.mark.rule("13.stream.watchers")
def test_concurrency_is_reserved_only_if_the_mesh_file_says_so(shop: Any, example: Any) -> None:
    for function in STREAMS:
        assert shop.function(function)["ReservedConcurrentExecutions"] == 20
    assert "ReservedConcurrentExecutions" not in shop.function("x-gateway-api")
    assert not any("ReservedConcurrentExecutions" in each for each in example.resources("AWS::Lambda::Function"))


@pytest.mark.rule("13.stream-token")
def test_only_the_stream_functions_read_the_secret_of_tokens(shop: Any) -> None:
    functions = [each["FunctionName"].removeprefix("asya-shop-") for each in shop.resources("AWS::Lambda::Function")]
    assert {name for name in functions if reads_secret_of_tokens(shop, name)} == set(STREAMS)


@pytest.mark.parametrize("function", STREAMS)
def test_stream_functions_cannot_write(shop: Any, function: str) -> None:
    assert resources(shop, function, "dynamodb:Query") == {
        "arn:<Partition>:dynamodb:<Region>:<AccountId>:table/asya-shop-tasks"
    }
    for action in ("dynamodb:PutItem", "dynamodb:UpdateItem", "sqs:SendMessage", "s3:GetObject", "s3:PutObject"):
        assert resources(shop, function, action) == set()


def test_only_calls_with_stream_tokens_are_public(shop: Any) -> None:
    routes = {route["RouteKey"]: route["AuthorizationType"] for route in shop.resources("AWS::ApiGatewayV2::Route")}
    assert routes["GET /api/v1/mesh/{id}/events"] == routes["POST /api/v1/mesh/{id}/stream-token"] == "AWS_IAM"
    assert routes["GET /api/v1/mesh/{id}/stream"] == "NONE"


# --- streams that go on


@pytest.mark.rule("13.stream.adapter")
def test_continuous_streams_are_optional(plain: Any, example: Any) -> None:
    for mesh in (plain, example):
        assert mesh.resources("AWS::ApiGateway::RestApi") == []
        assert "StreamUrl" not in mesh.templates["gateway"]["Outputs"]
        assert not [each for each in mesh.resources("AWS::Lambda::Function") if "live" in each["FunctionName"]]


@pytest.mark.rule("13.stream.adapter")
def test_a_rest_api_streams_the_answers_of_the_function(shop: Any) -> None:
    [api] = shop.resources("AWS::ApiGateway::RestApi")
    assert api["EndpointConfiguration"]["Types"] == ["REGIONAL"]  # others end a silence sooner than a keep-alive comes
    methods = shop.resources("AWS::ApiGateway::Method")
    kinds = [method["AuthorizationType"] for method in methods]
    streams = [call for call in CALLS if call.function == names.GATEWAY_STREAM and call.method == "GET"]
    assert sorted(kinds) == sorted("NONE" if call.is_public else "AWS_IAM" for call in streams)
    for method in methods:
        integration = method["Integration"]
        assert integration["ResponseTransferMode"] == "STREAM"
        assert integration["Uri"].endswith("/response-streaming-invocations")
        assert integration["Type"] == "AWS_PROXY"
        assert integration["TimeoutInMillis"] > 300_000
    stage = shop.one("AWS::ApiGateway::Stage")
    assert stage["StageName"] == "live"
    assert stage["MethodSettings"][0]["ThrottlingRateLimit"] == 100


@pytest.mark.rule("13.stream.adapter")
def test_the_adapter_starts_the_server(shop: Any) -> None:
    function = shop.function("x-gateway-live")
    assert function["Handler"] == "run.sh"
    assert "arn:<Partition>:lambda:<Region>:753240598075:layer:LambdaAdapterLayerArm64:26" in function["Layers"]
    environment = function["Environment"]["Variables"]
    assert environment["AWS_LAMBDA_EXEC_WRAPPER"] == "/opt/bootstrap"
    assert environment["AWS_LWA_INVOKE_MODE"] == "response_stream"
    assert environment["AWS_LWA_READINESS_CHECK_PATH"] == "/health"
    assert 300 < function["Timeout"] <= 900


def test_an_option_overrides_the_layer(tmp_path: Path) -> None:
    layer = "arn:aws-cn:lambda:cn-north-1:041581134020:layer:LambdaAdapterLayerX86:26"
    options = read_options(lambda key: layer if key == "web_adapter_layer" else None, tmp_path)
    assert options.web_adapter_layer == layer
    assert read_options(lambda _: None, tmp_path).web_adapter_layer is None


def test_tokens_are_for_the_api_of_continuous_streams(shop: Any) -> None:
    url = shop.function("x-gateway-stream")["Environment"]["Variables"]["ASYA_STREAM_URL"]
    assert url.startswith("https://")
    assert url.endswith("/live")
    assert "StreamUrl" in shop.templates["gateway"]["Outputs"]


def test_the_start_script_can_be_executed(tmp_path: Path) -> None:
    folder = build_server(tmp_path, b"{}")
    assert (folder / "run.sh").stat().st_mode & 0o111 == 0o111
    assert "asya.gateway.streams.server" in (folder / "run.sh").read_text()
    assert (folder / "mesh.json").read_bytes() == b"{}"
