"""The HTTP server of the gateway: who may call, and the event that functions get."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from asya.function.lambdas.environment import REAL
from asya.gateway.call_table import CALLS
from asya.gateway.http.router import HttpRoute, Request, Response, answer, required_identity
from asya_local.account import AccessKey
from asya_local.dev.gateway import Gateway
from asya_local.dev.resources import Operator
from asya_local.dev.telemetry import DevTelemetry

KEY = AccessKey("AKIA0000000000000001", "secret")
OPERATOR = Operator(KEY, "arn:aws:iam::000000000000:user/asya-shop-operator", "AIDAOPERATOR")


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    server = Gateway(0, lambda *_: None)
    routes = [HttpRoute(call, _health if call.path == "/health" else _described) for call in CALLS]
    log: Any = DevTelemetry("gateway", lambda *_: None).log
    functions = dict.fromkeys({call.function for call in CALLS}, lambda event: answer(event, routes, REAL.now(), log))
    server.serve(CALLS, functions, OPERATOR)
    yield server
    server.end()


def _health(_request: Request, _now: datetime) -> Response:
    return Response(200, {"status": "ok"})


def _described(request: Request, _now: datetime) -> Response:
    identity = required_identity(request)
    return Response(
        200,
        {
            "caller": str(identity),
            "body": request.body.decode(),
            "query": dict(request.query),
            "parameters": dict(request.parameters),
            "url": request.base_url,
        },
    )


def call(
    url: str, method: str = "GET", body: bytes = b"", *, key: AccessKey | None = None, **headers: str
) -> tuple[int, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = AWSRequest(method, url, data=body, headers=named)
    if key is not None:
        credentials: Any = Credentials(key.access_key, key.secret_key)
        SigV4Auth(credentials, "execute-api", "us-east-1").add_auth(request)
    sent = urllib.request.Request(url, body or None, dict(request.headers), method=method)
    try:
        with urllib.request.urlopen(sent) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_signed_call_reaches_its_function_with_its_caller(gateway: Gateway) -> None:
    url = f"{gateway.url}/api/v1/mesh?actor=check&note=a%20b&note=c"
    status, answer = call(url, "POST", '{"payload": "é"}'.encode(), key=KEY)
    assert status == 200
    assert OPERATOR.arn in answer["caller"]
    assert answer["body"] == '{"payload": "é"}'
    assert answer["query"] == {"actor": "check", "note": "a b,c"}
    assert answer["url"] == gateway.url
    _, resumed = call(f"{gateway.url}/api/v1/mesh/order%207/resume", "POST", b"{}", key=KEY)
    assert resumed["parameters"] == {"id": "order 7"}


def test_a_public_call_needs_no_signature(gateway: Gateway) -> None:
    assert call(f"{gateway.url}/health") == (200, {"status": "ok"})


@pytest.mark.parametrize("key", [None, AccessKey(KEY.access_key, "wrong"), AccessKey("AKIA0000000000000002", "secret")])
def test_a_call_of_a_stranger_is_refused(gateway: Gateway, key: AccessKey | None) -> None:
    assert call(f"{gateway.url}/api/v1/mesh", "POST", b"{}", key=key) == (403, {"message": "Forbidden"})


def test_what_api_gateway_would_refuse_is_refused(gateway: Gateway) -> None:
    assert call(f"{gateway.url}/nowhere", key=KEY)[0] == 404
    assert call(f"{gateway.url}/health", Host="mesh.example")[0] == 403
    assert call(f"{gateway.url}/api/v1/mesh", "POST", b"x" * (10 * 1024 * 1024 + 1), key=KEY)[0] == 413


def test_the_body_of_a_stranger_is_not_read(gateway: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        head = "POST /api/v1/mesh HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())  # the body never comes
        assert connection.recv(1_000).startswith(b"HTTP/1.1 403")


def test_a_port_that_is_taken_is_an_error(gateway: Gateway) -> None:
    with pytest.raises(OSError, match="is taken"):
        Gateway(gateway.port, lambda *_: None)
