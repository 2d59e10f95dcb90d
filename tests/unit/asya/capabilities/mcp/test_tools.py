"""Tools by Model Context Protocol (`protocol §13`): lists, calls, waiting and progress."""

import json
from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.capabilities.mcp.types import REVISIONS
from asya.protocol.mesh_table import Tool
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks
from tests.doubles.gateway_functions import ALICE, BOB, JWT_HOST, route_event, with_token
from tests.doubles.mcp_gateway import ARGUMENTS, BASE, LEGACY, NO_WAIT, ROUTE, McpGateway, events


@pytest.mark.rule("13.mcp.tools")
@pytest.mark.parametrize("revision", REVISIONS)
def test_tools_come_with_their_schemas(mcp: McpGateway, revision: str) -> None:
    tools = mcp.request("tools/list", revision=revision)[1]["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["analyse", "quiet", "cancel_task", "resume_task", "wait_for_task"]
    assert tools[0]["inputSchema"] == mcp.gateway.mesh.tools["analyse"].input_schema
    assert tools[1] == {"name": "quiet", "description": "Sends no progress", "inputSchema": {"type": "object"}}
    assert tools[4]["annotations"]["readOnlyHint"]


@pytest.mark.rule("13.mcp.tools")
def test_tools_come_by_the_page(mcp: McpGateway) -> None:
    tools = {f"tool-{number:03d}": Tool(description="d", route=("publish-report",)) for number in range(230)}
    mcp.gateway.mesh = changed(mcp.gateway.mesh, tools=tools)
    names: list[str] = []
    cursor: dict[str, str] = {}
    for size in (100, 100, 33):
        result = mcp.request("tools/list", cursor)[1]["result"]
        assert len(result["tools"]) == size
        names += [tool["name"] for tool in result["tools"]]
        cursor = {"cursor": result["nextCursor"]} if "nextCursor" in result else {}
    assert names[:230] == list(tools)
    assert cursor == {}
    for wrong in ("x", "!", "IjM", 3, ""):
        assert mcp.request("tools/list", {"cursor": wrong})[1]["error"]["code"] == -32602


def test_a_mesh_without_tools_lists_none(mcp: McpGateway) -> None:
    mcp.gateway.mesh = changed(mcp.gateway.mesh, tools={})
    assert mcp.request("tools/list")[1]["result"]["tools"] == []


def test_schemas_do_not_ask_for_arguments_in_headers(mcp: McpGateway) -> None:
    schema: dict[str, Any] = {
        "properties": {"a": {"x-mcp-header": "A", "properties": {"x-mcp-header": {"x-mcp-header": "B"}}}, "b": True}
    }
    tool = Tool(description="d", route=("publish-report",), input_schema=schema)
    mcp.gateway.mesh = changed(mcp.gateway.mesh, tools={"t": tool})
    listed = mcp.request("tools/list")[1]["result"]["tools"][0]["inputSchema"]
    assert listed == {"type": "object", "properties": {"a": {"properties": {"x-mcp-header": {}}}, "b": True}}


@pytest.mark.rule("13.mcp.answer", "13.tool")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_call_returns_the_result_of_its_task(mcp: McpGateway, revision: str) -> None:
    mcp.on_wait(lambda: mcp.report("received"), lambda: mcp.report("succeeded", 2, result={"n": "ü"}))
    result = mcp.call_tool("analyse", ARGUMENTS, revision=revision)
    assert json.loads(result["content"][0]["text"]) == {"n": "ü"}
    assert result["content"][0]["type"] == "text"
    assert result["structuredContent"] == {"n": "ü"}
    assert result["_meta"]["asya/taskId"] == mcp.task_id()
    assert mcp.view()["tool"] == "analyse"
    assert result.get("isError", False) is False
    assert ("resultType" in result) is (revision == REVISIONS[0])


@pytest.mark.parametrize(("value", "text"), [("two\nlines", "two\nlines"), ([1], "[1]"), (None, "null"), (3.5, "3.5")])
def test_results_that_are_not_objects(mcp: McpGateway, value: object, text: str) -> None:
    mcp.on_wait(lambda: mcp.report("succeeded", result=value))
    result = mcp.call_tool("analyse", ARGUMENTS)
    assert (result["content"], result["structuredContent"]) == ([{"type": "text", "text": text}], value)
    mcp.on_wait(lambda: mcp.report("succeeded", result=value))
    result = mcp.call_tool("analyse", ARGUMENTS, revision=LEGACY)
    assert result["content"] == [{"type": "text", "text": text}]
    assert "structuredContent" not in result


@pytest.mark.rule("13.mcp.answer")
def test_large_results_are_linked(mcp: McpGateway) -> None:
    mcp.on_wait(lambda: mcp.report("succeeded", result_uri="s3://bucket/key.json"))
    result = mcp.call_tool("analyse", ARGUMENTS)
    assert "s3://bucket/key.json" in result["content"][0]["text"]
    assert result["content"][1]["type"] == "resource_link"
    assert result["content"][1]["uri"] == result["structuredContent"]["result_uri"] == "s3://bucket/key.json"


@pytest.mark.rule("13.mcp.failures")
@pytest.mark.parametrize(
    ("end", "data", "text"),
    [
        ("failed", {"reason": "Timeout", "error": {"type": "E", "message": "too late"}}, "(Timeout): E: too late"),
        ("failed", {}, "failed at inspect-dataset"),
        ("canceled", {"reason": "Canceled"}, "was canceled"),
    ],
)
def test_failures_are_results(mcp: McpGateway, end: str, data: dict[str, Any], text: str) -> None:
    mcp.on_wait(lambda: mcp.report(end, **data))
    result = mcp.call_tool("analyse", ARGUMENTS)
    assert result["isError"] is True
    assert text in result["content"][0]["text"]
    assert (result["structuredContent"]["status"], result["structuredContent"]["id"]) == (end, mcp.task_id())


@pytest.mark.rule("13.mcp.failures")
def test_each_invalid_argument_is_named(mcp: McpGateway) -> None:
    result = mcp.call_tool("analyse", {"flights": "clean/x", "month": 13})
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert "- flights: " in text
    assert "- month: " in text
    assert "- arguments: " in mcp.call_tool("analyse", params={"arguments": None})["content"][0]["text"]
    assert mcp.gateway.messages() == []


@pytest.mark.rule("13.mcp.failures")
@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"name": "nothing"}, "no tool"),
        ({"name": "quiet", "arguments": [1]}, "object"),
        ({"name": "quiet", "arguments": '"'}, "object"),
        ({"name": "quiet", "arguments": {"a": 1e308}}, None),
    ],
)
def test_invalid_calls_are_refused(mcp: McpGateway, params: dict[str, Any], text: str | None) -> None:
    status, content = mcp.request("tools/call", params, headers=NO_WAIT)
    if text is None:
        assert status == 200
        return
    assert (status, content["error"]["code"]) == (400, -32602)
    assert text in content["error"]["message"]
    assert mcp.request("tools/call", params, revision=LEGACY)[0] == 200
    assert mcp.request("tools/call", {}, revision=LEGACY)[1]["error"]["code"] == -32602


def test_an_unavailable_table_is_an_internal_error(mcp: McpGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    large = Tool(description="d", route=("inspect-dataset",))
    mcp.gateway.mesh = changed(mcp.gateway.mesh, tools={"large": large, "lost": changed(large, route=("x-sink",))})

    def refuse(*_: object) -> None:
        raise TaskStoreError("no")

    monkeypatch.setattr(Tasks, "create", refuse)
    status, content = mcp.request("tools/call", {"name": "large"})
    assert (status, content["error"]["code"]) == (200, -32603)


@pytest.mark.rule("13.mcp.answer")
def test_a_long_task_is_answered_with_its_urls(mcp: McpGateway) -> None:
    mcp.on_wait(lambda: mcp.report("received"))
    result = mcp.call_tool("analyse", ARGUMENTS)
    assert mcp.clock.seconds == pytest.approx(25, abs=0.01)
    task_id = mcp.task_id()
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
        started = mcp.clock.seconds
        mcp.call_tool("analyse", ARGUMENTS, headers={"prefer": prefer})
        assert mcp.clock.seconds - started == pytest.approx(seconds, abs=0.01), prefer


def test_a_client_can_wait_for_a_task_again(mcp: McpGateway) -> None:
    task_id = mcp.call_tool("analyse", ARGUMENTS, headers=NO_WAIT)["structuredContent"]["id"]
    assert mcp.call_tool("wait_for_task", {"id": task_id}, headers=NO_WAIT)["structuredContent"]["id"] == task_id
    mcp.on_wait(lambda: mcp.report("succeeded", result={"n": 1}))
    assert mcp.call_tool("wait_for_task", {"id": task_id})["structuredContent"] == {"n": 1}
    assert mcp.started == [task_id]


@pytest.mark.rule("13.mcp.owner")
@pytest.mark.parametrize("tool", ["wait_for_task", "cancel_task", "resume_task"])
def test_tasks_of_other_owners_do_not_exist(mcp: McpGateway, tool: str) -> None:
    task_id = mcp.call_tool("analyse", ARGUMENTS, headers=NO_WAIT)["structuredContent"]["id"]
    more: dict[str, Any] = {"input": {}} if tool == "resume_task" else {}
    for arguments in ({"id": task_id}, {"id": "unknown"}):
        result = mcp.call_tool(tool, arguments | more, headers=NO_WAIT, iam=BOB)
        assert (result["isError"], "there is no task" in result["content"][0]["text"]) == (True, True)
    for wrong in ({}, {"id": 3}, {"id": ""}, {"id": "a" * 257}, {"id": "a", "b": 1}):
        assert mcp.call_tool(tool, wrong | more)["isError"] is True
    assert mcp.view()["status"] == "pending"


def test_a_task_is_canceled_by_the_tool(mcp: McpGateway) -> None:
    task_id = mcp.call_tool("analyse", ARGUMENTS, headers=NO_WAIT)["structuredContent"]["id"]
    for _ in range(2):
        result = mcp.call_tool("cancel_task", {"id": task_id})
        assert "isError" not in result
        assert result["structuredContent"]["status"] == "canceled"
    assert mcp.view()["status"] == "canceled"


@pytest.mark.rule("13.mcp.owner")
def test_jwt_callers_own_their_tasks_and_get_urls_of_their_api(mcp: McpGateway) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "analyse", "arguments": ARGUMENTS}}
    event = route_event(ROUTE, ALICE, body)
    event["headers"] |= NO_WAIT | {"mcp-protocol-version": LEGACY}
    state = json.loads(mcp.call(with_token(event, "00u7"))["body"])["result"]["structuredContent"]
    assert state["status_url"] == f"https://{JWT_HOST}/api/v1/mesh/{state['id']}"
    reading = route_event("GET /api/v1/mesh/{id}", ALICE, id=state["id"])
    assert [mcp.call(each)["statusCode"] for each in (with_token(reading, "00u7"), reading)] == [200, 404]


@pytest.mark.rule("13.mcp.progress")
@pytest.mark.parametrize(("revision", "token"), [(REVISIONS[0], 3), (REVISIONS[1], "a-token"), (REVISIONS[1], 0)])
def test_progress_comes_before_the_answer_and_increases(mcp: McpGateway, token: object, revision: str) -> None:
    mcp.on_wait(
        lambda: mcp.report("received"),
        lambda: None,
        lambda: mcp.report("processing", 2),
        lambda: mcp.report("succeeded", 3, result={"n": 1}),
    )
    params = {"name": "analyse", "arguments": ARGUMENTS, "_meta": {"progressToken": token}}
    *notifications, last = events(mcp.request("tools/call", params, revision=revision)[1])
    assert (last["id"], last["result"]["structuredContent"]) == (7, {"n": 1})
    assert {notification["method"] for notification in notifications} == {"notifications/progress"}
    assert {notification["params"]["progressToken"] for notification in notifications} == {token}
    assert [notification["params"]["progress"] for notification in notifications] == [15, 22, 100]
    assert notifications[0]["params"]["total"] == 100
    assert notifications[0]["params"]["message"] == "running at inspect-dataset"


@pytest.mark.rule("13.mcp.progress")
def test_progress_is_sent_only_to_clients_that_accept_it(mcp: McpGateway) -> None:
    def done() -> None:
        mcp.report("succeeded", result={})

    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("analyse", {}),
        ("quiet", {"params": {"_meta": {"progressToken": 1}}}),
        ("analyse", {"params": {"_meta": {"progressToken": 1}}, "headers": {"accept": "application/json"}}),
    )
    for name, more in calls:
        mcp.on_wait(done)
        assert mcp.call_tool(name, ARGUMENTS, **more)["structuredContent"] == {}
