"""Messages of Agent2Agent (`protocol §13`, `/a2a`): they start, resume and cancel tasks."""

import pytest
from msgspec.structs import replace as changed

from asya.protocol.pause import PauseField
from tests.doubles.agents import (
    ANALYSE,
    FLIGHTS,
    Json,
    error,
    pause_task,
    result,
    start_task,
    tool_message,
    user_message,
)
from tests.doubles.gateway_functions import ALICE, BOB, Gateway, read_task_event, report, route_event

pytestmark = pytest.mark.usefixtures("with_tools")


@pytest.mark.rule("13.a2a.versions", "13.a2a.send")
def test_a_message_starts_the_route_of_a_tool(gateway: Gateway) -> None:
    part = {"data": {"tool": "analyse", "arguments": FLIGHTS}}
    task = result(gateway, "SendMessage", user_message(part))["task"]
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    [message] = gateway.messages()
    assert (message["id"], message["payload"]) == (task["id"], FLIGHTS)
    assert message["route"] == {"prev": [], "curr": "inspect-dataset", "next": ["publish-report"]}
    shown = gateway.api(read_task_event(task["id"], ALICE))[1]
    assert shown["owner"] == "AIDAALICE"


@pytest.mark.rule("13.a2a.ids")
def test_ids_and_contexts_live_in_the_mesh_alone(gateway: Gateway) -> None:
    """A new function answers each call, without state from the others."""
    own = result(gateway, "SendMessage", tool_message())["task"]
    assert own["contextId"] == own["id"]
    named = result(gateway, "SendMessage", tool_message(number=2, contextId="trip-1"))["task"]
    again = result(gateway, "GetTask", {"id": named["id"]})
    assert (again["id"], again["contextId"]) == (named["id"], "trip-1")


@pytest.mark.rule("13.a2a.ids")
def test_a_repeated_message_is_one_task(gateway: Gateway) -> None:
    assert start_task(gateway) == start_task(gateway)
    assert len(gateway.messages()) == 1
    failure = error(gateway, "SendMessage", tool_message(arguments={"flights": "raw/other.csv"}))
    assert (failure["code"], failure["message"][:24]) == (-32602, "this Idempotency-Key was")
    # Messages of another caller are separate.
    assert result(gateway, "SendMessage", tool_message(), BOB)["task"]["id"] != start_task(gateway)


@pytest.mark.rule("13.a2a.send")
@pytest.mark.parametrize(
    ("params", "payload"),
    [
        (user_message({"data": {"skill": "analyse", "arguments": FLIGHTS}}), FLIGHTS),
        (user_message({"data": FLIGHTS}, metadata={"skill": "analyse"}), FLIGHTS),
        (user_message({"data": FLIGHTS}) | {"metadata": {"tool": "analyse"}}, FLIGHTS),
        (user_message({"text": "raw/f.csv"}, metadata={"tool": "analyse"}), FLIGHTS),
        (user_message({"text": "AA"}, {"data": {"tool": "analyse", "arguments": FLIGHTS}}), {**FLIGHTS, "airline": "AA"}),
        (user_message({"data": {"tool": "analyse"}}, {"data": FLIGHTS}, {"data": {"airline": "AA"}}), {**FLIGHTS, "airline": "AA"}),
    ],
)  # fmt: skip
def test_a_tool_is_named_by_part_or_metadata(gateway: Gateway, params: Json, payload: Json) -> None:
    assert result(gateway, "SendMessage", params)["task"]["id"]
    assert [message["payload"] for message in gateway.messages()] == [payload]


@pytest.mark.rule("13.a2a.send")
def test_the_only_tool_needs_no_name(gateway: Gateway) -> None:
    gateway.mesh = changed(gateway.mesh, tools={"analyse": ANALYSE})
    result(gateway, "SendMessage", user_message({"text": "raw/f.csv"}))
    assert gateway.messages()[0]["payload"] == FLIGHTS


@pytest.mark.rule("13.a2a.send")
@pytest.mark.parametrize(
    ("params", "code", "field"),
    [
        (user_message({"data": FLIGHTS}), -32602, "parts"),
        (user_message({"text": "do it"}), -32602, "parts"),
        (user_message(), -32602, "parts"),
        (user_message({"text": "do it"}, metadata={"tool": "plain"}), -32005, "parts"),
        (user_message({"url": "https://x/y.csv"}, metadata={"tool": "plain"}), -32005, "parts[0]"),
        (user_message({"data": [1]}, metadata={"tool": "plain"}), -32602, "parts[0].data"),
        (user_message({"data": {"n": 1}}, {"data": {"n": 2}}, metadata={"tool": "plain"}), -32602, "parts[1].data.n"),
        (user_message({"data": {"tool": "plain"}}, metadata={"tool": "analyse"}), -32602, "parts[0]"),
        (user_message({"data": {"tool": 1}}), -32602, "parts[0].data.tool"),
        (user_message({"data": {"tool": "plain", "arguments": []}}), -32602, "parts[0].data.arguments"),
        (user_message(metadata={"skill": 1}), -32602, "metadata.tool"),
        (user_message({"data": FLIGHTS}, role="ROLE_AGENT"), -32602, "role"),
        (user_message({"data": FLIGHTS}, role="user"), -32602, "role"),
        (user_message({"data": FLIGHTS}, messageId=""), -32602, "messageId"),
        (user_message({"data": FLIGHTS}, messageId="m" * 256), -32602, "message.messageId"),
        (tool_message("nothing"), -32602, "name"),
        (tool_message(arguments={"flights": 1}), -32602, "arguments.flights"),
        (tool_message() | {"configuration": {"taskPushNotificationConfig": {"url": "http://x.example/"}}}, -32602, "url"),
    ],
)  # fmt: skip
def test_a_message_that_starts_nothing_gets_the_reason(gateway: Gateway, params: Json, code: int, field: str) -> None:
    failure = error(gateway, "SendMessage", params)
    info, *violations = failure["data"]
    assert (failure["code"], info["metadata"]) == (code, {"field": field})
    assert violations[0]["fieldViolations"][0]["field"] == field
    assert gateway.messages() == gateway.messages("publish-report") == []


@pytest.mark.rule("13.a2a.send")
def test_every_wrong_argument_is_named(gateway: Gateway) -> None:
    failure = error(
        gateway,
        "SendMessage",
        user_message({"data": {"tool": "analyse", "arguments": {"flights": 1, "airline": 2}}}),
    )
    info, violations = failure["data"]
    assert {each["field"] for each in violations["fieldViolations"]} == {"arguments.flights", "arguments.airline"}
    assert info["reason"] == "INVALID_PARAMS"


OK = PauseField(name="ok", type="boolean")
SURE = PauseField(name="sure", type="boolean")


@pytest.mark.rule("13.a2a.resume")
@pytest.mark.parametrize(
    ("parts", "answers"),
    [
        ([{"data": {"ok": True}}], {"ok": True}),
        ([{"text": " True "}], {"ok": True}),
        ([{"text": "sure"}, {"data": {"ok": False}}], {"ok": False}),
    ],
)
def test_a_message_to_a_paused_task_resumes_it(gateway: Gateway, parts: list[Json], answers: Json) -> None:
    task_id = pause_task(gateway, OK)
    task = result(gateway, "SendMessage", user_message(*parts, taskId=task_id, contextId=task_id))["task"]
    assert (task["id"], task["status"]["state"]) == (task_id, "TASK_STATE_WORKING")
    [sent] = gateway.messages("x-resume")
    assert (sent["id"], sent["headers"]["x-asya-resume-input"]) == (task_id, answers)
    # A second message comes too late.
    assert error(gateway, "SendMessage", user_message(*parts, taskId=task_id))["code"] == -32004


@pytest.mark.rule("13.a2a.resume")
def test_wrong_answers_are_named_by_field(gateway: Gateway) -> None:
    task_id = pause_task(gateway, OK)
    failure = error(gateway, "SendMessage", user_message({"data": {"ok": 1, "why": 2}}, taskId=task_id))
    assert failure["code"] == -32602
    assert {each["field"] for each in failure["data"][1]["fieldViolations"]} == {"ok", "why"}
    failure = error(gateway, "SendMessage", user_message({"text": "perhaps"}, taskId=task_id))
    assert (failure["code"], failure["data"][1]["fieldViolations"][0]["field"]) == (-32602, "ok")
    assert result(gateway, "GetTask", {"id": task_id})["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert gateway.messages("x-resume") == []


@pytest.mark.rule("13.a2a.resume")
@pytest.mark.parametrize(
    ("params", "code"),
    [
        (user_message({"text": "?"}, taskId="unknown"), -32001),
        (user_message({"text": "yes or no"}, taskId="two-fields"), -32602),
        (user_message({"data": {"ok": True}}, taskId="two-fields", contextId="another"), -32602),
        (user_message({"data": {"ok": True}}, taskId="running"), -32004),
        (user_message({"data": {"a": "x" * 140_000}}, taskId="two-fields"), -32602),
    ],
)
def test_a_task_takes_no_other_messages(gateway: Gateway, params: Json, code: int) -> None:
    known = {"two-fields": lambda: pause_task(gateway, OK, SURE), "running": lambda: start_task(gateway)}
    make = known.get(params["message"]["taskId"])
    message = params["message"] | ({"taskId": make()} if make else {})
    assert error(gateway, "SendMessage", {"message": message})["code"] == code


@pytest.mark.rule("13.a2a.cancel")
def test_a_task_is_canceled_by_method_and_by_path(gateway: Gateway) -> None:
    task_id = start_task(gateway)
    for _ in range(2):
        assert result(gateway, "CancelTask", {"id": task_id})["status"]["state"] == "TASK_STATE_CANCELED"
    other = start_task(gateway, number=2)
    path = "POST /a2a/tasks/{id}"
    assert gateway.api(route_event(path, BOB, {}, id=f"{other}:cancel"))[0] == 404
    status, task = gateway.api(route_event(path, ALICE, {}, id=f"{other}%3Acancel"))
    assert (status, task["id"], task["status"]["state"]) == (200, other, "TASK_STATE_CANCELED")
    assert gateway.api(route_event(path, ALICE, {}, id=other))[0] == 404
    assert gateway.api(route_event(path, ALICE, {}, id=":cancel"))[0] == 404
    done = start_task(gateway, number=3)
    report(gateway, done, "succeeded", 1)
    assert error(gateway, "CancelTask", {"id": done})["code"] == -32002
    assert gateway.api(route_event(path, ALICE, {}, id=f"{done}:cancel"))[0] == 409
