"""Helpers for Agent2Agent tests (`protocol §13`, `/a2a`): calls, messages, and a mesh with two tools."""

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace as changed

from asya.capabilities.a2a.routes import tasks
from asya.capabilities.pauses import pausing
from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.function.aws import clients
from asya.gateway.routes import tools
from asya.protocol import names
from asya.protocol.mesh_table import Actor, Tool
from asya.protocol.mesh_table import Gateway as GatewayLimits
from asya.protocol.pause import Pause, PauseField
from tests.doubles.envelopes import hop, message
from tests.doubles.gateway_functions import ALICE, MESH, Gateway, route_event
from tests.doubles.tasks import at

Json = dict[str, Any]
SCHEMA: Json = {
    "type": "object",
    "required": ["flights"],
    "properties": {"flights": {"type": "string", "pattern": "^raw/"}, "airline": {"type": "string"}},
}
ANALYSE = Tool(description="Analyses", route=("inspect-dataset", "publish-report"), input_schema=SCHEMA)
PLAIN = Tool(description="", route=("publish-report",))
FLIGHTS = {"flights": "raw/f.csv"}


@pytest.fixture
def with_tools(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mesh with two tools, and calls that do not wait."""
    gateway.mesh = changed(
        MESH,
        tools={"analyse": ANALYSE, "plain": PLAIN},
        gateway=GatewayLimits(notification_hosts=("127.0.0.1:9",)),
        operators=("arn:aws:iam::123456789012:role/Admin",),
    )
    monkeypatch.setattr(tools, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(tasks, "WAIT_SECONDS", 0.0)


def rpc(gateway: Gateway, method: str, params: object, iam: Json = ALICE, **headers: str) -> Json:
    """Makes a call and returns the whole response; a stream as a list of results."""
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    event = route_event("POST /a2a", iam, body)
    event["headers"] = event["headers"] | {name.replace("_", "-"): value for name, value in headers.items()}
    status, content = gateway.api(event)
    assert status == 200
    if isinstance(content, str):
        return {"result": [json.loads(line[6:])["result"] for line in content.splitlines() if line]}
    assert (content["jsonrpc"], content["id"]) == ("2.0", 7)
    response: Json = content
    return response


def result(gateway: Gateway, method: str, params: object, iam: Json = ALICE) -> Any:
    """Makes a call that succeeds and returns its result."""
    response = rpc(gateway, method, params, iam)
    assert "error" not in response, response["error"]
    return response["result"]


def error(gateway: Gateway, method: str, params: object, iam: Json = ALICE, **headers: str) -> Json:
    """Makes a call that fails and returns its error."""
    failure: Json = rpc(gateway, method, params, iam, **headers)["error"]
    return failure


def tool_message(tool: str = "analyse", arguments: object = FLIGHTS, *, number: int = 1, **message: object) -> Json:
    """Returns a message that calls a tool."""
    part = {"data": {"skill": tool, "arguments": arguments}}
    return {"message": {"messageId": f"m{number}", "role": "ROLE_USER", "parts": [part], **message}}


def user_message(*parts: object, role: str = "ROLE_USER", **message: object) -> Json:
    """Returns a message."""
    return {"message": {"messageId": "m1", "role": role, "parts": list(parts), **message}}


def start_task(gateway: Gateway, **message: object) -> str:
    """Starts a task with a message and returns its id."""
    return str(result(gateway, "SendMessage", tool_message(**message))["task"]["id"])  # type: ignore[arg-type]


def pause_task(gateway: Gateway, *fields: PauseField) -> str:
    """Starts a task, pauses it with a question, stores its envelope and returns its id."""
    task_id = start_task(gateway)
    actor = Actor(kind="pause", pause=Pause(prompt="Go on?", fields=fields))
    route = {"prev": ["inspect-dataset"], "curr": "approve", "next": ["publish-report"]}
    paused_hop = hop(message(id=task_id, route=route, payload=FLIGHTS), actor="approve", spec=actor)
    envelope = pausing.paused_envelope(paused_hop, now=at(1))
    pause = pausing.pause_of(envelope)
    assert pause is not None
    bucket = gateway.environ["ASYA_BUCKET"]
    PausedEnvelopes(clients.s3(), bucket).save(PauseKey(task_id, 0, 1), envelope)
    reports = json.loads(msgspec.json.encode([pausing.paused_report(paused_hop, pause)]))
    assert gateway.write_reports(reports) == [204]
    clients.sqs().create_queue(QueueName=names.queue_name("flights", "x-resume"))
    return task_id
