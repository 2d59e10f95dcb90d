"""The test kit: every call of the gateway reaches its function, and answers as on AWS."""

import json
from pathlib import Path
from typing import Any

import pytest

from asya.api_call import ApiCall
from asya.capabilities.operations.dead_letters import LetterPage
from asya.capabilities.operations.log_lines import LogPage
from asya.capabilities.operations.mesh_numbers import ActorDetails, MeshNumbers
from asya.gateway.call_table import calls_of
from asya.testing import Mesh
from asya.testing.api import USER_ID
from asya.testing.deployment import TEST_USER

MESH = """
namespace: news
code: handlers
actors:
  write: {handler: news.write}
  crash: {handler: news.crash, max_receives: 1}
  approve: {kind: pause, pause: {prompt: Publish, callback: true, fields: [{name: approved, type: boolean}]}}
tools:
  publish: {description: Publishes a text, route: [approve, write], input_schema: {type: object}}
triggers:
  pushed: {webhook: {secret: news/hook, signature: github}, route: [write]}
"""
HANDLERS = """
def write(payload):
    return payload

def crash(payload):
    return payload
"""
NOT_FOUND = {"message": "Not Found"}
"""What API Gateway says about a path without a route."""


def mesh_of(folder: Path) -> Mesh:
    (folder / "handlers").mkdir(exist_ok=True)
    (folder / "handlers" / "news.py").write_text(HANDLERS)
    (folder / "mesh.yaml").write_text(MESH)
    return Mesh(folder / "mesh.yaml")


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return mesh_of(tmp_path_factory.mktemp("news"))


def call(mesh: Mesh, method: str, path: str, body: object = None) -> tuple[int, Any]:
    content = b"" if body is None else json.dumps(body).encode()
    response = mesh.cloud.request(method, path, content, {}, user_arn=TEST_USER, user_id=USER_ID)
    text = response.get("body") or "null"
    return response["statusCode"], json.loads(text) if text[0] in "{[n" else text


@pytest.fixture(scope="module")
def calls(mesh: Mesh) -> tuple[ApiCall, ...]:
    return calls_of(mesh.cloud.table)


def test_every_call_reaches_its_function(mesh: Mesh, calls: tuple[ApiCall, ...]) -> None:
    assert "POST /hooks/{name}" in {each.route for each in calls}
    answers = {each.route: call(mesh, each.method, each.path.replace("{", "").replace("}", "")) for each in calls}
    assert {route: answer for route, (status, answer) in answers.items() if answer == NOT_FOUND or status >= 500} == {}


def test_a_caller_without_the_rights_of_a_call_is_refused(tmp_path: Path) -> None:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "news.py").write_text(HANDLERS)
    operators = "operators: [arn:aws:iam::123456789012:role/admin]\n"
    (tmp_path / "mesh.yaml").write_text(operators + MESH)
    mesh = Mesh(tmp_path / "mesh.yaml")
    stranger = "arn:aws:iam::123456789012:user/stranger"

    def refuses(each: ApiCall, arn: str) -> bool:
        path = each.path.replace("{", "").replace("}", "")
        response = mesh.cloud.request(each.method, path, b"", {}, user_arn=arn, user_id="AIDASTRANGER")
        refusals = ("Forbidden", "only operators may make this call")
        return bool(response["statusCode"] == 403 and any(text in response["body"] for text in refusals))

    open_calls = {each.route for each in calls_of(mesh.cloud.table) if not refuses(each, "")}
    for_callers = {each.route for each in calls_of(mesh.cloud.table) if not refuses(each, stranger)}
    assert open_calls == {each.route for each in calls_of(mesh.cloud.table) if each.rights == "public"}
    assert for_callers == {each.route for each in calls_of(mesh.cloud.table) if each.rights != "operators"}


def test_a_path_without_a_call_is_unknown(mesh: Mesh) -> None:
    status, answer = call(mesh, "GET", "/api/v1/nothing")
    assert (status, answer["error"]["code"]) == (404, "not_found")


def test_the_numbers_of_the_mesh_and_of_an_actor(mesh: Mesh) -> None:
    mesh.send("write", {})
    numbers = mesh.ask("GET", "/api/v1/operations/mesh", MeshNumbers)
    assert {each.name for each in numbers.actors} >= {"write", "approve", "crash"}
    assert mesh.ask("GET", "/api/v1/operations/actors/write", ActorDetails).numbers.waiting == 0


def test_the_lines_of_an_actor_and_of_a_task(tmp_path: Path) -> None:
    mesh = mesh_of(tmp_path)
    mesh.fail("write", ValueError("no paper"))
    run = mesh.send("write", {})
    of_actor = mesh.ask("GET", "/api/v1/operations/actors/write/logs", LogPage)
    assert [line.actor for line in of_actor.items if "no paper" in line.line] != []
    of_task = mesh.ask("GET", f"/api/v1/operations/logs/{run.id}", LogPage)
    assert any("no paper" in line.line for line in of_task.items)
    assert all(run.id in line.line for line in of_task.items)


def test_dead_letters_are_shown_and_stay(tmp_path: Path) -> None:
    mesh = mesh_of(tmp_path)
    mesh.kill_during("crash")
    run = mesh.send("crash")
    mesh.travel(minutes=30)
    page = mesh.ask("GET", "/api/v1/operations/dead-letters", LetterPage)
    assert [(letter.actor, letter.id) for letter in page.items] == [("crash", run.id)]
    assert len(mesh.dead_letters) == 1


def test_the_changes_of_a_watched_task_are_pushed(tmp_path: Path) -> None:
    mesh = mesh_of(tmp_path)
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"tool": "publish", "arguments": {}}}]}
    config = {"url": "https://client.example/notes?n=1", "token": "t-1"}
    configuration = {"blocking": False, "taskPushNotificationConfig": config, "returnImmediately": True}
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": message, "configuration": configuration},
    }
    status, answer = call(mesh, "POST", "/a2a", body)
    assert status == 200, answer
    assert "result" in answer, answer
    mesh.travel(minutes=1)
    run = mesh.runs()[0]
    mesh.answer(run, approved=True)
    assert run.status == "succeeded"
    states = [each.content["task"]["status"]["state"] for each in mesh.notifications]
    assert states[-1] == "TASK_STATE_COMPLETED"
    assert "TASK_STATE_INPUT_REQUIRED" in states
    assert {each.url for each in mesh.notifications} == {config["url"]}
    assert {each.headers["X-A2A-Notification-Token"] for each in mesh.notifications} == {"t-1"}
