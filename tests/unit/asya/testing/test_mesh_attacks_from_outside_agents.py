"""A caller tries tasks of others by MCP and Agent2Agent, and notifications to addresses inside (`protocol §13.mcp`, `§13.a2a`)."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.doubles.attacked_from_outside import ALICE, EVE, UNKNOWN, Bank, new_bank


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return new_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture(scope="module")
def before(bank: Bank) -> dict[str, Any]:
    return bank.of_alice()


def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def said(task_id: str, **more: Any) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {}}], "taskId": task_id, **more}}


def about_a_tool(name: str, **more: Any) -> Callable[[str], tuple[str, dict[str, Any]]]:
    return lambda task: ("/mcp", rpc("tools/call", {"name": name, "arguments": {"id": task, **more}}))


MCP = {"mcp_protocol_version": "2025-11-25"}


AGENT_CALLS: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "GetTask": lambda task: ("/a2a", rpc("GetTask", {"id": task})),
    "CancelTask": lambda task: ("/a2a", rpc("CancelTask", {"id": task})),
    "SubscribeToTask": lambda task: ("/a2a", rpc("SubscribeToTask", {"id": task})),
    "SendMessage": lambda task: ("/a2a", rpc("SendMessage", said(task))),
    "SendStreamingMessage": lambda task: ("/a2a", rpc("SendStreamingMessage", said(task, contextId=task))),
    "a push configuration": lambda task: (
        "/a2a",
        rpc("CreateTaskPushNotificationConfig", {"taskId": task, "url": "https://evil.example/"}),
    ),
    "its push configurations": lambda task: ("/a2a", rpc("ListTaskPushNotificationConfigs", {"taskId": task})),
    "wait_for_task": about_a_tool("wait_for_task"),
    "cancel_task": about_a_tool("cancel_task"),
    "resume_task": about_a_tool("resume_task", input={"approved": True}),
}


@pytest.mark.rule("13.owner", "13.a2a.errors", "13.mcp.owner")
@pytest.mark.parametrize("name", AGENT_CALLS)
def test_an_agent_finds_no_task_of_others(bank: Bank, before: dict[str, Any], name: str) -> None:
    for task_id in bank.ids:
        unknown = f"{UNKNOWN}-{task_id}"
        path, body = AGENT_CALLS[name](task_id)
        headers = {"accept": "application/json", "prefer": "wait=0"} | (MCP if path == "/mcp" else {})
        _, answer = bank.call("POST", path, body, **headers)
        assert answer.replace(task_id, unknown) == bank.call("POST", path, AGENT_CALLS[name](unknown)[1], **headers)[1]
        assert '"error"' in answer or '"isError":true' in answer
    assert bank.changed(before) == {}


@pytest.mark.rule("13.mcp.owner", "13.mcp.pause")
def test_an_answer_to_a_question_of_others_answers_none(bank: Bank, before: dict[str, Any]) -> None:
    """The state with which a client repeats its request names the task, and nobody has signed it."""
    revision = "2026-07-28"
    headers = {"accept": "application/json", "mcp_protocol_version": revision, "mcp_method": "tools/call"}
    meta = {"io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": {}}
    since = json.loads(bank.call("GET", f"/api/v1/mesh/{bank.paused}", by=ALICE)[1])["pause"]["since"]
    found = []
    for state in (
        f"{bank.paused} {since}",
        f"{bank.paused} 2020-01-01T00:00:00Z",
        f"{UNKNOWN} {since}",
        bank.paused,
        "",
    ):
        params = {"name": "pay", "arguments": {}, "requestState": state, "_meta": meta}
        answers = {"pause": {"action": "accept", "content": {"approved": True}}}
        body = rpc("tools/call", params | {"inputResponses": answers})
        found.append(bank.call("POST", "/mcp", body, mcp_name="pay", prefer="wait=0", **headers)[1])
    assert all('"isError":true' in answer and "there is no task" in answer for answer in found)
    assert found[2] == found[0].replace(bank.paused, UNKNOWN)
    assert bank.changed(before) == {}


INSIDE = (
    *(
        "169.254.169.254",
        "127.0.0.1",
        "127.0.0.1:9001",
        "localhost",
        "a.localhost",
        "10.0.0.1",
        "100.64.0.1",
        "0.0.0.0",
    ),
    *("[::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]"),
    *("metadata.internal", "me@public.example", "public.example:0"),
)


@pytest.mark.rule("13.a2a.push.address")
def test_a_notification_goes_to_no_address_inside(bank: Bank, before: dict[str, Any]) -> None:
    """A push configuration of a task of hers leads to where only the functions of the mesh come."""
    _, answer = bank.call("POST", "/tools/call", {"name": "pay", "arguments": {"amount": 1}}, prefer="wait=0")
    config = {"taskId": json.loads(answer)["id"]}
    urls = [f"{scheme}://{host}/latest" for host in INSIDE for scheme in ("https", "http", "file", "gopher")]
    urls += ["http://public.example/", "https://public.example/\r\nhost: evil", "https:///x", "//public.example", "x"]
    secrets = ("a\r\nhost: evil", "é", "a" * 5_000)
    wrong = [{"url": url} for url in (*urls, "https://" + "a" * 3_000)]
    wrong += [{"url": "https://public.example/", "token": secret} for secret in secrets]
    for each in wrong:
        status, refused = bank.call("POST", "/a2a", rpc("CreateTaskPushNotificationConfig", config | each))
        assert '"error"' in refused or status in (400, 413)
        assert "alice-" not in refused
    assert bank.changed(before) == {}


@pytest.mark.rule("13.start.idempotent", "13.mcp.cancel")
def test_a_key_of_others_names_another_task(bank: Bank, before: dict[str, Any]) -> None:
    """Idempotency keys, ids of messages, and ids of requests within a session belong to their caller."""
    call = {"name": "pay", "arguments": {"amount": 7}}
    body = rpc("tools/call", call)
    kept: dict[str, set[str]] = {ALICE: set(), EVE: set()}
    for who, found in kept.items():
        for path, given, headers in (
            ("/tools/call", call, {"idempotency_key": "k"}),
            ("/mcp", body, MCP | {"mcp_session_id": "s"}),
        ):
            answer = bank.call("POST", path, given, by=who, prefer="wait=0", accept="application/json", **headers)[1]
            found.update(re.findall(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f-]{21}", answer))
    assert all(kept.values())
    assert kept[ALICE].isdisjoint(kept[EVE])
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    bank.call("POST", "/mcp", note, accept="application/json", mcp_session_id="s", **MCP)
    bank.mesh.cloud.run_until_idle()
    states = {json.loads(bank.call("GET", f"/api/v1/mesh/{each}", by=ALICE)[1])["status"] for each in kept[ALICE]}
    assert states == {"paused"}
    assert bank.changed(before) == {}
