"""Agent2Agent's messages (`protocol §13`, `/a2a`): they start tasks, answer their questions, and cancel them."""

import pytest
from msgspec.structs import replace as changed

from asya.protocol.pause import PauseField
from tests.doubles.agents import ANALYSE, GOOD, TALKS, Json, calling_tool, error, paused, result, saying, started
from tests.doubles.gateway_functions import ALICE, BOB, Gateway, calling, reading, report

pytestmark = pytest.mark.usefixtures("with_tools")


@pytest.mark.rule("13.a2a.versions")
@pytest.mark.parametrize(("method", "role", "state"), TALKS)
def test_a_message_starts_the_route_of_a_tool(gateway: Gateway, method: str, role: str, state: str) -> None:
    part = {"kind": "data", "data": {"tool": "analyse", "arguments": GOOD}}
    answer = result(gateway, method, saying(part, role=role, kind="message"))
    task = answer if method == "message/send" else answer["task"]
    assert task["status"]["state"] == state
    assert task.get("kind") == ("task" if method == "message/send" else None)
    [message] = gateway.messages()
    assert (message["id"], message["payload"]) == (task["id"], GOOD)
    assert message["route"] == {"prev": [], "curr": "inspect-dataset", "next": ["publish-report"]}
    shown = gateway.api(reading(task["id"], ALICE))[1]
    assert shown["owner"] == "AIDAALICE"


@pytest.mark.rule("13.a2a.ids")
def test_ids_and_contexts_are_kept_by_the_mesh_alone(gateway: Gateway) -> None:
    """Every call here is answered by a function of its own, that has never seen the others."""
    own = result(gateway, "SendMessage", calling_tool())["task"]
    assert own["contextId"] == own["id"]
    given = result(gateway, "SendMessage", calling_tool(number=2, contextId="trip-1"))["task"]
    again = result(gateway, "GetTask", {"id": given["id"]})
    assert (again["id"], again["contextId"]) == (given["id"], "trip-1")
    assert result(gateway, "tasks/get", {"id": given["id"]})["contextId"] == "trip-1"


@pytest.mark.rule("13.a2a.ids")
def test_a_message_that_comes_twice_is_one_task(gateway: Gateway) -> None:
    assert started(gateway) == started(gateway)
    assert len(gateway.messages()) == 1
    told = error(gateway, "SendMessage", calling_tool(arguments={"flights": "raw/other.csv"}))
    assert (told["code"], told["message"][:24]) == (-32602, "this Idempotency-Key was")
    # Somebody else's messages have nothing to do with it.
    assert result(gateway, "SendMessage", calling_tool(), BOB)["task"]["id"] != started(gateway)


@pytest.mark.rule("13.a2a.send")
@pytest.mark.parametrize(
    ("params", "payload"),
    [
        (saying({"data": {"skill": "analyse", "arguments": GOOD}}), GOOD),
        (saying({"data": GOOD}, metadata={"skill": "analyse"}), GOOD),
        (saying({"data": GOOD}) | {"metadata": {"tool": "analyse"}}, GOOD),
        (saying({"text": "raw/f.csv"}, metadata={"tool": "analyse"}), GOOD),
        (saying({"text": "AA"}, {"data": {"tool": "analyse", "arguments": GOOD}}), {**GOOD, "airline": "AA"}),
        (saying({"data": {"tool": "analyse"}}, {"data": GOOD}, {"data": {"airline": "AA"}}), {**GOOD, "airline": "AA"}),
    ],
)  # fmt: skip
def test_a_tool_is_named_by_part_or_metadata(gateway: Gateway, params: Json, payload: Json) -> None:
    assert result(gateway, "SendMessage", params)["task"]["id"]
    assert [message["payload"] for message in gateway.messages()] == [payload]


@pytest.mark.rule("13.a2a.send")
def test_the_only_tool_needs_no_name(gateway: Gateway) -> None:
    gateway.mesh = changed(gateway.mesh, tools={"analyse": ANALYSE})
    result(gateway, "SendMessage", saying({"text": "raw/f.csv"}))
    assert gateway.messages()[0]["payload"] == GOOD


@pytest.mark.rule("13.a2a.send")
@pytest.mark.parametrize(
    ("params", "code", "field"),
    [
        (saying({"data": GOOD}), -32602, "parts"),
        (saying({"text": "do it"}), -32602, "parts"),
        (saying(), -32602, "parts"),
        (saying({"text": "do it"}, metadata={"tool": "plain"}), -32005, "parts"),
        (saying({"url": "https://x/y.csv"}, metadata={"tool": "plain"}), -32005, "parts[0]"),
        (saying({"data": [1]}, metadata={"tool": "plain"}), -32602, "parts[0].data"),
        (saying({"data": {"n": 1}}, {"data": {"n": 2}}, metadata={"tool": "plain"}), -32602, "parts[1].data.n"),
        (saying({"data": {"tool": "plain"}}, metadata={"tool": "analyse"}), -32602, "parts[0]"),
        (saying({"data": {"tool": 1}}), -32602, "parts[0].data.tool"),
        (saying({"data": {"tool": "plain", "arguments": []}}), -32602, "parts[0].data.arguments"),
        (saying(metadata={"skill": 1}), -32602, "metadata.tool"),
        (saying({"data": GOOD}, role="ROLE_AGENT"), -32602, "role"),
        (saying({"data": GOOD}, role="user"), -32602, "role"),
        (saying({"data": GOOD}, messageId=""), -32602, "messageId"),
        (saying({"data": GOOD}, messageId="m" * 256), -32602, "message.messageId"),
        (calling_tool("nothing"), -32602, "name"),
        (calling_tool(arguments={"flights": 1}), -32602, "arguments.flights"),
        (calling_tool() | {"configuration": {"taskPushNotificationConfig": {"url": "http://x.example/"}}}, -32602, "url"),
    ],
)  # fmt: skip
def test_what_starts_nothing_says_why(gateway: Gateway, params: Json, code: int, field: str) -> None:
    told = error(gateway, "SendMessage", params)
    info, *violations = told["data"]
    assert (told["code"], info["metadata"]) == (code, {"field": field})
    assert violations[0]["fieldViolations"][0]["field"] == field
    assert gateway.messages() == gateway.messages("publish-report") == []


@pytest.mark.rule("13.a2a.send")
def test_every_wrong_argument_is_named(gateway: Gateway) -> None:
    told = error(
        gateway,
        "message/send",
        saying({"data": {"tool": "analyse", "arguments": {"flights": 1, "airline": 2}}}, role="user"),
    )
    assert told["data"]["fields"].keys() == {"arguments.flights", "arguments.airline"}
    assert told["data"]["reason"] == "INVALID_PARAMS"


OK = PauseField(name="ok", type="boolean")
SURE = PauseField(name="sure", type="boolean")


@pytest.mark.rule("13.a2a.resume")
@pytest.mark.parametrize(
    ("parts", "given"),
    [
        ([{"data": {"ok": True}}], {"ok": True}),
        ([{"text": " True "}], {"ok": True}),
        ([{"text": "sure"}, {"data": {"ok": False}}], {"ok": False}),
    ],
)
def test_a_message_to_a_task_that_asks_resumes_it(gateway: Gateway, parts: list[Json], given: Json) -> None:
    task_id = paused(gateway, OK)
    task = result(gateway, "SendMessage", saying(*parts, taskId=task_id, contextId=task_id))["task"]
    assert (task["id"], task["status"]["state"]) == (task_id, "TASK_STATE_WORKING")
    [sent] = gateway.messages("x-resume")
    assert (sent["id"], sent["headers"]["x-asya-resume-input"]) == (task_id, given)
    # Once is enough: the second message comes too late.
    assert error(gateway, "SendMessage", saying(*parts, taskId=task_id))["code"] == -32004


@pytest.mark.rule("13.a2a.resume")
def test_answers_that_do_not_fit_are_told_field_by_field(gateway: Gateway) -> None:
    task_id = paused(gateway, OK)
    part = {"kind": "data", "data": {"ok": 1, "why": 2}}
    told = error(gateway, "message/send", saying(part, role="user", taskId=task_id))
    assert (told["code"], told["data"]["fields"].keys()) == (-32602, {"ok", "why"})
    told = error(gateway, "SendMessage", saying({"text": "perhaps"}, taskId=task_id))
    assert (told["code"], told["data"][1]["fieldViolations"][0]["field"]) == (-32602, "ok")
    assert result(gateway, "GetTask", {"id": task_id})["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert gateway.messages("x-resume") == []


@pytest.mark.rule("13.a2a.resume")
@pytest.mark.parametrize(
    ("params", "code"),
    [
        (saying({"text": "?"}, taskId="nobody-knows"), -32001),
        (saying({"text": "yes or no"}, taskId="two-fields"), -32602),
        (saying({"data": {"ok": True}}, taskId="two-fields", contextId="another"), -32602),
        (saying({"data": {"ok": True}}, taskId="running"), -32004),
        (saying({"data": {"a": "x" * 140_000}}, taskId="two-fields"), -32602),
    ],
)
def test_a_task_takes_no_other_messages(gateway: Gateway, params: Json, code: int) -> None:
    known = {"two-fields": lambda: paused(gateway, OK, SURE), "running": lambda: started(gateway)}
    make = known.get(params["message"]["taskId"])
    message = params["message"] | ({"taskId": make()} if make else {})
    assert error(gateway, "SendMessage", {"message": message})["code"] == code


@pytest.mark.rule("13.a2a.cancel")
def test_cancelling_by_method_and_by_path(gateway: Gateway) -> None:
    task_id = started(gateway)
    assert result(gateway, "tasks/cancel", {"id": task_id})["status"]["state"] == "canceled"
    assert result(gateway, "CancelTask", {"id": task_id})["status"]["state"] == "TASK_STATE_CANCELED"
    other = started(gateway, number=2)
    path = "POST /a2a/tasks/{id}"
    assert gateway.api(calling(path, BOB, {}, id=f"{other}:cancel"))[0] == 404
    status, task = gateway.api(calling(path, ALICE, {}, id=f"{other}%3Acancel"))
    assert (status, task["id"], task["status"]["state"]) == (200, other, "TASK_STATE_CANCELED")
    assert gateway.api(calling(path, ALICE, {}, id=other))[0] == 404
    assert gateway.api(calling(path, ALICE, {}, id=":cancel"))[0] == 404
    done = started(gateway, number=3)
    report(gateway, done, "succeeded", 1)
    assert error(gateway, "CancelTask", {"id": done})["code"] == -32002
    assert gateway.api(calling(path, ALICE, {}, id=f"{done}:cancel"))[0] == 409
