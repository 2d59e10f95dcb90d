"""Model Context Protocol over streamable HTTP (`protocol §13`, `POST /mcp`): every method, revision, error."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from asya.aws.submission_keys import SubmissionKeys
from asya.aws.task_store import TaskStoreError
from asya.aws.tasks import Tasks
from asya.protocol.mcp import REVISIONS
from asya.protocol.mesh_table import Actor, Tool
from asya.protocol.pause import Pause, PauseField
from tests.doubles.gateway_functions import ALICE, BOB, JWT_HOST, Gateway, by, calling, emulated, holding
from tests.doubles.mcp_gateway import APPROVE, ROUTE, McpGateway

GOOD = {"flights": "raw/flights.csv.gz"}
AT_ONCE = {"prefer": "wait=0"}
LEGACY = "2025-11-25"
BASE = "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com"
ASKS: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One table and its queues for all tests: each has tasks and a session of its own."""
    with emulated(tmp_path_factory.mktemp("mcp")) as found:
        yield found


@pytest.fixture
def mcp(shared: Gateway) -> McpGateway:
    return McpGateway(shared)


# --- handshake and discovery


@pytest.mark.parametrize(("wanted", "got"), [("2025-06-18", "2025-06-18"), ("2025-03-26", LEGACY)])
def test_a_handshake_ends_with_a_revision_and_a_session_name(mcp: McpGateway, wanted: str, got: str) -> None:
    asked = {"protocolVersion": wanted, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    event = calling(ROUTE, ALICE, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked})
    response = mcp.call(event)
    content = json.loads(response["body"])
    assert (response["statusCode"], content["id"], content["result"]["protocolVersion"]) == (200, 0, got)
    assert content["result"]["serverInfo"] == {"name": "asya-flights", "version": "1"}
    assert content["result"]["capabilities"] == {"tools": {}}
    assert "wait_for_task" in content["result"]["instructions"]
    assert response["headers"]["mcp-session-id"] != mcp.call(event)["headers"]["mcp-session-id"]


def test_what_is_spoken_here_can_be_asked_without_a_handshake(mcp: McpGateway) -> None:
    status, content = mcp.ask("server/discover")
    result = content["result"]
    assert (status, result["supportedVersions"]) == (200, list(REVISIONS))
    assert (result["resultType"], result["cacheScope"], result["ttlMs"]) == ("complete", "private", 300_000)
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "asya-flights"


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18"])
def test_methods_of_the_revisions_with_a_handshake(mcp: McpGateway, revision: str) -> None:
    assert mcp.ask("ping", revision=revision) == (200, {"jsonrpc": "2.0", "id": 7, "result": {}})
    status, content = mcp.ask("server/discover", revision=revision)
    assert (status, content["error"]["code"], content["id"]) == (200, -32601, 7)
    assert mcp.ask("resources/list", revision=revision)[1]["error"]["code"] == -32601
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert mcp.post(initialized, {"mcp-protocol-version": revision}) == (202, None)


def test_methods_that_the_newest_revision_has_no_more(mcp: McpGateway) -> None:
    for method in ("ping", "initialize", "logging/setLevel", "subscriptions/listen"):
        status, content = mcp.ask(method, {"protocolVersion": LEGACY})
        assert (status, content["error"]["code"]) == (404, -32601)


# --- requests that are refused


def test_a_request_has_to_agree_with_itself(mcp: McpGateway) -> None:
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
        status, content = mcp.ask("tools/list", {"_meta": meta}, headers=headers)
        assert (status, content["error"]["code"], content["id"]) == (400, code, 7), (headers, meta)


def test_names_of_tools_stand_in_a_header_too(mcp: McpGateway) -> None:
    params = {"name": "analyse", "arguments": GOOD}
    for header in ("quiet", "=?base64?!?=", "=?base64?/w==?="):
        assert mcp.ask("tools/call", params, headers={"mcp-name": header})[1]["error"]["code"] == -32020
    encoded = {"mcp-name": "=?base64?YW5hbHlzZQ==?="} | AT_ONCE
    assert mcp.ask("tools/call", params, headers=encoded)[0] == 200


def test_other_revisions_are_told_which_there_are(mcp: McpGateway) -> None:
    for revision in ("2024-11-05", "2025-03-26", "2027-01-01", ""):
        status, content = mcp.ask("tools/list", revision=revision)
        assert (status, content["error"]["code"]) == (400, -32022)
        assert content["error"]["data"] == {"supported": list(REVISIONS), "requested": revision}
        meta = {"io.modelcontextprotocol/protocolVersion": revision}
        told = mcp.ask("tools/list", {"_meta": meta}, headers={"mcp-protocol-version": revision})
        assert told[1]["error"]["code"] == -32022
        notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert mcp.post(notice, {"mcp-protocol-version": revision})[0] == 400


def test_a_request_says_its_revision(mcp: McpGateway) -> None:
    status, content = mcp.post({"jsonrpc": "2.0", "id": "a", "method": "tools/list"})
    assert (status, content["error"]["code"], content["id"]) == (400, -32020, "a")


def test_what_is_no_message_is_refused(mcp: McpGateway) -> None:
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


def test_pages_of_other_sites_are_refused(mcp: McpGateway) -> None:
    origins = [BASE, "https://evil.example", "null", "http://[", BASE + ".evil.example"]
    answered = [mcp.ask("tools/list", headers={"origin": origin})[0] for origin in origins]
    assert answered == [200, 403, 403, 403, 403]


def test_what_the_client_takes(mcp: McpGateway) -> None:
    accepts = ["application/json, text/event-stream", "application/json;q=0.9", "*/*", "text/html", ""]
    answered = [mcp.ask("tools/list", headers={"accept": accept})[0] for accept in accepts]
    assert answered == [200, 200, 200, 406, 406]
    status, content = mcp.ask("tools/list", headers={"accept": "TEXT/event-stream"})
    assert (status, events(content)[0]["result"]["tools"] != []) == (200, True)


def test_who_asks_is_known_and_messages_have_a_size(mcp: McpGateway) -> None:
    unsigned = by(calling(ROUTE, ALICE, {"jsonrpc": "2.0", "id": 1, "method": "ping"}), None)
    assert mcp.call(unsigned)["statusCode"] == 403
    assert mcp.ask("tools/list", {"a": "x" * 300_000})[0] == 413


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_no_stream_to_hold_open_and_no_session_to_end(mcp: McpGateway, method: str) -> None:
    response = mcp.call(calling(f"{method} /mcp", ALICE))
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


def test_whatever_comes_is_answered(mcp: McpGateway) -> None:
    """No message, however odd, is a fault of ours."""

    @given(message=_MESSAGES, version=_VERSIONS, is_exact=st.booleans())
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    def ask(message: dict[str, Any], version: str, is_exact: bool) -> None:
        headers = {"mcp-protocol-version": version, "mcp-method": message["method"]} | AT_ONCE
        params = message.get("params")
        if is_exact and isinstance(params, dict):
            headers["mcp-name"] = str(params.get("name"))
        status, content = mcp.post({"jsonrpc": "2.0"} | message, headers)
        assert status in (200, 202, 400, 404)
        assert (content is None) is (status == 202)

    ask()


# --- listing


@pytest.mark.parametrize("revision", REVISIONS)
def test_tools_come_with_their_schemas(mcp: McpGateway, revision: str) -> None:
    tools = mcp.ask("tools/list", revision=revision)[1]["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["analyse", "quiet", "cancel_task", "resume_task", "wait_for_task"]
    assert tools[0]["inputSchema"] == mcp.gateway.mesh.tools["analyse"].input_schema
    assert tools[1] == {"name": "quiet", "description": "Tells nobody how far it is", "inputSchema": {"type": "object"}}
    assert tools[4]["annotations"]["readOnlyHint"]


def test_tools_come_by_the_page(mcp: McpGateway) -> None:
    tools = {f"tool-{number:03d}": Tool(description="d", route=("publish-report",)) for number in range(230)}
    mcp.gateway.mesh = changed(mcp.gateway.mesh, tools=tools)
    found: list[str] = []
    cursor: dict[str, str] = {}
    for size in (100, 100, 33):
        result = mcp.ask("tools/list", cursor)[1]["result"]
        assert len(result["tools"]) == size
        found += [tool["name"] for tool in result["tools"]]
        cursor = {"cursor": result["nextCursor"]} if "nextCursor" in result else {}
    assert found[:230] == list(tools)
    assert cursor == {}
    for wrong in ("x", "!", "IjM", 3, ""):
        assert mcp.ask("tools/list", {"cursor": wrong})[1]["error"]["code"] == -32602


def test_without_tools_there_are_none(mcp: McpGateway) -> None:
    mcp.gateway.mesh = changed(mcp.gateway.mesh, tools={})
    assert mcp.ask("tools/list")[1]["result"]["tools"] == []


def test_schemas_ask_nobody_to_repeat_arguments_in_headers(mcp: McpGateway) -> None:
    schema: dict[str, Any] = {
        "properties": {"a": {"x-mcp-header": "A", "properties": {"x-mcp-header": {"x-mcp-header": "B"}}}, "b": True}
    }
    tool = Tool(description="d", route=("publish-report",), input_schema=schema)
    mcp.gateway.mesh = changed(mcp.gateway.mesh, tools={"t": tool})
    shown = mcp.ask("tools/list")[1]["result"]["tools"][0]["inputSchema"]
    assert shown == {"type": "object", "properties": {"a": {"properties": {"x-mcp-header": {}}}, "b": True}}


# --- calls


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_call_answers_with_what_its_task_came_to(mcp: McpGateway, revision: str) -> None:
    mcp.then(lambda: mcp.report("received"), lambda: mcp.report("succeeded", 2, result={"n": "ü"}))
    result = mcp.use("analyse", GOOD, revision=revision)
    assert json.loads(result["content"][0]["text"]) == {"n": "ü"}
    assert result["content"][0]["type"] == "text"
    assert result["structuredContent"] == {"n": "ü"}
    assert result["_meta"]["asya/taskId"] == mcp.task()
    assert result.get("isError", False) is False
    assert ("resultType" in result) is (revision == REVISIONS[0])


@pytest.mark.parametrize(("value", "text"), [("two\nlines", "two\nlines"), ([1], "[1]"), (None, "null"), (3.5, "3.5")])
def test_results_that_are_no_objects(mcp: McpGateway, value: object, text: str) -> None:
    mcp.then(lambda: mcp.report("succeeded", result=value))
    result = mcp.use("analyse", GOOD)
    assert (result["content"], result["structuredContent"]) == ([{"type": "text", "text": text}], value)
    mcp.then(lambda: mcp.report("succeeded", result=value))
    result = mcp.use("analyse", GOOD, revision=LEGACY)
    assert result["content"] == [{"type": "text", "text": text}]
    assert "structuredContent" not in result


def test_large_results_are_linked(mcp: McpGateway) -> None:
    mcp.then(lambda: mcp.report("succeeded", result_uri="s3://bucket/key.json"))
    result = mcp.use("analyse", GOOD)
    assert "s3://bucket/key.json" in result["content"][0]["text"]
    assert result["content"][1]["type"] == "resource_link"
    assert result["content"][1]["uri"] == result["structuredContent"]["result_uri"] == "s3://bucket/key.json"


@pytest.mark.parametrize(
    ("end", "data", "said"),
    [
        ("failed", {"reason": "Timeout", "error": {"type": "E", "message": "too late"}}, "(Timeout): E: too late"),
        ("failed", {}, "failed at inspect-dataset"),
        ("canceled", {"reason": "Canceled"}, "was canceled"),
    ],
)
def test_failures_are_results(mcp: McpGateway, end: str, data: dict[str, Any], said: str) -> None:
    mcp.then(lambda: mcp.report(end, **data))
    result = mcp.use("analyse", GOOD)
    assert result["isError"] is True
    assert said in result["content"][0]["text"]
    assert (result["structuredContent"]["status"], result["structuredContent"]["id"]) == (end, mcp.task())


def test_arguments_that_do_not_fit_are_told_one_by_one(mcp: McpGateway) -> None:
    result = mcp.use("analyse", {"flights": "clean/x", "month": 13})
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert "- flights: " in text
    assert "- month: " in text
    assert "- arguments: " in mcp.use("analyse", params={"arguments": None})["content"][0]["text"]
    assert mcp.gateway.messages() == []


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"name": "nothing"}, "no tool"),
        ({"name": "quiet", "arguments": [1]}, "object"),
        ({"name": "quiet", "arguments": '"'}, "object"),
        ({"name": "quiet", "arguments": {"a": 1e308}}, None),
    ],
)
def test_calls_that_are_none(mcp: McpGateway, params: dict[str, Any], said: str | None) -> None:
    status, content = mcp.ask("tools/call", params, headers=AT_ONCE)
    if said is None:
        assert status == 200
        return
    assert (status, content["error"]["code"]) == (400, -32602)
    assert said in content["error"]["message"]
    assert mcp.ask("tools/call", params, revision=LEGACY)[0] == 200
    assert mcp.ask("tools/call", {}, revision=LEGACY)[1]["error"]["code"] == -32602


def test_what_cannot_be_sent_is_a_failure_and_trouble_of_ours_an_error(
    mcp: McpGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Tool(description="d", route=("inspect-dataset",))
    mcp.gateway.mesh = changed(mcp.gateway.mesh, tools={"large": large, "lost": changed(large, route=("x-sink",))})

    def refuse(*_: object) -> None:
        raise TaskStoreError("no")

    monkeypatch.setattr(Tasks, "create", refuse)
    status, content = mcp.ask("tools/call", {"name": "large"})
    assert (status, content["error"]["code"]) == (200, -32603)


# --- calls that take longer


def test_after_a_while_the_answer_says_where_to_look(mcp: McpGateway) -> None:
    mcp.then(lambda: mcp.report("received"))
    result = mcp.use("analyse", GOOD)
    assert mcp.clock.seconds == pytest.approx(25, abs=0.01)
    task_id = mcp.task()
    assert result["structuredContent"] == {
        "id": task_id,
        "status": "running",
        "progress_percent": 15,
        "status_url": f"{BASE}/api/v1/mesh/{task_id}",
        "stream_url": f"{BASE}/api/v1/mesh/{task_id}/events",
    }
    assert f'wait_for_task with {{"id": "{task_id}"}}' in result["content"][0]["text"]
    assert "isError" not in result


def test_clients_may_wait_less(mcp: McpGateway) -> None:
    for prefer, seconds in {"wait=3": 3, "respond-async, wait=2": 2, 'wait="1"; x': 1, "wait=900": 25, "x": 25}.items():
        began = mcp.clock.seconds
        mcp.use("analyse", GOOD, headers={"prefer": prefer})
        assert mcp.clock.seconds - began == pytest.approx(seconds, abs=0.01), prefer


def test_a_task_is_waited_for_again(mcp: McpGateway) -> None:
    task_id = mcp.use("analyse", GOOD, headers=AT_ONCE)["structuredContent"]["id"]
    assert mcp.use("wait_for_task", {"id": task_id}, headers=AT_ONCE)["structuredContent"]["id"] == task_id
    mcp.then(lambda: mcp.report("succeeded", result={"n": 1}))
    assert mcp.use("wait_for_task", {"id": task_id})["structuredContent"] == {"n": 1}
    assert mcp.started == [task_id]


@pytest.mark.parametrize("tool", ["wait_for_task", "cancel_task", "resume_task"])
def test_other_peoples_tasks_are_not_there(mcp: McpGateway, tool: str) -> None:
    task_id = mcp.use("analyse", GOOD, headers=AT_ONCE)["structuredContent"]["id"]
    more: dict[str, Any] = {"input": {}} if tool == "resume_task" else {}
    for named in ({"id": task_id}, {"id": "unknown"}):
        result = mcp.use(tool, named | more, headers=AT_ONCE, iam=BOB)
        assert (result["isError"], "there is no task" in result["content"][0]["text"]) == (True, True)
    for wrong in ({}, {"id": 3}, {"id": ""}, {"id": "a" * 257}, {"id": "a", "b": 1}):
        assert mcp.use(tool, wrong | more)["isError"] is True
    assert mcp.shown()["status"] == "pending"


def test_a_task_is_canceled_by_the_tool(mcp: McpGateway) -> None:
    task_id = mcp.use("analyse", GOOD, headers=AT_ONCE)["structuredContent"]["id"]
    for _ in range(2):
        result = mcp.use("cancel_task", {"id": task_id})
        assert "isError" not in result
        assert result["structuredContent"]["status"] == "canceled"
    assert mcp.shown()["status"] == "canceled"


def test_people_with_tokens_own_what_they_call_and_are_sent_to_their_own_api(mcp: McpGateway) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "analyse", "arguments": GOOD}}
    event = calling(ROUTE, ALICE, body)
    event["headers"] |= AT_ONCE | {"mcp-protocol-version": LEGACY}
    state = json.loads(mcp.call(holding(event, "00u7"))["body"])["result"]["structuredContent"]
    assert state["status_url"] == f"https://{JWT_HOST}/api/v1/mesh/{state['id']}"
    reading = calling("GET /api/v1/mesh/{id}", ALICE, id=state["id"])
    assert [mcp.call(each)["statusCode"] for each in (holding(reading, "00u7"), reading)] == [200, 404]


# --- progress


def events(text: str) -> list[Any]:
    parts = text.split("\n\n")
    assert parts.pop() == ""
    assert all(part.startswith("event: message\ndata: ") and part.count("\n") == 1 for part in parts)
    return [json.loads(part.partition("\ndata: ")[2]) for part in parts]


@pytest.mark.parametrize(("revision", "token"), [(REVISIONS[0], 3), (REVISIONS[1], "a-token"), (REVISIONS[2], 0)])
def test_progress_comes_before_the_answer_and_never_twice(mcp: McpGateway, token: object, revision: str) -> None:
    mcp.then(
        lambda: mcp.report("received"),
        lambda: None,
        lambda: mcp.report("processing", 2),
        lambda: mcp.report("succeeded", 3, result={"n": 1}),
    )
    params = {"name": "analyse", "arguments": GOOD, "_meta": {"progressToken": token}}
    *notices, last = events(mcp.ask("tools/call", params, revision=revision)[1])
    assert (last["id"], last["result"]["structuredContent"]) == (7, {"n": 1})
    assert {notice["method"] for notice in notices} == {"notifications/progress"}
    assert {notice["params"]["progressToken"] for notice in notices} == {token}
    assert [notice["params"]["progress"] for notice in notices] == [15, 22, 100]
    assert notices[0]["params"]["total"] == 100
    assert notices[0]["params"]["message"] == "running at inspect-dataset"


def test_progress_is_told_to_those_who_ask_and_can_take_it(mcp: McpGateway) -> None:
    def done() -> None:
        mcp.report("succeeded", result={})

    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("analyse", {}),
        ("quiet", {"params": {"_meta": {"progressToken": 1}}}),
        ("analyse", {"params": {"_meta": {"progressToken": 1}}, "headers": {"accept": "application/json"}}),
    )
    for name, more in calls:
        mcp.then(done)
        assert mcp.use(name, GOOD, **more)["structuredContent"] == {}


# --- canceling by the request's id


def test_a_request_is_canceled_by_its_id(mcp: McpGateway) -> None:
    session = mcp.in_session
    mcp.use("analyse", GOOD, revision=LEGACY, headers=session | AT_ONCE, id="r1")
    for of, named in (("another", "r1"), (mcp.session, "r2"), (mcp.session, 1), ("", "r1")):
        assert cancel(mcp, named, of) == (202, None)
    assert cancel(mcp, "r1", mcp.session, BOB) == (202, None)
    assert mcp.shown()["status"] == "pending"
    assert cancel(mcp, "r1", mcp.session) == (202, None)
    assert mcp.shown()["status"] == "canceled"
    assert cancel(mcp, "r1", mcp.session) == (202, None)


def test_a_call_in_flight_ends_when_it_is_canceled(mcp: McpGateway) -> None:
    mcp.then(lambda: mcp.report("received"), lambda: _taken(cancel(mcp, 7, mcp.session)))
    result = mcp.use("analyse", GOOD, revision=LEGACY, headers=mcp.in_session)
    assert (result["isError"], result["structuredContent"]["status"]) == (True, "canceled")
    assert mcp.clock.seconds < 5


def test_a_cancellation_waits_for_a_request_that_is_on_its_way(mcp: McpGateway) -> None:
    mcp.then(
        lambda: None,
        lambda: _taken(mcp.use("analyse", GOOD, revision=LEGACY, headers=mcp.in_session | AT_ONCE)),
    )
    assert cancel(mcp, 7, mcp.session) == (202, None)
    assert mcp.shown()["status"] == "canceled"


def test_a_request_that_is_repeated_starts_nothing(mcp: McpGateway) -> None:
    more: Any = {"revision": LEGACY, "headers": mcp.in_session | AT_ONCE}
    first = mcp.use("analyse", GOOD, **more)["structuredContent"]["id"]
    assert mcp.use("analyse", GOOD, **more)["structuredContent"]["id"] == first
    status, content = mcp.ask("tools/call", {"name": "analyse", "arguments": {"flights": "raw/y"}}, **more)
    assert (status, content["error"]["code"]) == (200, -32600)
    assert mcp.use("analyse", GOOD, **more, id=8)["structuredContent"]["id"] != first


def test_what_cannot_be_canceled_is_said(mcp: McpGateway) -> None:
    session = {"mcp-protocol-version": LEGACY, "mcp-session-id": mcp.session}
    wrong = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}
    assert mcp.post(wrong, session)[1]["error"]["code"] == -32602


def test_at_the_newest_revision_ids_name_nothing(mcp: McpGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody_asks(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(SubmissionKeys, "claim", nobody_asks)
    monkeypatch.setattr(SubmissionKeys, "task_of", nobody_asks)
    mcp.use("analyse", GOOD, headers=mcp.in_session | AT_ONCE)
    notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    assert mcp.post(notice, {"mcp-protocol-version": REVISIONS[0], "mcp-session-id": mcp.session}) == (202, None)
    assert mcp.shown()["status"] == "pending"


def cancel(mcp: McpGateway, message_id: object, session: str, iam: dict[str, str] = ALICE) -> tuple[int, Any]:
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message_id, "reason": "r"}}
    headers = {"mcp-protocol-version": LEGACY, "mcp-session-id": session}
    return mcp.post(body, headers, iam)


def _taken(_: object) -> None:
    """What is done for its own sake."""


# --- tools that pause


def test_a_paused_task_says_how_it_goes_on(mcp: McpGateway) -> None:
    mcp.then(mcp.pause)
    result = mcp.use("analyse", GOOD)
    state = result["structuredContent"]
    assert "isError" not in result
    assert (state["status"], state["pause"]["prompt"]) == ("paused", "Send it?")
    text = result["content"][0]["text"]
    assert "Send it?" in text
    assert "- approved (boolean): Go on?" in text
    assert f'resume_task with {{"id": "{state["id"]}", "input": {{…}}}}' in text
    wrong = mcp.use("resume_task", {"id": state["id"], "input": {"approved": "perhaps"}})
    assert (wrong["isError"], "approved: should be true or false" in wrong["content"][0]["text"]) == (True, True)
    mcp.then(lambda: mcp.report("succeeded", 9, result={"sent": True}))
    resumed = mcp.use("resume_task", {"id": state["id"], "input": {"approved": True}})
    assert resumed["structuredContent"] == {"sent": True}
    assert "is no longer paused" in mcp.use("resume_task", {"id": state["id"], "input": {}})["content"][0]["text"]


def answer(mcp: McpGateway, asked: Any, said: object, **more: Any) -> Any:
    params = {"requestState": asked["requestState"], "inputResponses": {"pause": said}} | ASKS
    return mcp.use("analyse", GOOD, params=params, **more)


def test_clients_that_ask_their_person_are_given_the_question(mcp: McpGateway) -> None:
    mcp.then(mcp.pause)
    asked = mcp.use("analyse", GOOD, params=ASKS)
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"] == {
        "pause": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Send it?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"approved": {"title": "approved", "type": "boolean", "description": "Go on?"}},
                    "required": ["approved"],
                },
            },
        }
    }
    for said in ({"action": "decline"}, {"action": "cancel"}):
        assert answer(mcp, asked, said)["structuredContent"]["status"] == "paused"
    again = answer(mcp, asked, {"action": "accept", "content": {"approved": "perhaps"}})
    assert again["resultType"] == "input_required"
    assert "should be true or false" in again["inputRequests"]["pause"]["params"]["message"]
    assert mcp.shown()["status"] == "paused"
    yes = {"action": "accept", "content": {"approved": True, "left": None}}
    mcp.then(lambda: mcp.report("succeeded", 9, result={"sent": True}))
    assert answer(mcp, again, yes)["structuredContent"] == {"sent": True}
    [sent] = mcp.gateway.messages("x-resume")
    assert sent["headers"]["x-asya-resume-input"] == {"approved": True}
    # The same answer once more, because its own answer was lost: the task is what it is.
    assert answer(mcp, again, yes)["structuredContent"] == {"sent": True}
    assert mcp.gateway.messages("x-resume") == []


def test_an_answer_is_to_one_pause_only(mcp: McpGateway) -> None:
    mcp.then(mcp.pause)
    asked = mcp.use("analyse", GOOD, params=ASKS)
    yes = {"action": "accept", "content": {"approved": True}}
    mcp.then(lambda: mcp.pause(3, 2.0))
    second = answer(mcp, asked, yes)
    assert second["resultType"] == "input_required"
    assert second["requestState"] != asked["requestState"]
    repeated = answer(mcp, asked, yes)
    assert repeated["requestState"] == second["requestState"]
    assert mcp.shown()["status"] == "paused"


def test_only_the_owner_answers(mcp: McpGateway) -> None:
    mcp.then(mcp.pause)
    asked = mcp.use("analyse", GOOD, params=ASKS)
    yes = {"action": "accept", "content": {"approved": True}}
    assert "there is no task" in answer(mcp, asked, yes, iam=BOB)["content"][0]["text"]
    for state in ("", " ", "nothing", "a" * 400 + " x"):
        assert answer(mcp, {"requestState": state}, yes)["isError"] is True
    assert mcp.shown()["status"] == "paused"


@pytest.mark.parametrize(
    ("fields", "properties"),
    [
        ((), {}),
        (
            (PauseField(name="n", type="number", options=(1, 2), default=1, required=True),),
            {"n": {"title": "n", "type": "number", "description": " (one of [1,2])", "default": 1}},
        ),
        (
            (PauseField(name="s", type="string", options=("a", "b"), required=False),),
            {"s": {"title": "s", "type": "string", "enum": ["a", "b"]}},
        ),
        (
            (PauseField(name="l", type="array", options=("a", "b")),),
            {"l": {"title": "l", "type": "array", "items": {"type": "string", "enum": ["a", "b"]}}},
        ),
        ((PauseField(name="l", type="array"),), None),
        ((PauseField(name="o", type="object", prompt="What?", required=False),), None),
    ],
)
def test_what_a_form_has_no_room_for_is_said_in_words(
    mcp: McpGateway, fields: tuple[PauseField, ...], properties: Any
) -> None:
    spec: Actor = changed(APPROVE, pause=Pause(prompt="P", fields=fields))
    mcp.then(lambda: mcp.pause(spec=spec))
    result = mcp.use("analyse", GOOD, params=ASKS)
    if properties is None:
        assert result["structuredContent"]["pause"]["prompt"] == "P"
        assert f"- {fields[0].name} ({fields[0].type}" in result["content"][0]["text"]
    else:
        form = result["inputRequests"]["pause"]["params"]["requestedSchema"]
        assert form["properties"] == properties
        assert form["required"] == [each.name for each in fields if each.required and each.default is None]


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"elicitation": True}])
def test_clients_that_ask_nobody_are_told_in_words(mcp: McpGateway, capabilities: dict[str, Any]) -> None:
    mcp.then(mcp.pause)
    params = {"_meta": {"io.modelcontextprotocol/clientCapabilities": capabilities}}
    assert mcp.use("analyse", GOOD, params=params)["structuredContent"]["status"] == "paused"
