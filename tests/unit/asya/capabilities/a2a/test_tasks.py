"""Tasks of Agent2Agent (`protocol §13`, `/a2a`): states, owners, lists and invalid calls."""

import base64
import json

import pytest

from tests.doubles.agents import Json, error, result, start_task, tool_message, user_message
from tests.doubles.gateway_functions import ALICE, BOB, Gateway, read_task_event, report, route_event, signed_by

pytestmark = pytest.mark.usefixtures("with_tools")


@pytest.mark.rule("13.a2a.states")
@pytest.mark.parametrize(
    ("status", "data", "state"),
    [
        ("received", None, "WORKING"),
        ("succeeded", {"result": {"n": 1}}, "COMPLETED"),
        ("failed", {"reason": "Timeout", "error": {"type": "E", "message": "too late"}}, "FAILED"),
        ("canceled", {"reason": "Canceled"}, "CANCELED"),
        ("paused", {"prompt": "Go on?", "fields": [{"name": "ok", "type": "boolean"}]}, "INPUT_REQUIRED"),
    ],
)
def test_every_status_has_its_state(gateway: Gateway, status: str, data: Json | None, state: str) -> None:
    task_id = start_task(gateway)
    report(gateway, task_id, status, 1, data=data or {})
    task = result(gateway, "GetTask", {"id": task_id})
    assert task["status"]["state"] == f"TASK_STATE_{state}"
    assert (task["metadata"]["progress_percent"] == 100) == (status == "succeeded")


@pytest.mark.rule("13.tool")
def test_the_task_of_a_message_names_its_tool(gateway: Gateway) -> None:
    assert gateway.api(read_task_event(start_task(gateway), ALICE))[1]["tool"] == "analyse"


@pytest.mark.rule("13.a2a.states", "11.pause.shown-to")
def test_a_failure_has_its_reason_and_a_pause_its_question(gateway: Gateway) -> None:
    task_id = start_task(gateway)
    shown = [{"pointer": "/total", "text": "3544790567247868102", "type": "number"}]
    question = {"prompt": "Go on?", "fields": [{"name": "ok", "type": "boolean"}], "shown": shown}
    report(gateway, task_id, "paused", 1, data=question)
    message = result(gateway, "GetTask", {"id": task_id})["status"]["message"]
    assert (message["role"], message["parts"][0]) == ("ROLE_AGENT", {"text": "Go on?"})
    assert message["parts"][1]["data"]["fields"][0]["name"] == "ok"
    assert message["parts"][1]["data"]["shown"] == shown
    failed = start_task(gateway, number=2)
    report(gateway, failed, "failed", 2, data={"reason": "RuntimeError", "error": {"type": "E", "message": "no disk"}})
    message = result(gateway, "GetTask", {"id": failed})["status"]["message"]
    assert message["parts"] == [{"text": "no disk"}, {"data": {"reason": "RuntimeError", "error": "E"}}]


@pytest.mark.rule("13.a2a.states")
@pytest.mark.parametrize(
    ("data", "part"),
    [
        ({"result": {"n": 1}}, {"data": {"n": 1}}),
        ({"result": "done"}, {"text": "done"}),
        ({"result": [1]}, {"data": [1]}),
        ({"result_uri": "s3://b/k"}, {"url": "s3://b/k", "mediaType": "application/json"}),
    ],
)
def test_a_result_is_an_artifact(gateway: Gateway, data: Json, part: Json) -> None:
    task_id = start_task(gateway)
    report(gateway, task_id, "succeeded", 1, data=data)
    [artifact] = result(gateway, "GetTask", {"id": task_id})["artifacts"]
    assert artifact == {"artifactId": "result", "name": "result", "parts": [part]}


@pytest.mark.rule("13.a2a.list")
def test_lists_hold_the_callers_tasks_and_filter_them(gateway: Gateway) -> None:
    first, second = start_task(gateway, contextId="trip"), start_task(gateway, number=2, contextId="trip")
    third = start_task(gateway, number=3)
    report(gateway, second, "succeeded", 1, data={"result": {"n": 1}})
    result(gateway, "SendMessage", tool_message(), BOB)

    def ids(**params: object) -> list[str]:
        return [task["id"] for task in result(gateway, "ListTasks", params)["tasks"]]

    assert set(ids()) == {first, second, third}
    assert set(ids(contextId="trip")) == {first, second}
    assert ids(status="TASK_STATE_COMPLETED") == [second]
    assert set(ids(statusTimestampAfter="2026-11-20T09:00:00.5Z")) == {second}
    page = result(gateway, "ListTasks", {"status": "TASK_STATE_COMPLETED", "includeArtifacts": True})
    assert (page["totalSize"], page["tasks"][0]["artifacts"][0]["parts"][0]["data"]) == (1, {"n": 1})
    assert "artifacts" not in result(gateway, "ListTasks", {"status": "TASK_STATE_COMPLETED"})["tasks"][0]


@pytest.mark.rule("13.a2a.list")
def test_lists_come_page_by_page(gateway: Gateway) -> None:
    task_ids = {start_task(gateway, number=number) for number in range(3)}
    page = result(gateway, "ListTasks", {"pageSize": 2})
    assert (len(page["tasks"]), page["pageSize"], page["totalSize"]) == (2, 2, -1)
    rest = result(gateway, "ListTasks", {"pageSize": 2, "pageToken": page["nextPageToken"]})
    assert {task["id"] for task in page["tasks"] + rest["tasks"]} == task_ids
    assert rest["nextPageToken"] == ""


@pytest.mark.rule("13.a2a.list")
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"pageSize": 101}, "pageSize"),
        ({"pageSize": 51, "includeArtifacts": True}, "pageSize"),
        ({"status": "TASK_STATE_REJECTED"}, "status"),
        ({"statusTimestampAfter": "yesterday"}, "statusTimestampAfter"),
        ({"pageToken": "x"}, "cursor"),
    ],
)
def test_invalid_filters_are_named(gateway: Gateway, params: Json, field: str) -> None:
    failure = error(gateway, "ListTasks", params)
    assert (failure["code"], failure["data"][0]["metadata"]["field"]) == (-32602, field)


@pytest.mark.rule("13.a2a.errors")
def test_tasks_of_other_owners_do_not_exist(gateway: Gateway) -> None:
    task_id = start_task(gateway)
    config = {"url": "https://x.example/"}
    for method, params in (
        ("GetTask", {"id": task_id}),
        ("CancelTask", {"id": task_id}),
        ("SubscribeToTask", {"id": task_id}),
        ("SendMessage", user_message({"data": {}}, taskId=task_id)),
        ("SendStreamingMessage", user_message({"data": {}}, taskId=task_id)),
        ("CreateTaskPushNotificationConfig", {"taskId": task_id, **config}),
        ("GetTaskPushNotificationConfig", {"taskId": task_id, "id": task_id}),
        ("ListTaskPushNotificationConfigs", {"taskId": task_id}),
        ("DeleteTaskPushNotificationConfig", {"taskId": task_id, "id": task_id}),
    ):
        assert error(gateway, method, params, BOB)["code"] == -32001, method
    assert gateway.api(signed_by(route_event("POST /a2a", ALICE, {}), None))[0] == 403


@pytest.mark.rule("13.a2a.errors")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", -32700),
        ("[]", -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "method": "GetTask", "params": {"id": "x"}}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "Nothing"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": None}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": 3}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}, -32001),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": ""}}, -32001),
        ({"jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": {"id": "x" * 3000}}, -32001),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}, -32007),
        ({"jsonrpc": "2.0", "id": 1, "method": "message/send"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTaskPushNotificationConfig", "params": {}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "CreateTaskPushNotificationConfig", "params": {"url": "x"}}, -32602),
    ],
)
def test_invalid_calls_are_answered_with_errors(gateway: Gateway, body: object, code: int) -> None:
    status, content = gateway.api(route_event("POST /a2a", ALICE, body))
    assert (status, content["error"]["code"]) == (200, code)
    encoded = base64.b64encode(json.dumps(body).encode() if not isinstance(body, str) else body.encode()).decode()
    event = route_event("POST /a2a", ALICE, "") | {"body": encoded, "isBase64Encoded": True}
    assert gateway.api(event)[1]["error"]["code"] == code


@pytest.mark.rule("13.a2a.versions")
def test_unsupported_versions_are_refused(gateway: Gateway) -> None:
    for version in ("2.0", "0.3", "0.3.0", "1.01"):
        assert error(gateway, "GetTask", {"id": "x"}, A2A_Version=version)["code"] == -32009
    assert error(gateway, "GetTask", {"id": "x"}, A2A_Version="1.0.1")["code"] == -32001
    assert gateway.api(route_event("POST /a2a", ALICE, {"a": "x" * 300_000}))[0] == 413
