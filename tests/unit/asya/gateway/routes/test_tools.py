"""Tools over REST (`protocol §13`, `POST /tools/call`)."""

import threading
from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.gateway.routes import tools
from asya.protocol.mesh_table import Tool
from asya.tasks.starts.tool_schemas import validate
from tests.doubles.gateway_functions import ALICE, MESH, Gateway, read_task_event, report, route_event, signed_by

ROUTE = "POST /tools/call"
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["flights"],
    "properties": {
        "flights": {"type": "string", "pattern": "^raw/"},
        "months": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"$ref": "#/$defs/month"}},
    },
    "dependentRequired": {"months": ["airline"]},
    "unevaluatedProperties": {"type": "string"},
    "$defs": {"month": {"type": "integer", "minimum": 1, "maximum": 12}},
}
GOOD = {"flights": "raw/flights.csv.gz"}


@pytest.fixture(autouse=True)
def with_tools(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Tool(description="d", route=("inspect-dataset", "publish-report"), timeout=45, input_schema=SCHEMA)
    gateway.mesh = changed(MESH, tools={"analyse": tool, "plain": Tool(description="d", route=("publish-report",))})
    monkeypatch.setattr(tools, "WAIT_SECONDS", 0.0)


def call(gateway: Gateway, body: object, iam: dict[str, str] = ALICE) -> tuple[int, Any]:
    return gateway.api(route_event(ROUTE, iam, body))


@pytest.mark.rule("13.tools")
def test_a_call_starts_the_whole_route_with_the_arguments_as_payload(gateway: Gateway) -> None:
    status, content = call(gateway, {"name": "analyse", "arguments": GOOD})
    assert status == 202
    task_id = content["id"]
    base = "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com"
    assert content == {
        "id": task_id,
        "status": "pending",
        "status_url": f"{base}/api/v1/mesh/{task_id}",
        "stream_url": f"{base}/api/v1/mesh/{task_id}/events",
    }
    [message] = gateway.messages()
    assert message["route"] == {"prev": [], "curr": "inspect-dataset", "next": ["publish-report"]}
    assert message["payload"] == GOOD
    assert message["headers"]["x-asya-gateway-url"] == base
    shown = gateway.api(read_task_event(task_id, ALICE))[1]
    assert (shown["owner"], shown["deadline_at"], shown["status"]) == (
        "AIDAALICE",
        "2026-11-20T09:00:45.000000Z",
        "pending",
    )


@pytest.mark.rule("13.tool", "3.tool")
def test_the_task_and_its_envelope_name_the_tool(gateway: Gateway) -> None:
    task_id = call(gateway, {"name": "analyse", "arguments": GOOD})[1]["id"]
    assert gateway.api(read_task_event(task_id, ALICE))[1]["tool"] == "analyse"
    [message] = gateway.messages()
    assert message["headers"]["x-asya-tool"] == "analyse"


@pytest.mark.rule("13.tool", "3.tool", "3.gateway-strips")
def test_a_task_that_names_an_actor_has_no_tool(gateway: Gateway) -> None:
    forged = {"headers": {"x-asya-tool": "analyse", "X-Asya-Tool": "analyse"}}
    task_id = gateway.api(route_event("POST /api/v1/mesh", ALICE, forged, actor="inspect-dataset"))[1]["id"]
    assert "tool" not in gateway.api(read_task_event(task_id, ALICE))[1]
    [message] = gateway.messages()
    assert "x-asya-tool" not in {name.lower() for name in message["headers"]}


@pytest.mark.rule("13.tool")
def test_a_child_has_the_tool_of_its_root(gateway: Gateway) -> None:
    root = call(gateway, {"name": "analyse", "arguments": GOOD})[1]["id"]
    report(gateway, "slice", "received", parent_id=root, root_id=root)
    report(gateway, "other", "received", parent_id="unknown", root_id="unknown")
    read = {name: gateway.api(read_task_event(name, ALICE))[1] for name in ("slice", "other")}
    assert read["slice"]["tool"] == "analyse"
    assert "tool" not in read["other"]


@pytest.mark.rule("13.tools.answer")
@pytest.mark.parametrize(
    ("end", "data", "told"),
    [
        ("succeeded", {"result": {"n": 1}}, {"result": {"n": 1}}),
        ("succeeded", {"result_uri": "s3://b/k"}, {"result_uri": "s3://b/k"}),
        ("failed", {"reason": "Timeout", "error": {"type": "E", "message": "m"}}, {"reason": "Timeout"}),
        ("canceled", {"reason": "Canceled"}, {"reason": "Canceled"}),
    ],
)
def test_a_task_that_ends_in_time_is_the_answer(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, end: str, data: Any, told: dict[str, Any]
) -> None:
    monkeypatch.setattr(tools, "WAIT_SECONDS", 20.0)
    started = threading.Event()
    write = tools.ToolCalls.wait

    def wait(self: Any, task_id: str, *args: Any) -> Any:
        report(gateway, task_id, "received", 1)
        report(gateway, task_id, end, 2, data=data)
        started.set()
        return write(self, task_id, *args)

    monkeypatch.setattr(tools.ToolCalls, "wait", wait)
    status, content = call(gateway, {"name": "plain", "arguments": {}})
    assert (status, content["status"]) == (200, end)
    assert content.items() >= told.items()
    assert started.is_set()


def test_a_repetition_with_its_key_starts_nothing(gateway: Gateway) -> None:
    event = route_event(ROUTE, ALICE, {"name": "plain"})
    event["headers"] = event["headers"] | {"Idempotency-Key": "k1"}
    first, second = gateway.api(event), gateway.api(event)
    assert first[1]["id"] == second[1]["id"]
    assert len(gateway.messages("publish-report")) == 1
    assert gateway.api(event | {"body": '{"name": "plain", "arguments": {"a": 1}}'})[0] == 409


@pytest.mark.rule("13.limits", "13.tools.refused")
@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ("{", 400, "invalid_json", None),
        ("[]", 400, "invalid_json", None),
        ("", 400, "invalid_json", None),
        ({}, 400, "invalid_field", "name"),
        ({"name": 3}, 400, "invalid_field", "name"),
        ({"name": "nothing"}, 404, "unknown_tool", "name"),
        ({"name": "plain", "args": {}}, 400, "unknown_field", "args"),
        ({"name": "plain", "arguments": []}, 400, "invalid_field", "arguments"),
        ({"name": "analyse"}, 400, "invalid_arguments", "arguments"),
        ({"name": "analyse", "arguments": {"flights": 3}}, 400, "invalid_arguments", "arguments.flights"),
        ({"name": "analyse", "arguments": {"flights": "clean/x"}}, 400, "invalid_arguments", "arguments.flights"),
        ({"name": "analyse", "arguments": GOOD | {"months": [0], "airline": 1}}, 400, "invalid_arguments", None),
        ({"name": "analyse", "arguments": GOOD | {"months": [1, 13], "airline": "AA"}}, 400, "invalid_arguments",
         "arguments.months[1]"),
        ({"name": "analyse", "arguments": GOOD | {"months": [0]}}, 400, "invalid_arguments", "arguments"),
        ({"name": "plain", "arguments": {"a": "x" * 300_000}}, 413, "too_large", None),
    ],
)  # fmt: skip
def test_invalid_calls_are_rejected_with_the_field(
    gateway: Gateway, body: object, status: int, code: str, field: str | None
) -> None:
    answered, content = call(gateway, body)
    assert (answered, content["error"]["code"]) == (status, code)
    if field is not None:
        assert content["error"]["field"] == field
    assert gateway.messages() == []


def test_unsigned_calls_are_forbidden(gateway: Gateway) -> None:
    assert gateway.api(signed_by(route_event(ROUTE, ALICE, {"name": "plain"}), None))[0] == 403


def test_slow_patterns_and_remote_schemas_do_no_harm() -> None:
    assert validate({"pattern": "(a+)+$"}, "a" * 5000 + "b") != []
    with pytest.raises(ValueError, match="not fetched"):
        validate({"$ref": "http://127.0.0.1:9/schema.json"}, {})
