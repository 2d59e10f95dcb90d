"""The server: static files for everybody, calls of the gateway for the page alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from asya.client.errors import MeshError, UnreachableError
from asya_cli.console.gateway import GatewayAnswer
from asya_cli.console.guard import PROTECTION, Guard
from asya_cli.console.page import PageFile
from asya_cli.console.redrives import RedriveAnswer, RedriveOutcome, RedriveRequest
from asya_cli.console.server import BODY_LIMIT, Console, MeshInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDRESS = "http://127.0.0.1:4711"
OWN = {"x-asya-console-secret": "s3cret", "origin": ADDRESS}
INFO = MeshInfo(namespace="shop", region="eu-north-1", is_local=False, options=" --namespace shop", version="1")
PAGE = {
    "/": PageFile("text/html; charset=utf-8", b"<!doctype html>"),
    "/assets/a.js": PageFile("text/javascript", b"1"),
}


class RecordingGateway:
    """Notes each call, and gives the answer of the test."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answer: GatewayAnswer | MeshError = GatewayAnswer(200, {"content-type": "application/json"}, iter([b"{}"]))

    def call(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> GatewayAnswer:
        self.calls.append((method, target, dict(headers), body))
        if isinstance(self.answer, MeshError):
            raise self.answer
        return self.answer


def redrive(request: RedriveRequest) -> RedriveAnswer:
    return RedriveAnswer(items=[RedriveOutcome(id=task.id, generation=int(request.force)) for task in request.tasks])


@pytest.fixture
def gateway() -> RecordingGateway:
    return RecordingGateway()


@pytest.fixture
def client(gateway: RecordingGateway) -> TestClient:
    return TestClient(Console(Guard(4711, "s3cret"), PAGE, INFO, gateway, redrive), base_url=ADDRESS)


def code_of(response: Any) -> str:
    return str(response.json()["error"]["code"])


def test_the_page_is_served_without_the_secret(client: TestClient) -> None:
    assert client.get("/").content == b"<!doctype html>"
    assert client.get("/assets/a.js").headers["content-type"] == "text/javascript"
    assert client.head("/").content == b""


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/mesh"),
        ("GET", "/console/info"),
        ("POST", "/console/redrives"),
        ("GET", "/nothing"),
        ("POST", "/"),
    ],
)
def test_nothing_else_is(client: TestClient, gateway: RecordingGateway, method: str, path: str) -> None:
    response = client.request(method, path, headers={"origin": ADDRESS})
    assert (response.status_code, code_of(response)) == (403, "wrong_secret")
    assert gateway.calls == []


def test_a_stranger_who_guesses_gets_the_same_answer(client: TestClient, gateway: RecordingGateway) -> None:
    answers = {client.get("/api/v1/mesh", headers={**OWN, "x-asya-console-secret": guess}).text for guess in ("", "a")}
    assert len(answers) == 1
    assert gateway.calls == []


def test_the_name_of_a_stranger_gets_not_even_the_page(client: TestClient) -> None:
    response = client.get("/", headers={"host": "rebound.example:4711"})
    assert (response.status_code, code_of(response)) == (421, "wrong_host")


@pytest.mark.parametrize("path", ["/", "/api/v1/mesh", "/console/info", "/nothing"])
@pytest.mark.parametrize("own", [{}, OWN], ids=["stranger", "page"])
def test_every_answer_is_protected(client: TestClient, path: str, own: dict[str, str]) -> None:
    given = client.get(path, headers=own).headers
    assert {name: given[name] for name in PROTECTION} == PROTECTION
    assert "set-cookie" not in given
    assert "access-control-allow-origin" not in given


def test_a_call_is_passed_on_with_its_query_and_body(client: TestClient, gateway: RecordingGateway) -> None:
    gateway.answer = GatewayAnswer(201, {"content-type": "application/json"}, iter([b'{"id":', b' "new"}']))
    response = client.post("/api/v1/mesh/a%2Fb/replay?x=1%202", headers=OWN, content=b'{"hop": 0}')
    assert (response.status_code, response.json()) == (201, {"id": "new"})
    [(method, target, _, body)] = gateway.calls
    assert (method, target, body) == ("POST", "/api/v1/mesh/a%2Fb/replay?x=1%202", b'{"hop": 0}')


def test_a_call_that_is_not_listed_is_not_passed_on(client: TestClient, gateway: RecordingGateway) -> None:
    for method, path in (("POST", "/tools/call"), ("PUT", "/api/v1/mesh/a"), ("GET", "/api/v1/mesh?x=" + "y" * 9000)):
        assert code_of(client.request(method, path, headers=OWN)) == "not_found"
    assert gateway.calls == []


def test_a_large_body_is_refused(client: TestClient, gateway: RecordingGateway) -> None:
    response = client.post("/api/v1/mesh/a/resume", headers=OWN, content=b"x" * (BODY_LIMIT + 1))
    assert (response.status_code, code_of(response)) == (413, "too_large")
    assert gateway.calls == []


def test_an_unreachable_gateway_is_told_with_what_to_do(client: TestClient, gateway: RecordingGateway) -> None:
    gateway.answer = UnreachableError("the gateway did not answer", "Is it running?")
    response = client.get("/api/v1/mesh", headers=OWN)
    assert response.status_code == 502
    assert response.json()["error"] == {
        "code": "gateway_unreachable",
        "message": "the gateway did not answer",
        "advice": "Is it running?",
    }


def test_the_page_learns_about_the_mesh(client: TestClient) -> None:
    assert client.get("/console/info", headers=OWN).json()["namespace"] == "shop"


def test_dead_letters_are_redriven(client: TestClient) -> None:
    body = json.dumps({"tasks": [{"id": "a", "actor": "bill"}], "force": True})
    assert client.post("/console/redrives", headers=OWN, content=body).json() == {
        "items": [{"id": "a", "generation": 1}]
    }


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "invalid_json"),
        ('{"tasks": [{"id": 1}]}', "invalid_json"),
        (json.dumps({"tasks": [{"id": "a", "actor": "b"}] * 1001}), "invalid_field"),
    ],
    ids=["empty", "no actor", "too many"],
)
def test_a_wrong_redrive_is_refused(client: TestClient, body: str, code: str) -> None:
    response = client.post("/console/redrives", headers=OWN, content=body)
    assert (response.status_code, code_of(response)) == (400, code)
