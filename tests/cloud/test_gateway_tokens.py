"""Tests callers with a JWT (protocol §13) on the deployed mesh; API Gateway checks the token."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from typing import TYPE_CHECKING

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cloud import callers
from tests.cloud.deployed_cloud import until
from tests.doubles.issuer import KEY_ID, new_key, public_jwk

if TYPE_CHECKING:
    from typing import Any

    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud
    from tests.doubles.issuer import Issuer

pytestmark = pytest.mark.cloud


def start(caller: ApiCaller) -> str:
    status, content = caller.call("POST", "/api/v1/mesh", {"payload": {"n": 1}}, actor="echo")
    assert status == 201, content
    return str(content["id"])


def encoded(content: object) -> str:
    """A part of a token."""
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def forgeries(issuer: Issuer) -> dict[str, str]:
    """Tokens that nobody but the issuer may make, and tokens whose header says how, or with which key, they are to be checked."""
    header, payload, signature = issuer.token("alice").split(".")
    chief = encoded(jwt.decode(issuer.token("alice", groups=["mesh-operators"]), options={"verify_signature": False}))
    public = issuer.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    symmetric = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': KEY_ID})}.{chief}"
    mac = base64.urlsafe_b64encode(hmac.digest(public, symmetric.encode(), "sha256")).decode().rstrip("=")
    own = new_key()
    headers: dict[str, dict[str, Any]] = {
        "jwk": {"jwk": public_jwk(own), "kid": KEY_ID},
        "jku": {"jku": "http://127.0.0.1:1/keys", "kid": KEY_ID},
        "kid of a file": {"kid": "../../../../dev/null"},
        "no kid": {},
    }
    claims = jwt.decode(issuer.token("alice"), options={"verify_signature": False})
    return {
        "no algorithm": f"{encoded({'alg': 'none', 'kid': KEY_ID})}.{chief}.",
        "no algorithm, with a signature": f"{encoded({'alg': 'None', 'kid': KEY_ID})}.{chief}.{signature}",
        "other claims": f"{header}.{chief}.{signature}",
        "the public key as a secret": f"{symmetric}.{mac}",
        "two signatures": f"{header}.{payload}.{signature}.{signature}",
        **{
            f"another key, {name}": jwt.encode(claims, own, algorithm="RS256", headers=each)
            for name, each in headers.items()
        },
        **{
            f"signed with {algorithm}": jwt.encode(claims, issuer.key, algorithm=algorithm, headers={"kid": KEY_ID})
            for algorithm in ("RS384", "PS256")
        },
        **{
            f"the audience {audience}": issuer.token("alice", aud=audience)
            for audience in ("gate", "gateway2", "GATEWAY")
        },
        "several other audiences": issuer.token("alice", aud=["another", "gateway2"]),
        "two tokens": f"{issuer.token('alice')}, {issuer.token('chief', groups=['mesh-operators'])}",
    }


@pytest.mark.rule("13.jwt")
def test_only_a_valid_token_is_accepted(
    gateway: DeployedCloud, issuer: Issuer, alice: ApiCaller, operator: ApiCaller
) -> None:
    invalid = {
        "none": None,
        "not a token": "alice",
        "expired": issuer.token("alice", seconds=-5),
        "another audience": issuer.token("alice", aud="another"),
        "no audience": issuer.token("alice", aud=None),
        "another issuer": issuer.token("alice", iss="https://login.example.com"),
        "not valid yet": issuer.token("alice", nbf=2**31),
        "forged": issuer.token("alice", key=new_key()),
        "truncated": issuer.token("alice")[:-8],
        **forgeries(issuer),
    }
    answers = {
        name: callers.token_caller(gateway, token).call("GET", "/api/v1/mesh") for name, token in invalid.items()
    }
    assert answers == dict.fromkeys(invalid, (401, {"message": "Unauthorized"}))
    valid = callers.token_caller(gateway, issuer.token("alice"))
    assert valid.call("GET", "/api/v1/mesh") == (200, {"items": []})
    assert callers.token_caller(gateway, None).call("GET", "/health") == (200, {"status": "ok"})
    # Each API accepts only its own kind of credentials.
    signed_caller = callers.ApiCaller(valid.url, valid.region, operator.credentials)
    assert signed_caller.call("GET", "/api/v1/mesh")[0] == 401
    token_caller = callers.ApiCaller(alice.url, alice.region, None, valid.token)
    assert token_caller.call("GET", "/api/v1/mesh")[0] == 403
    # The token API does not have the calls of functions: `events` is the id of a task there.
    assert valid.call("POST", "/api/v1/mesh/events", [])[0] == 405


@pytest.mark.rule("13.jwt.owner")
def test_callers_with_tokens_start_and_own_tasks(
    gateway: DeployedCloud, issuer: Issuer, alice: ApiCaller, operator: ApiCaller
) -> None:
    jwt_alice, jwt_bob = (callers.token_caller(gateway, issuer.token(subject)) for subject in ("alice", "bob"))
    jwt_operator = callers.token_caller(gateway, issuer.token("chief", groups=["people", "mesh-operators"]))
    iam_task, jwt_task = start(alice), start(jwt_alice)

    def poll() -> Any:
        task = jwt_alice.call("GET", f"/api/v1/mesh/{jwt_task}")[1]
        return task if task["status"] == "succeeded" else None

    # The reports of the task went to the IAM API, which the functions may call.
    assert until(poll, "the task to succeed")["owner"] == f"jwt:alice#{issuer.url}"
    statuses = {
        name: [caller.call("GET", f"/api/v1/mesh/{task}")[0] for task in (iam_task, jwt_task)]
        for name, caller in {
            "alice": alice, "operator": operator, "jwt_alice": jwt_alice, "jwt_bob": jwt_bob,
            "jwt_operator": jwt_operator,
        }.items()
    }  # fmt: skip
    assert statuses == {
        "alice": [200, 404],
        "operator": [200, 200],
        "jwt_alice": [404, 200],
        "jwt_bob": [404, 404],
        "jwt_operator": [200, 200],
    }
    status, answer = jwt_alice.call("POST", "/tools/call", {"name": "say", "arguments": {"text": "hello"}})
    assert status in (200, 202)
    # The addresses in the answer lead to the token API.
    host = answer["status_url"].split("/api/")[0].split("//")[1].split(".")[0]
    assert f"/{host}/" in jwt_alice.url
    assert answer["stream_url"] == f"{answer['status_url']}/events"


def test_mcp_and_a2a_clients_use_tokens(gateway: DeployedCloud, issuer: Issuer) -> None:
    """The official MCP client sends the token in its headers, and the agent card names the token scheme."""
    caller = callers.token_caller(gateway, issuer.token("alice"))

    async def tools() -> list[str]:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {caller.token}"}, timeout=60) as http,
            Client(streamable_http_client(f"{caller.url}/mcp", http_client=http)) as client,
        ):
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "say" in asyncio.run(tools())
    card = callers.token_caller(gateway, None).call("GET", "/.well-known/agent-card.json")[1]
    assert card["securityRequirements"] == [{"schemes": {"jwt": {"list": []}}}]
    request = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    answer = caller.call("POST", "/a2a", request)
    assert (answer[0], "result" in answer[1]) == (200, True), answer
    task = start(caller)
    status, token = caller.call("POST", f"/api/v1/mesh/{task}/stream-token")
    assert (status, token["url"].startswith(card["supportedInterfaces"][0]["url"].removesuffix("/a2a"))) == (
        201,
        True,
    ), token
