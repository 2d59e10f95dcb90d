"""protocol §11.callback.models: a model gets no link that answers a pause, on the test kit."""

import json
from typing import Any

import pytest

from asya.testing import Mesh
from asya.testing.api import USER_ID
from asya.testing.deployment import TEST_USER

MESH = """
namespace: news
actors:
  approve:
    kind: pause
    pause: {prompt: "Publish it?", callback: true, show: [/text]}
tools:
  publish: {description: Publish a text, route: [approve, approve], input_schema: {type: object}}
"""
MCP = {
    "2025-11-25": ({}, {}),
    "2026-07-28": (
        {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}},
        {"mcp-method": "tools/call"},
    ),
}
FORMS = {"elicitation": {"form": {}}}


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    folder = tmp_path_factory.mktemp("news")
    (folder / "mesh.yaml").write_text(MESH)
    return Mesh(folder / "mesh.yaml")


def asked(mesh: Mesh, path: str, method: str, params: dict[str, Any], headers: dict[str, str]) -> str:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    accepts = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    answer: Any = mesh.cloud.request("POST", path, body, accepts | headers, user_arn=TEST_USER, user_id=USER_ID)
    assert answer["statusCode"] == 200, answer
    return str(answer["body"])


def paused(mesh: Mesh) -> str:
    """A task that is paused, and has a link."""
    run = mesh.send("approve", {"text": "t"}, then=["approve"])
    assert run.question is not None
    assert run.question.callback is not None
    return run.id


@pytest.mark.rule("11.callback.models")
@pytest.mark.parametrize("has_forms", [False, True])
@pytest.mark.parametrize("has_progress", [False, True])
@pytest.mark.parametrize("revision", MCP)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("wait_for_task", {}), ("resume_task", {"input": {"approved": True}}), ("cancel_task", {}), ("publish", None)],
)
def test_11_a_tool_answers_without_the_link(
    mesh: Mesh, tool: str, arguments: dict[str, Any] | None, revision: str, has_progress: bool, has_forms: bool
) -> None:
    """Also after an answer, which leads to the next pause."""
    meta, headers = MCP[revision]
    if "io.modelcontextprotocol/clientCapabilities" in meta and has_forms:
        meta = meta | {"io.modelcontextprotocol/clientCapabilities": FORMS}
    if has_progress:
        meta = meta | {"progressToken": "p"}
    sent = {"text": "t"} if arguments is None else {"id": paused(mesh)} | arguments
    named = {"mcp-name": tool} if headers else {}
    answer = asked(
        mesh,
        "/mcp",
        "tools/call",
        {"name": tool, "arguments": sent, "_meta": meta},
        {"mcp-protocol-version": revision, "prefer": "wait=1", **headers, **named},
    )
    assert "Publish it?" in answer or tool == "cancel_task"
    assert "callback" not in answer


@pytest.mark.rule("11.callback.models")
@pytest.mark.parametrize("method", ["GetTask", "ListTasks", "SubscribeToTask", "SendMessage", "SendStreamingMessage"])
def test_11_an_agent_gets_no_link(mesh: Mesh, method: str) -> None:
    task_id = paused(mesh)
    message = {
        "messageId": task_id,
        "role": "ROLE_USER",
        "parts": [{"data": {"skill": "publish", "arguments": {"text": "t"}}}],
    }
    params = {"message": message} if method.startswith("Send") else {} if method == "ListTasks" else {"id": task_id}
    answer = asked(mesh, "/a2a", method, params, {"a2a-version": "1.0"})
    assert "Publish it?" in answer
    assert "callback" not in answer


@pytest.mark.rule("11.callback.models", "13.a2a.push")
def test_11_a_notification_has_no_link(mesh: Mesh) -> None:
    """At each pause, and at the end."""
    task_id = paused(mesh)
    config = {"taskId": task_id, "url": "https://client.example/", "token": "t"}
    assert "callback" not in asked(mesh, "/a2a", "CreateTaskPushNotificationConfig", config, {"a2a-version": "1.0"})
    for _ in range(2):
        mesh.ask("POST", f"/api/v1/mesh/{task_id}/resume", None, body={"input": {}})
        mesh.travel(minutes=1)
    sent = [f"{each.url} {dict(each.headers)} {json.dumps(each.content)}" for each in mesh.notifications]
    assert any("Publish it?" in text for text in sent)
    assert any("TASK_STATE_COMPLETED" in text for text in sent)
    assert not [text for text in sent if "callback" in text]
