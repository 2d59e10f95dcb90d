"""Agent2Agent over the gateway's function (`protocol §13`, `/a2a`): both versions, every method, state and error."""

import base64
import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace as changed

from asya.aws import clients
from asya.aws.paused_envelopes import PausedEnvelopes, PausePlace
from asya.lambdas import a2a_streams, tool_calls
from asya.protocol import names
from asya.protocol.mesh_table import Actor, Tool
from asya.protocol.mesh_table import Gateway as GatewayLimits
from asya.protocol.pause import Pause, PauseField
from asya.routing import pause
from tests.doubles.envelopes import hop, message
from tests.doubles.gateway_functions import ALICE, BOB, MESH, Gateway, by, calling, holding, reading
from tests.doubles.tasks import at
from tests.unit.gateway.test_lists import FUNCTION, report

Json = dict[str, Any]
SCHEMA: Json = {
    "type": "object",
    "required": ["flights"],
    "properties": {"flights": {"type": "string", "pattern": "^raw/"}, "airline": {"type": "string"}},
}
ANALYSE = Tool(description="Analyses", route=("inspect-dataset", "publish-report"), input_schema=SCHEMA)
PLAIN = Tool(description="", route=("publish-report",))
GOOD = {"flights": "raw/f.csv"}
TALKS = [("message/send", "user", "submitted"), ("SendMessage", "ROLE_USER", "TASK_STATE_SUBMITTED")]


@pytest.fixture(autouse=True)
def with_tools(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway.mesh = changed(
        MESH,
        tools={"analyse": ANALYSE, "plain": PLAIN},
        gateway=GatewayLimits(allowed_hosts=("127.0.0.1:9",)),
        operators=("arn:aws:iam::123456789012:role/Admin",),
    )
    # Nothing happens while these tests wait, as far as they do not make it happen themselves.
    monkeypatch.setattr(tool_calls.ToolCalls.wait, "__defaults__", (0.0,))
    monkeypatch.setattr(a2a_streams, "WAIT_SECONDS", 0.0)


def rpc(gateway: Gateway, method: str, params: object, iam: Json = ALICE, **headers: str) -> Json:
    """The whole answer to a call."""
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    event = calling("POST /a2a", iam, body)
    event["headers"] = event["headers"] | {name.replace("_", "-"): value for name, value in headers.items()}
    status, content = gateway.api(event)
    assert status == 200
    if isinstance(content, str):
        return {"result": [json.loads(line[6:])["result"] for line in content.splitlines() if line]}
    assert (content["jsonrpc"], content["id"]) == ("2.0", 7)
    answer: Json = content
    return answer


def result(gateway: Gateway, method: str, params: object, iam: Json = ALICE) -> Any:
    answer = rpc(gateway, method, params, iam)
    assert "error" not in answer, answer["error"]
    return answer["result"]


def error(gateway: Gateway, method: str, params: object, iam: Json = ALICE, **headers: str) -> Json:
    found: Json = rpc(gateway, method, params, iam, **headers)["error"]
    return found


def calling_tool(tool: str = "analyse", arguments: object = GOOD, *, number: int = 1, **message: object) -> Json:
    """A message in version 1.0 that calls a tool."""
    part = {"data": {"skill": tool, "arguments": arguments}}
    return {"message": {"messageId": f"m{number}", "role": "ROLE_USER", "parts": [part], **message}}


def saying(*parts: object, role: str = "ROLE_USER", **message: object) -> Json:
    return {"message": {"messageId": "m1", "role": role, "parts": list(parts), **message}}


def started(gateway: Gateway, **message: object) -> str:
    return str(result(gateway, "SendMessage", calling_tool(**message))["task"]["id"])  # type: ignore[arg-type]


# --- the card


def test_the_card_is_for_everybody_and_speaks_of_the_tools(gateway: Gateway) -> None:
    status, card = gateway.api(by(calling("GET /.well-known/agent-card.json"), None))
    url = "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com/a2a"
    assert (status, card["name"], card["url"], card["protocolVersion"]) == (200, "flights", url, "0.3.0")
    assert [(each["url"], each["protocolVersion"]) for each in card["supportedInterfaces"]] == [
        (url, "1.0"),
        (url, "0.3"),
    ]
    assert card["capabilities"] == {"streaming": True, "pushNotifications": True}
    assert [(skill["id"], skill["inputModes"]) for skill in card["skills"]] == [
        ("analyse", ["application/json", "text/plain"]),
        ("plain", ["application/json"]),
    ]
    assert '"pattern":"^raw/"' in card["skills"][0]["description"]
    assert list(card["securitySchemes"]) == ["sigv4"]


def test_the_card_says_what_the_mesh_file_says(gateway: Gateway) -> None:
    skill = {"id": "plain", "name": "Plain", "description": "d", "tags": ["flights"]}
    agent = changed(MESH.agent, name="Flights", description="All about flights", version="2.1", skills=(skill,))
    gateway.mesh = changed(gateway.mesh, agent=agent)
    card = gateway.api(calling("GET /.well-known/agent-card.json"))[1]
    assert [card[name] for name in ("name", "description", "version")] == ["Flights", "All about flights", "2.1"]
    [shown] = card["skills"]
    assert shown == skill | {"inputModes": ["application/json"], "outputModes": ["application/json"]}


def test_who_comes_with_a_token_is_told_so_by_the_card(gateway: Gateway) -> None:
    gateway.environ = gateway.environ | {"ASYA_GATEWAY_URL": "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com"}
    event = calling("GET /.well-known/agent-card.json")
    assert gateway.api(event)[1]["security"] == [{"sigv4": []}]
    card = gateway.api(holding(event, "alice"))[1]
    assert card["security"] == [{"jwt": []}]
    assert not card["url"].startswith("https://a1b2c3d4e5.")


# --- a message starts a task


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


def test_ids_and_contexts_are_kept_by_the_mesh_alone(gateway: Gateway) -> None:
    """Every call here is answered by a function of its own, that has never seen the others."""
    own = result(gateway, "SendMessage", calling_tool())["task"]
    assert own["contextId"] == own["id"]
    given = result(gateway, "SendMessage", calling_tool(number=2, contextId="trip-1"))["task"]
    again = result(gateway, "GetTask", {"id": given["id"]})
    assert (again["id"], again["contextId"]) == (given["id"], "trip-1")
    assert result(gateway, "tasks/get", {"id": given["id"]})["contextId"] == "trip-1"


def test_a_message_that_comes_twice_is_one_task(gateway: Gateway) -> None:
    assert started(gateway) == started(gateway)
    assert len(gateway.messages()) == 1
    told = error(gateway, "SendMessage", calling_tool(arguments={"flights": "raw/other.csv"}))
    assert (told["code"], told["message"][:24]) == (-32602, "this Idempotency-Key was")
    # Somebody else's messages have nothing to do with it.
    assert result(gateway, "SendMessage", calling_tool(), BOB)["task"]["id"] != started(gateway)


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


def test_the_only_tool_needs_no_name(gateway: Gateway) -> None:
    gateway.mesh = changed(gateway.mesh, tools={"analyse": ANALYSE})
    result(gateway, "SendMessage", saying({"text": "raw/f.csv"}))
    assert gateway.messages()[0]["payload"] == GOOD


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


def test_every_wrong_argument_is_named(gateway: Gateway) -> None:
    told = error(
        gateway,
        "message/send",
        saying({"data": {"tool": "analyse", "arguments": {"flights": 1, "airline": 2}}}, role="user"),
    )
    assert told["data"]["fields"].keys() == {"arguments.flights", "arguments.airline"}
    assert told["data"]["reason"] == "INVALID_PARAMS"


# --- how a task stands


@pytest.mark.parametrize(
    ("told", "data", "word"),
    [
        ("received", None, "working"),
        ("succeeded", {"result": {"n": 1}}, "completed"),
        ("failed", {"reason": "Timeout", "error": {"type": "E", "message": "too late"}}, "failed"),
        ("canceled", {"reason": "Canceled"}, "canceled"),
        ("paused", {"prompt": "Go on?", "fields": [{"name": "ok", "type": "boolean"}]}, "input-required"),
    ],
)
def test_every_state_has_its_word(gateway: Gateway, told: str, data: Json | None, word: str) -> None:
    task_id = started(gateway)
    report(gateway, task_id, told, 1, data=data or {})
    old, new = result(gateway, "tasks/get", {"id": task_id}), result(gateway, "GetTask", {"id": task_id})
    assert old["status"]["state"] == word
    assert new["status"]["state"] == "TASK_STATE_" + word.upper().replace("-", "_")
    assert new["status"]["timestamp"] == old["status"]["timestamp"]
    assert (new["metadata"]["progress_percent"] == 100) == (told == "succeeded")


def test_a_failure_says_why_and_a_pause_what_is_asked(gateway: Gateway) -> None:
    task_id = started(gateway)
    report(gateway, task_id, "paused", 1, data={"prompt": "Go on?", "fields": [{"name": "ok", "type": "boolean"}]})
    message = result(gateway, "GetTask", {"id": task_id})["status"]["message"]
    assert (message["role"], message["parts"][0]) == ("ROLE_AGENT", {"text": "Go on?"})
    assert message["parts"][1]["data"]["fields"][0]["name"] == "ok"
    failed = started(gateway, number=2)
    report(gateway, failed, "failed", 2, data={"reason": "RuntimeError", "error": {"type": "E", "message": "no disk"}})
    message = result(gateway, "tasks/get", {"id": failed})["status"]["message"]
    assert message["parts"] == [
        {"kind": "text", "text": "no disk"},
        {"kind": "data", "data": {"reason": "RuntimeError", "error": "E"}},
    ]


@pytest.mark.parametrize(
    ("data", "new", "old"),
    [
        ({"result": {"n": 1}}, {"data": {"n": 1}}, {"kind": "data", "data": {"n": 1}}),
        ({"result": "done"}, {"text": "done"}, {"kind": "text", "text": "done"}),
        ({"result": [1]}, {"data": [1]}, {"kind": "data", "data": {"value": [1]}, "metadata": {"data_part_compat": True}}),
        (
            {"result_uri": "s3://b/k"},
            {"url": "s3://b/k", "mediaType": "application/json"},
            {"kind": "file", "file": {"uri": "s3://b/k", "mimeType": "application/json"}},
        ),
    ],
)  # fmt: skip
def test_a_result_is_an_artifact(gateway: Gateway, data: Json, new: Json, old: Json) -> None:
    task_id = started(gateway)
    report(gateway, task_id, "succeeded", 1, data=data)
    [artifact] = result(gateway, "GetTask", {"id": task_id})["artifacts"]
    assert artifact == {"artifactId": "result", "name": "result", "parts": [new]}
    assert result(gateway, "tasks/get", {"id": task_id})["artifacts"][0]["parts"] == [old]


# --- what a task takes


def paused(gateway: Gateway, *fields: PauseField) -> str:
    """A task that asks for something, with the envelope that is kept of it."""
    task_id = started(gateway)
    asks = Actor(kind="pause", pause=Pause(prompt="Go on?", fields=fields))
    route = {"prev": ["inspect-dataset"], "curr": "approve", "next": ["publish-report"]}
    held = hop(message(id=task_id, route=route, payload=GOOD), actor="approve", spec=asks)
    kept = pause.kept(held, now=at(1))
    about = pause.pause_of(kept)
    assert about is not None
    bucket = gateway.environ["ASYA_BUCKET"]
    PausedEnvelopes(clients.s3(), bucket).keep(PausePlace(task_id, 0, 1), kept)
    told = json.loads(msgspec.json.encode([pause.paused(held, about)]))
    assert gateway.ingest(calling("POST /api/v1/mesh/events", FUNCTION, told))[1]["items"][0]["status"] == 204
    clients.sqs().create_queue(QueueName=names.queue_name("flights", "x-resume"))
    return task_id


OK = PauseField(name="ok", type="boolean")
SURE = PauseField(name="sure", type="boolean")


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


def test_answers_that_do_not_fit_are_told_field_by_field(gateway: Gateway) -> None:
    task_id = paused(gateway, OK)
    part = {"kind": "data", "data": {"ok": 1, "why": 2}}
    told = error(gateway, "message/send", saying(part, role="user", taskId=task_id))
    assert (told["code"], told["data"]["fields"].keys()) == (-32602, {"ok", "why"})
    told = error(gateway, "SendMessage", saying({"text": "perhaps"}, taskId=task_id))
    assert (told["code"], told["data"][1]["fieldViolations"][0]["field"]) == (-32602, "ok")
    assert result(gateway, "GetTask", {"id": task_id})["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert gateway.messages("x-resume") == []


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


# --- lists


def test_lists_hold_ones_own_tasks_and_filter_them(gateway: Gateway) -> None:
    first, second = started(gateway, contextId="trip"), started(gateway, number=2, contextId="trip")
    third = started(gateway, number=3)
    report(gateway, second, "succeeded", 1, data={"result": {"n": 1}})
    result(gateway, "SendMessage", calling_tool(), BOB)

    def ids(**params: object) -> list[str]:
        return [task["id"] for task in result(gateway, "ListTasks", params)["tasks"]]

    assert set(ids()) == {first, second, third}
    assert set(ids(contextId="trip")) == {first, second}
    assert ids(status="TASK_STATE_COMPLETED") == [second]
    assert set(ids(statusTimestampAfter="2026-11-20T09:00:00.5Z")) == {second}
    page = result(gateway, "tasks/list", {"status": "completed", "includeArtifacts": True})
    assert (page["totalSize"], page["tasks"][0]["artifacts"][0]["parts"][0]["data"]) == (1, {"n": 1})
    assert "artifacts" not in result(gateway, "tasks/list", {"status": "completed"})["tasks"][0]


def test_lists_come_page_by_page(gateway: Gateway) -> None:
    made = {started(gateway, number=number) for number in range(3)}
    page = result(gateway, "ListTasks", {"pageSize": 2})
    assert (len(page["tasks"]), page["pageSize"], page["totalSize"]) == (2, 2, -1)
    rest = result(gateway, "ListTasks", {"pageSize": 2, "pageToken": page["nextPageToken"]})
    assert {task["id"] for task in page["tasks"] + rest["tasks"]} == made
    assert rest["nextPageToken"] == ""


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
def test_lists_say_what_they_do_not_understand(gateway: Gateway, params: Json, field: str) -> None:
    told = error(gateway, "ListTasks", params)
    assert (told["code"], told["data"][0]["metadata"]["field"]) == (-32602, field)


# --- streams


def test_a_stream_holds_how_it_stands_and_what_is_new(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    [task] = result(gateway, "SendStreamingMessage", calling_tool())
    task_id = task["task"]["id"]
    assert task["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    report(gateway, task_id, "received", 1)
    assert [each["task"]["status"]["state"] for each in result(gateway, "SubscribeToTask", {"id": task_id})] == [
        "TASK_STATE_WORKING"
    ]
    monkeypatch.setattr(a2a_streams, "WAIT_SECONDS", 20.0)
    told = iter([("completed", {}), ("succeeded", {"result": {"n": 1}})])

    def tell(_self: object, _seconds: float) -> None:
        status, data = next(told)
        report(gateway, task_id, status, 2, data=data)

    monkeypatch.setattr("asya.lambdas.surroundings.RealSurroundings.pause", tell)
    first, *news = result(gateway, "tasks/resubscribe", {"id": task_id})
    assert (first["kind"], first["status"]["state"]) == ("task", "working")
    *steps, artifact, end = news
    assert {(each["kind"], each["status"]["state"], each["final"]) for each in steps} == {
        ("status-update", "working", False)
    }
    assert (artifact["kind"], artifact["artifact"]["parts"]) == (
        "artifact-update",
        [{"kind": "data", "data": {"n": 1}}],
    )
    assert (end["kind"], end["status"]["state"], end["final"]) == ("status-update", "completed", True)


def test_a_stream_of_what_has_ended_says_so(gateway: Gateway) -> None:
    task_id = started(gateway)
    report(gateway, task_id, "succeeded", 1, data={"result": 1})
    task, end = result(gateway, "tasks/resubscribe", {"id": task_id})
    assert (task["artifacts"][0]["artifactId"], end["final"]) == ("result", True)


def test_a_result_of_several_lines_is_one_event(gateway: Gateway) -> None:
    task_id = started(gateway)
    told = f'[{{"id": "{task_id}", "status": "succeeded", "at": "2026-11-20T09:00:01Z", "data": {{"result": {{\n\r\n"n": 1}}}}}}]'
    assert gateway.ingest(calling("POST /api/v1/mesh/events", FUNCTION, told))[0] == 200
    body = {"jsonrpc": "2.0", "id": 7, "method": "SubscribeToTask", "params": {"id": task_id}}
    text = gateway.api(calling("POST /a2a", ALICE, body))[1]
    events = [
        "".join(line.removeprefix("data: ") for line in event.split("\n")) for event in text.strip().split("\n\n")
    ]
    assert json.loads(events[0])["result"]["task"]["artifacts"][0]["parts"] == [{"data": {"n": 1}}]
    assert len(events) == 2


def test_a_stream_is_no_larger_than_an_answer_may_be(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = started(gateway)
    monkeypatch.setattr(a2a_streams, "WAIT_SECONDS", 20.0)
    monkeypatch.setattr(a2a_streams, "MOST", 2000)
    told = iter(range(100))

    def tell(_self: object, _seconds: float) -> None:
        report(gateway, task_id, "received", 1, position=next(told))

    monkeypatch.setattr("asya.lambdas.surroundings.RealSurroundings.pause", tell)
    assert 3 <= len(result(gateway, "SubscribeToTask", {"id": task_id})) <= 8


def test_what_a_handler_says_is_part_of_the_stream(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = started(gateway)
    report(gateway, task_id, "received", 1)
    monkeypatch.setattr(a2a_streams, "WAIT_SECONDS", 20.0)

    def say(_self: object, _seconds: float) -> None:
        fly = {"type": "fly", "id": task_id, "at": "2026-11-20T09:00:02Z", "actor": "inspect-dataset", "data": {"n": 1}}
        assert gateway.ingest(calling("POST /api/v1/mesh/events", FUNCTION, [fly]), at(2))[0] == 200
        report(gateway, task_id, "succeeded", 3)

    monkeypatch.setattr("asya.lambdas.surroundings.RealSurroundings.pause", say)
    items = result(gateway, "SubscribeToTask", {"id": task_id})
    messages = [each["statusUpdate"]["status"].get("message") for each in items if "statusUpdate" in each]
    assert [message["parts"] for message in messages if message] == [[{"data": {"n": 1}}]]


# --- push notifications


def test_configurations_are_kept_shown_and_forgotten(gateway: Gateway) -> None:
    task_id = started(gateway)
    given = {
        "url": "https://client.example/n",
        "token": "t",
        "authentication": {"scheme": "Bearer", "credentials": "s"},
    }
    made = result(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "id": "c", **given})
    shown = {**given, "id": "c", "taskId": task_id, "authentication": {"scheme": "Bearer"}}
    assert made == shown
    assert result(gateway, "GetTaskPushNotificationConfig", {"taskId": task_id, "id": "c"}) == shown
    assert result(gateway, "ListTaskPushNotificationConfigs", {"taskId": task_id}) == {"configs": [shown]}
    old = {"url": "https://client.example/o", "authentication": {"schemes": ["Basic"], "credentials": "s"}}
    own = result(gateway, "tasks/pushNotificationConfig/set", {"taskId": task_id, "pushNotificationConfig": old})
    expected = {"url": old["url"], "id": task_id, "authentication": {"schemes": ["Basic"]}}
    assert own == {"taskId": task_id, "pushNotificationConfig": expected}
    assert result(gateway, "tasks/pushNotificationConfig/get", {"id": task_id}) == own
    assert len(result(gateway, "tasks/pushNotificationConfig/list", {"id": task_id})) == 2
    assert (
        result(gateway, "tasks/pushNotificationConfig/delete", {"id": task_id, "pushNotificationConfigId": "c"}) is None
    )
    assert result(gateway, "DeleteTaskPushNotificationConfig", {"taskId": task_id, "id": "c"}) is None
    assert [
        each["id"] for each in result(gateway, "ListTaskPushNotificationConfigs", {"taskId": task_id})["configs"]
    ] == [task_id]
    assert error(gateway, "GetTaskPushNotificationConfig", {"taskId": task_id, "id": "c"})["code"] == -32602
    assert error(gateway, "DeleteTaskPushNotificationConfig", {"taskId": task_id})["code"] == -32602
    assert error(gateway, "GetTaskPushNotificationConfig", {"taskId": task_id, "id": "c" * 2000})["code"] == -32602


def item(task_id: str, key: str = "record") -> Json:
    table = names.table_name("flights", "tasks")
    found: Json = dict(
        clients.dynamodb().get_item(TableName=table, Key={"pk": {"S": task_id}, "sk": {"S": key}})["Item"]
    )
    return found


def test_a_task_is_watched_only_if_somebody_wants_to_know(gateway: Gateway) -> None:
    assert "is_watched" not in item(started(gateway))
    config = {"taskPushNotificationConfig": {"url": "https://client.example/n"}}
    task_id = result(gateway, "SendMessage", calling_tool(number=2) | {"configuration": config})["task"]["id"]
    assert item(task_id)["is_watched"] == {"BOOL": True}
    assert json.loads(item(task_id, f"a2a-push#{task_id}")["target"]["S"]) == {
        "url": "https://client.example/n",
        "version": "1.0",
    }
    # Neither reports nor later readers take it away.
    report(gateway, task_id, "received", 1)
    report(gateway, task_id, "succeeded", 2)
    assert item(task_id)["is_watched"] == {"BOOL": True}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"url": "http://client.example/n"}, "url"),
        ({"url": "ftp://client.example/n"}, "url"),
        ({"url": "https://me:secret@client.example/n"}, "url"),
        ({"url": "https://169.254.169.254/latest"}, "url"),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "url"),
        ({"url": "https://localhost/n"}, "url"),
        ({"url": "https://x.internal/"}, "url"),
        ({"url": "https://x.example/a b"}, "url"),
        ({"url": "https://x.example:99999/"}, "url"),
        ({"url": "https://[x/"}, "url"),
        ({"url": "https://x.example/" + "a" * 2048}, "url"),
        ({"url": "https://x.example/", "token": "a\r\nb: c"}, "token"),
        ({"url": "https://x.example/", "authentication": {"scheme": "Bearer", "credentials": "ü"}}, "credentials"),
        ({"url": "https://x.example/", "id": "c" * 129}, "id"),
    ],
)
def test_notifications_do_not_go_just_anywhere(gateway: Gateway, config: Json, field: str) -> None:
    told = error(gateway, "CreateTaskPushNotificationConfig", {"taskId": started(gateway), **config})
    assert (told["code"], told["data"][0]["metadata"]) == (-32602, {"field": field})


def test_a_host_that_the_mesh_file_allows_may_be_private(gateway: Gateway) -> None:
    task_id = started(gateway)
    assert result(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "http://127.0.0.1:9/n"})
    assert error(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "http://127.0.0.1:8/n"})


def test_a_task_has_no_more_than_ten_configurations(gateway: Gateway) -> None:
    task_id = started(gateway)
    for number in range(10):
        result(
            gateway,
            "CreateTaskPushNotificationConfig",
            {"taskId": task_id, "id": str(number), "url": "https://x.example/"},
        )
    result(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "id": "9", "url": "https://y.example/"})
    assert (
        error(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "https://x.example/"})["code"]
        == -32602
    )


def test_a_mesh_without_tools_sends_none(gateway: Gateway) -> None:
    task_id = started(gateway)
    gateway.mesh = changed(gateway.mesh, tools={})
    assert (
        error(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "https://x.example/"})["code"]
        == -32003
    )
    assert gateway.api(calling("GET /.well-known/agent-card.json"))[1]["capabilities"]["pushNotifications"] is False


# --- who may, and what is no call


def test_somebody_elses_task_is_not_there(gateway: Gateway) -> None:
    task_id = started(gateway)
    config = {"url": "https://x.example/"}
    for method, params in (
        ("GetTask", {"id": task_id}),
        ("tasks/get", {"id": task_id}),
        ("CancelTask", {"id": task_id}),
        ("SubscribeToTask", {"id": task_id}),
        ("SendMessage", saying({"data": {}}, taskId=task_id)),
        ("SendStreamingMessage", saying({"data": {}}, taskId=task_id)),
        ("CreateTaskPushNotificationConfig", {"taskId": task_id, **config}),
        ("tasks/pushNotificationConfig/set", {"taskId": task_id, "pushNotificationConfig": config}),
        ("GetTaskPushNotificationConfig", {"taskId": task_id, "id": task_id}),
        ("ListTaskPushNotificationConfigs", {"taskId": task_id}),
        ("DeleteTaskPushNotificationConfig", {"taskId": task_id, "id": task_id}),
    ):
        assert error(gateway, method, params, BOB)["code"] == -32001, method
    assert gateway.api(by(calling("POST /a2a", ALICE, {}), None))[0] == 403


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
        ({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": 3}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}, -32001),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": ""}}, -32001),
        ({"jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": {"id": "x" * 3000}}, -32001),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}, -32007),
        ({"jsonrpc": "2.0", "id": 1, "method": "agent/getAuthenticatedExtendedCard"}, -32007),
        ({"jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotificationConfig/get", "params": {}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "CreateTaskPushNotificationConfig", "params": {"url": "x"}}, -32602),
    ],
)
def test_what_is_no_call_is_answered_by_an_error(gateway: Gateway, body: object, code: int) -> None:
    status, content = gateway.api(calling("POST /a2a", ALICE, body))
    assert (status, content["error"]["code"]) == (200, code)
    encoded = base64.b64encode(json.dumps(body).encode() if not isinstance(body, str) else body.encode()).decode()
    event = calling("POST /a2a", ALICE, "") | {"body": encoded, "isBase64Encoded": True}
    assert gateway.api(event)[1]["error"]["code"] == code


def test_versions_that_nobody_speaks_are_refused(gateway: Gateway) -> None:
    assert error(gateway, "GetTask", {"id": "x"}, A2A_Version="2.0")["code"] == -32009
    assert error(gateway, "GetTask", {"id": "x"}, A2A_Version="1.0.1")["code"] == -32001
    assert gateway.api(calling("POST /a2a", ALICE, {"a": "x" * 300_000}))[0] == 413
