"""protocol §13, errors: callers learn the id of a failed request, and the log has the cause."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.function.aws import clients
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks
from tests.doubles.agents import tool_message
from tests.doubles.api_function import EVENT, emulated_shop
from tests.doubles.gateway_functions import ALICE, Gateway, recorded_event, route_event, with_body
from tests.doubles.mcp_gateway import McpGateway
from tests.unit.asya.gateway.routes.test_replays import Gateway as Shop
from tests.unit.asya.gateway.routes.test_resume import World
from tests.unit.memory_tables import memory_tables

ARN = "arn:aws:sts::123456789012:assumed-role/asya-shop-gateway/x"


def denied(action: str) -> ClientError:
    text = f"User: {ARN} is not authorized to perform {action}"
    answer: Any = {"Error": {"Code": "AccessDenied", "Message": text}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    return ClientError(answer, action)


def deny(monkeypatch: pytest.MonkeyPatch, client: Any, *operations: str) -> None:
    for action in operations:

        def refuse(*_: object, _action: str = action, **__: object) -> None:
            raise denied(_action)

        monkeypatch.setattr(client, action, refuse)


def unavailable(*_: object) -> None:
    raise TaskStoreError(f"cannot write: {ARN}")


def check(content: Any, request_id: str, caplog: pytest.LogCaptureFixture) -> None:
    """The answer names the request; only the log has the text of the AWS error, under the same id."""
    text = json.dumps(content)
    assert "arn:" not in text
    assert "AccessDenied" not in text
    assert request_id in text
    records = [str(vars(record)) for record in caplog.records]
    assert any(request_id in record and ARN in record for record in records)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with memory_tables(), emulated_shop(monkeypatch, "x-resume", "x-sink", "infer"):
        yield


@pytest.mark.rule("13.errors")
@pytest.mark.usefixtures("shop")
def test_a_replay_without_access_to_the_envelopes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop = Shop()
    shop.failed()
    deny(monkeypatch, clients.s3(), "get_object", "head_object", "list_objects_v2")
    status, content = shop.post("env-1", "replay")
    assert (status, content["error"]["code"]) == (503, "unavailable")
    check(content, EVENT["requestContext"]["requestId"], caplog)


@pytest.mark.rule("13.errors")
@pytest.mark.usefixtures("shop")
def test_a_resume_without_access_to_the_envelope(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.pause()
    deny(monkeypatch, clients.s3(), "get_object")
    status, content = world.post()
    assert (status, content["error"]["code"]) == (503, "unavailable")
    check(content, EVENT["requestContext"]["requestId"], caplog)


@pytest.mark.rule("13.errors")
def test_a_table_without_access(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Tasks, "create", unavailable)
    event = with_body(recorded_event("start-task"))
    status, content = gateway.api(event)
    assert (status, content["error"]["code"]) == (503, "unavailable")
    check(content, event["requestContext"]["requestId"], caplog)


@pytest.mark.rule("13.errors")
@pytest.mark.parametrize("part", ["table", "queue"])
def test_a_call_of_agent2agent(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, with_tools: None, part: str
) -> None:
    break_start(monkeypatch, part)
    body = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": tool_message()}
    event = route_event("POST /a2a", ALICE, body)
    content = gateway.api(event)[1]
    assert content["error"]["code"] == -32603
    check(content, event["requestContext"]["requestId"], caplog)


@pytest.mark.rule("13.errors")
@pytest.mark.parametrize("part", ["table", "queue"])
def test_a_call_of_a_tool_by_mcp(
    mcp: McpGateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, part: str
) -> None:
    break_start(monkeypatch, part)
    params = {"name": "analyse", "arguments": {"flights": "raw/flights.csv.gz"}}
    _, content = mcp.request("tools/call", params)
    check(content, route_event("POST /mcp", ALICE)["requestContext"]["requestId"], caplog)


def break_start(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    if part == "table":
        monkeypatch.setattr(Tasks, "create", unavailable)
    else:
        deny(monkeypatch, clients.sqs(), "send_message")
