"""protocol §13 on the deployed mesh: people with a token (JWT), checked before anything of ours runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cloud import callers
from tests.cloud.deployed_cloud import until
from tests.doubles.issuer import new_key

if TYPE_CHECKING:
    from typing import Any

    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud
    from tests.doubles.issuer import Issuer

pytestmark = pytest.mark.cloud


def started(caller: ApiCaller) -> str:
    status, content = caller.call("POST", "/api/v1/mesh", {"payload": {"n": 1}}, actor="echo")
    assert status == 201, content
    return str(content["id"])


@pytest.mark.rule("13.jwt")
def test_a_good_token_and_nothing_else_gets_in(
    gateway: DeployedCloud, issuer: Issuer, alice: ApiCaller, operator: ApiCaller
) -> None:
    bad = {
        "none": None,
        "no token": "alice",
        "expired": issuer.token("alice", seconds=-5),
        "for somebody else": issuer.token("alice", aud="another"),
        "for nobody": issuer.token("alice", aud=None),
        "of somebody else": issuer.token("alice", iss="https://login.example.com"),
        "not yet": issuer.token("alice", nbf=2**31),
        "forged": issuer.token("alice", key=new_key()),
        "cut": issuer.token("alice")[:-8],
    }
    refused = {what: callers.token_caller(gateway, token).call("GET", "/api/v1/mesh") for what, token in bad.items()}
    assert refused == dict.fromkeys(bad, (401, {"message": "Unauthorized"}))
    good = callers.token_caller(gateway, issuer.token("alice"))
    assert good.call("GET", "/api/v1/mesh") == (200, {"items": []})
    assert callers.token_caller(gateway, None).call("GET", "/health") == (200, {"status": "ok"})
    # Neither kind of caller gets in by the other's door.
    signed_there = callers.ApiCaller(good.url, good.region, operator.credentials)
    assert signed_there.call("GET", "/api/v1/mesh")[0] == 401
    token_here = callers.ApiCaller(alice.url, alice.region, None, good.token)
    assert token_here.call("GET", "/api/v1/mesh")[0] == 403
    # And the functions' calls are not even there.
    for route in ("/api/v1/mesh/events", "/api/v1/mesh/states"):
        assert good.call("POST", route, [])[0] == 404


@pytest.mark.rule("13.jwt.owner")
def test_people_with_tokens_run_and_own_tasks(
    gateway: DeployedCloud, issuer: Issuer, alice: ApiCaller, operator: ApiCaller
) -> None:
    person, other = (callers.token_caller(gateway, issuer.token(subject)) for subject in ("alice", "bob"))
    chief = callers.token_caller(gateway, issuer.token("chief", groups=["people", "mesh-operators"]))
    hers, theirs = started(alice), started(person)

    def ended() -> Any:
        found = person.call("GET", f"/api/v1/mesh/{theirs}")[1]
        return found if found["status"] == "succeeded" else None

    # Its reports went to the API that the mesh's functions may call.
    assert until(ended, "the task to succeed")["owner"] == f"jwt:alice#{issuer.url}"
    seen = {
        name: [caller.call("GET", f"/api/v1/mesh/{task}")[0] for task in (hers, theirs)]
        for name, caller in {
            "alice": alice, "operator": operator, "person": person, "other": other, "chief": chief,
        }.items()
    }  # fmt: skip
    assert seen == {
        "alice": [200, 404],
        "operator": [200, 200],
        "person": [404, 200],
        "other": [404, 404],
        "chief": [200, 200],
    }
    status, answer = person.call("POST", "/tools/call", {"name": "say", "arguments": {"text": "hello"}})
    assert status in (200, 202)
    # Where it may be looked at is where they may call.
    host = answer["status_url"].split("/api/")[0].split("//")[1].split(".")[0]
    assert f"/{host}/" in person.url
    assert answer["stream_url"] == f"{answer['status_url']}/events"


def test_models_and_agents_come_with_tokens_too(gateway: DeployedCloud, issuer: Issuer) -> None:
    """The official MCP client, with nothing but the token in its headers; the agent card says what a client has to bring."""
    person = callers.token_caller(gateway, issuer.token("alice"))

    async def tools() -> list[str]:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {person.token}"}, timeout=60) as http,
            Client(streamable_http_client(f"{person.url}/mcp", http_client=http)) as client,
        ):
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "say" in asyncio.run(tools())
    card = callers.token_caller(gateway, None).call("GET", "/.well-known/agent-card.json")[1]
    assert card["security"] == [{"jwt": []}]
    listed = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    answer = person.call("POST", "/a2a", listed)
    assert (answer[0], "result" in answer[1]) == (200, True), answer
    task = started(person)
    status, token = person.call("POST", f"/api/v1/mesh/{task}/stream-token")
    assert (status, token["url"].startswith(card["url"].removesuffix("/a2a"))) == (201, True), token
