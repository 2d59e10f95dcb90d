"""The calls that wait for tasks, when no permit is free (`protocol §13.waits`): REST, Model Context Protocol, Agent2Agent."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.function.aws import clients
from asya.function.aws.table import Table
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.environment import REAL, RealEnvironment
from asya.gateway.aws.long_poll_permits import LongPollPermits
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.router import answer
from asya.gateway.lambdas.api import build_api
from asya.gateway.routes import tools
from asya.protocol.mesh_table import Gateway as GatewayLimits
from tests.doubles.agents import error, result, rpc, tool_message
from tests.doubles.gateway_functions import ALICE, BOB, Gateway, route_event, settings_with
from tests.doubles.tasks import at

pytestmark = pytest.mark.usefixtures("with_tools")
REST = "POST /tools/call"
LIMITS = GatewayLimits(long_polls=3, long_polls_per_caller=2)
MCP = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture(autouse=True)
def limited(gateway: Gateway, with_tools: None) -> None:
    gateway.mesh = changed(gateway.mesh, gateway=LIMITS)


@contextmanager
def waiting(*principals: str) -> Iterator[None]:
    """Hold the permits of calls of these callers."""
    permits = LongPollPermits(Table(clients.dynamodb(), "asya-flights-tasks"), LIMITS, REAL, pytest.fail)
    with ExitStack() as held:
        for principal in principals:
            held.enter_context(permits.hold(principal, at(0)))
        yield


def rest(gateway: Gateway, iam: dict[str, str] = ALICE) -> tuple[int, Any]:
    return gateway.api(route_event(REST, iam, {"name": "plain"}))


def mcp(gateway: Gateway, name: str, arguments: object, *, wait: int = 1) -> Any:
    body = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": MCP},
    }
    event = route_event("POST /mcp", ALICE, body)
    headers = {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
        "prefer": f"wait={wait}",
    }
    status, content = gateway.api(event | {"headers": event["headers"] | headers})
    assert status == 200
    return content["result"]


def held_permits() -> list[str]:
    found = clients.dynamodb().scan(TableName="asya-flights-tasks")["Items"]
    return [item["pk"]["S"] for item in found if item["pk"]["S"].startswith("POLL")]


@pytest.mark.rule("13.waits")
def test_13_waits_a_tool_call_beyond_the_limit_starts_nothing(gateway: Gateway) -> None:
    with waiting("AIDAALICE", "AIDAALICE"):
        status, content = rest(gateway)
        assert (status, content["error"]["code"]) == (429, "too_many_long_polls")
        assert gateway.messages("publish-report") == []
        assert rest(gateway, BOB)[0] == 202
        with waiting("AIDACAROL"):
            status, content = rest(gateway, BOB)
            assert (status, "gateway.long_polls)" in content["error"]["message"]) == (429, True)
    assert held_permits() == []
    assert rest(gateway)[0] == 202


@pytest.mark.rule("13.waits", "13.tools.wait")
def test_13_tools_wait_a_call_that_does_not_wait_is_not_counted(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "WAIT_SECONDS", 20.0)
    monkeypatch.setattr(RealEnvironment, "sleep", lambda *_: pytest.fail("the call waits"))
    event = route_event(REST, ALICE, {"name": "plain"})
    with waiting("AIDAALICE", "AIDAALICE"):
        status, content = gateway.api(event | {"headers": event["headers"] | {"Prefer": "wait=0"}})
    assert (status, content["status"]) == (202, "pending")


@pytest.mark.rule("13.waits")
def test_13_waits_a_refusal_says_when_to_try_again(gateway: Gateway) -> None:
    telemetry = Telemetry("flights", "test")
    routes = build_api(HttpServices(settings_with(gateway.environ, gateway.mesh), given_telemetry=telemetry))
    with waiting("AIDAALICE", "AIDAALICE"):
        response = answer(route_event(REST, ALICE, {"name": "plain"}), routes, at(0), telemetry.log)
    assert (response["statusCode"], response["headers"]["retry-after"]) == (429, "5")


@pytest.mark.rule("13.waits")
def test_13_waits_a_model_is_told_to_try_again(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = rest(gateway)[1]["id"]
    monkeypatch.setattr(tools, "WAIT_SECONDS", 1.0)
    gateway.messages("publish-report")
    with waiting("AIDAALICE", "AIDAALICE"):
        for name, arguments in (("plain", {}), ("wait_for_task", {"id": task_id})):
            refused = mcp(gateway, name, arguments)
            assert refused["isError"]
            assert "2 calls of this caller already wait" in refused["content"][0]["text"]
            assert "try again in 5 s" in refused["content"][0]["text"]
        assert gateway.messages("publish-report") == []
        assert not mcp(gateway, "plain", {}, wait=0).get("isError")
        assert not mcp(gateway, "cancel_task", {"id": task_id}).get("isError")
    assert mcp(gateway, "wait_for_task", {"id": task_id})["structuredContent"]["status"] == "canceled"
    assert held_permits() == []


@pytest.mark.rule("13.waits", "13.mcp.cancel")
def test_13_waits_a_cancellation_needs_a_permit_only_to_wait_for_its_request(gateway: Gateway) -> None:
    session = {"mcp-protocol-version": "2025-11-25", "mcp-session-id": "s"}

    def post(method: str, params: object, **message: object) -> tuple[int, Any]:
        event = route_event("POST /mcp", ALICE, {"jsonrpc": "2.0", "method": method, "params": params, **message})
        return gateway.api(event | {"headers": event["headers"] | session | {"prefer": "wait=0"}})

    assert post("tools/call", {"name": "plain"}, id=7)[0] == 200
    with waiting("AIDAALICE", "AIDAALICE"):
        assert post("notifications/cancelled", {"requestId": 7}) == (202, None)
        status, content = post("notifications/cancelled", {"requestId": 8})
        assert (status, content["error"]["code"]) == (429, "too_many_long_polls")
    [message] = gateway.messages("publish-report")
    assert gateway.api(route_event("GET /api/v1/mesh/{id}", ALICE, id=message["id"]))[1]["status"] == "canceled"


@pytest.mark.rule("13.waits")
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_13_waits_an_agent_is_told_to_try_again(gateway: Gateway, method: str) -> None:
    with waiting("AIDAALICE", "AIDAALICE"):
        refused = error(gateway, method, tool_message("plain", {}))
        assert refused["code"] == -32603
        assert "2 calls of this caller already wait" in refused["message"]
        info, retry = refused["data"]
        assert info["reason"] == "TOO_MANY_LONG_POLLS"
        assert retry == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "5s"}
        assert gateway.messages("publish-report") == []
    assert "error" not in rpc(gateway, method, tool_message("plain", {}))
    assert held_permits() == []


@pytest.mark.rule("13.waits")
def test_13_waits_a_call_that_does_not_wait_takes_no_permit(gateway: Gateway) -> None:
    with waiting("AIDAALICE", "AIDAALICE"):
        message = tool_message("plain", {}) | {"configuration": {"returnImmediately": True}}
        task_id = result(gateway, "SendMessage", message)["task"]["id"]
        assert result(gateway, "GetTask", {"id": task_id})["id"] == task_id
        assert gateway.api(route_event("GET /api/v1/mesh/{id}", ALICE, id=task_id))[0] == 200
        assert len(held_permits()) == 4
