"""Model Context Protocol over streamable HTTP (`protocol §13`, `POST /mcp`): handshake, revisions, refusals."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from asya.capabilities.mcp.types import REVISIONS
from tests.doubles.gateway_functions import ALICE, route_event, signed_by
from tests.doubles.mcp_gateway import ARGUMENTS, BASE, LEGACY, NO_WAIT, ROUTE, McpGateway, events


@pytest.mark.rule("13.mcp")
@pytest.mark.parametrize("requested", [LEGACY, "2025-06-18", "2099-01-01"])
def test_a_handshake_ends_with_its_one_revision_and_a_session_id(mcp: McpGateway, requested: str) -> None:
    params = {"protocolVersion": requested, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    event = route_event(ROUTE, ALICE, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    response = mcp.call(event)
    content = json.loads(response["body"])
    assert (response["statusCode"], content["id"], content["result"]["protocolVersion"]) == (200, 0, LEGACY)
    assert content["result"]["serverInfo"] == {"name": "asya-flights", "version": "1"}
    assert content["result"]["capabilities"] == {"tools": {}}
    assert "wait_for_task" in content["result"]["instructions"]
    assert response["headers"]["mcp-session-id"] != mcp.call(event)["headers"]["mcp-session-id"]


@pytest.mark.rule("13.mcp")
def test_discovery_needs_no_handshake(mcp: McpGateway) -> None:
    status, content = mcp.request("server/discover")
    result = content["result"]
    assert (status, result["supportedVersions"]) == (200, list(REVISIONS))
    assert (result["resultType"], result["cacheScope"], result["ttlMs"]) == ("complete", "private", 300_000)
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "asya-flights"


@pytest.mark.rule("13.mcp")
def test_methods_of_the_revision_with_a_handshake(mcp: McpGateway) -> None:
    revision = LEGACY
    assert mcp.request("ping", revision=revision) == (200, {"jsonrpc": "2.0", "id": 7, "result": {}})
    status, content = mcp.request("server/discover", revision=revision)
    assert (status, content["error"]["code"], content["id"]) == (200, -32601, 7)
    assert mcp.request("resources/list", revision=revision)[1]["error"]["code"] == -32601
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert mcp.post(initialized, {"mcp-protocol-version": revision}) == (202, None)


@pytest.mark.rule("13.mcp")
def test_methods_that_the_newest_revision_has_dropped(mcp: McpGateway) -> None:
    for method in ("ping", "initialize", "logging/setLevel", "subscriptions/listen"):
        status, content = mcp.request(method, {"protocolVersion": LEGACY})
        assert (status, content["error"]["code"]) == (404, -32601)


@pytest.mark.rule("13.mcp.http")
def test_headers_must_agree_with_the_body(mcp: McpGateway) -> None:
    version, capabilities = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"
    wrong: list[tuple[dict[str, str], dict[str, Any], int]] = [
        ({"mcp-protocol-version": "2025-11-25"}, {}, -32020),
        ({"mcp-method": "tools/call"}, {}, -32020),
        ({"mcp-method": "Tools/List"}, {}, -32020),
        ({}, {version: "2025-11-25"}, -32020),
        ({}, {version: 3}, -32602),
        ({}, {capabilities: None}, -32602),
        ({}, {capabilities: []}, -32602),
        ({}, {"progressToken": 1.5}, -32602),
    ]
    for headers, meta, code in wrong:
        status, content = mcp.request("tools/list", {"_meta": meta}, headers=headers)
        assert (status, content["error"]["code"], content["id"]) == (400, code, 7), (headers, meta)


@pytest.mark.rule("13.mcp.http")
def test_a_header_repeats_the_name_of_the_tool(mcp: McpGateway) -> None:
    params = {"name": "analyse", "arguments": ARGUMENTS}
    for header in ("quiet", "=?base64?!?=", "=?base64?/w==?="):
        assert mcp.request("tools/call", params, headers={"mcp-name": header})[1]["error"]["code"] == -32020
    encoded = {"mcp-name": "=?base64?YW5hbHlzZQ==?="} | NO_WAIT
    assert mcp.request("tools/call", params, headers=encoded)[0] == 200


@pytest.mark.rule("13.mcp")
def test_other_revisions_get_the_supported_ones(mcp: McpGateway) -> None:
    for revision in ("2024-11-05", "2025-03-26", "2027-01-01", ""):
        status, content = mcp.request("tools/list", revision=revision)
        assert (status, content["error"]["code"]) == (400, -32022)
        assert content["error"]["data"] == {"supported": list(REVISIONS), "requested": revision}
        meta = {"io.modelcontextprotocol/protocolVersion": revision}
        response = mcp.request("tools/list", {"_meta": meta}, headers={"mcp-protocol-version": revision})
        assert response[1]["error"]["code"] == -32022
        notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert mcp.post(notification, {"mcp-protocol-version": revision})[0] == 400


def test_a_request_without_revision_is_refused(mcp: McpGateway) -> None:
    status, content = mcp.post({"jsonrpc": "2.0", "id": "a", "method": "tools/list"})
    assert (status, content["error"]["code"], content["id"]) == (400, -32020, "a")


@pytest.mark.rule("13.mcp.failures")
def test_invalid_messages_are_refused(mcp: McpGateway) -> None:
    for body, code in {
        "{": -32700,
        "": -32700,
        '[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]': -32600,
        '{"jsonrpc": "2.0", "id": null, "method": "ping"}': -32600,
        '{"jsonrpc": "2.0", "id": 1, "result": {}}': -32600,
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": 3}': -32602,
    }.items():
        status, content = mcp.post(body, {"mcp-protocol-version": LEGACY})
        assert (status, content["error"]["code"]) == (400, code), body


@pytest.mark.rule("13.mcp.http")
def test_pages_of_other_sites_are_refused(mcp: McpGateway) -> None:
    origins = [BASE, "https://evil.example", "null", "http://[", BASE + ".evil.example"]
    statuses = [mcp.request("tools/list", headers={"origin": origin})[0] for origin in origins]
    assert statuses == [200, 403, 403, 403, 403]


@pytest.mark.rule("13.mcp.http")
def test_the_accepted_media_types(mcp: McpGateway) -> None:
    accepts = ["application/json, text/event-stream", "application/json;q=0.9", "*/*", "text/html", ""]
    statuses = [mcp.request("tools/list", headers={"accept": accept})[0] for accept in accepts]
    assert statuses == [200, 200, 200, 406, 406]
    status, content = mcp.request("tools/list", headers={"accept": "TEXT/event-stream"})
    assert (status, events(content)[0]["result"]["tools"] != []) == (200, True)


@pytest.mark.rule("13.mcp.http")
def test_requests_are_signed_and_limited_in_size(mcp: McpGateway) -> None:
    unsigned = signed_by(route_event(ROUTE, ALICE, {"jsonrpc": "2.0", "id": 1, "method": "ping"}), None)
    assert mcp.call(unsigned)["statusCode"] == 403
    assert mcp.request("tools/list", {"a": "x" * 300_000})[0] == 413


@pytest.mark.rule("13.mcp.http")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_are_not_allowed(mcp: McpGateway, method: str) -> None:
    response = mcp.call(route_event(f"{method} /mcp", ALICE))
    assert (response["statusCode"], response["headers"]["allow"]) == (405, "POST")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=4,
)
_META = st.dictionaries(
    st.sampled_from(
        ["progressToken", "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"]
    ),
    _JSON | st.sampled_from([REVISIONS[0], {"elicitation": {}}]),
)
_PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "_meta": _META,
        "name": _JSON | st.sampled_from(["analyse", "quiet", "wait_for_task", "resume_task", "cancel_task"]),
        "arguments": _JSON | st.fixed_dictionaries({"id": _JSON, "input": _JSON}),
        "cursor": _JSON,
        "requestState": _JSON,
        "inputResponses": _JSON,
        "protocolVersion": _JSON,
    },
)
_MESSAGES = st.fixed_dictionaries(
    {"method": st.sampled_from(["tools/call", "tools/list", "initialize", "ping", "server/discover"]) | st.text()},
    optional={"jsonrpc": st.just("2.0"), "id": st.integers() | st.text(), "params": _PARAMS | _JSON},
)
_VERSIONS = st.sampled_from([*REVISIONS, "x"])


@pytest.mark.slow
def test_every_message_is_answered(mcp: McpGateway) -> None:
    """No message causes a server error."""

    @given(message=_MESSAGES, version=_VERSIONS, is_exact=st.booleans())
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    def request(message: dict[str, Any], version: str, is_exact: bool) -> None:
        headers = {"mcp-protocol-version": version, "mcp-method": message["method"]} | NO_WAIT
        params = message.get("params")
        if is_exact and isinstance(params, dict):
            headers["mcp-name"] = str(params.get("name"))
        status, content = mcp.post({"jsonrpc": "2.0"} | message, headers)
        assert status in (200, 202, 400, 404)
        assert (content is None) is (status == 202)

    request()
