"""`asya call`, and the waits of `asya call` and `asya send`, with a fake gateway."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from asya.client.errors import MeshError
from asya.client.mesh_client import MeshClient
from asya_cli.errors import CommandError, ExitCode, exit_code_of
from asya_cli.main import app
from asya_cli.options import MeshOptions

SINCE = "2026-11-20T09:00:00.000000Z"
TASK = {"id": "t1", "status": "running", "progress_percent": 33, "generation": 0, "actor": "bill",
        "created_at": SINCE, "updated_at": SINCE}  # fmt: skip
PAUSE = {"prompt": "Publish?", "fields": [{"name": "approved", "type": "boolean"}], "since": SINCE}


@dataclass
class FakeGateway:
    """Answers each call from a list, and records the calls and the sent envelopes."""

    answers: list[tuple[int, Any]] = field(default_factory=list)
    calls: list[tuple[str, str, Any, str | None]] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    def __call__(
        self, _mesh: MeshClient, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        self.calls.append((method, path, json.loads(body or b"null"), headers.get("prefer")))
        status, content = self.answers.pop(0)
        return status, json.dumps(content).encode()


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> FakeGateway:
    fake = FakeGateway()
    monkeypatch.setattr(MeshClient, "exchange", lambda *args: fake(*args))  # noqa: PLW0108 - bound like a method
    monkeypatch.setattr(MeshClient, "send", lambda _, envelope: fake.sent.append(envelope.id))
    monkeypatch.setattr(MeshClient, "stored", lambda *_: None)
    connection: Any = SimpleNamespace(namespace="shop")
    monkeypatch.setattr(MeshOptions, "client", lambda _: MeshClient(connection))
    return fake


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run() -> Run:
    """Runs the command; returns its exit code and standard output. An error is raised."""

    def run(*arguments: str, text: str = "") -> tuple[int, str]:
        done = CliRunner().invoke(app, list(arguments), input=text)
        if isinstance(done.exception, MeshError):
            raise done.exception
        return done.exit_code, done.stdout

    return run


def test_a_call_starts_the_tool_and_does_not_wait(gateway: FakeGateway, run: Run) -> None:
    gateway.answers = [(202, {"id": "t1", "status": "pending"})]
    assert run("call", "bill-order", "total=3", "who=ann", "zip=01234") == (0, "t1\n")
    arguments = {"total": 3, "who": "ann", "zip": "01234"}
    assert gateway.calls == [("POST", "/tools/call", {"name": "bill-order", "arguments": arguments}, "wait=0")]


@pytest.mark.parametrize("arguments", [("{}",), ("-",), ()])
def test_arguments_may_be_json_or_standard_input_or_missing(
    gateway: FakeGateway, run: Run, arguments: tuple[str, ...]
) -> None:
    gateway.answers = [(202, {"id": "t1", "status": "pending"})]
    assert run("call", "bill-order", *arguments, text="{}") == (0, "t1\n")
    assert gateway.calls[0][2]["arguments"] == {}


def test_a_wrong_argument_says_which_forms_there_are(gateway: FakeGateway, run: Run) -> None:
    with pytest.raises(CommandError, match="an argument: 'total' is neither KEY=VALUE nor a payload"):
        run("call", "bill-order", "total")
    assert gateway.calls == []


def test_an_unknown_tool_is_not_found(gateway: FakeGateway, run: Run) -> None:
    gateway.answers = [(404, {"error": {"code": "not_found", "message": "no tool"}})]
    with pytest.raises(MeshError, match="has no tool 'ship'") as caught:
        run("call", "ship")
    assert exit_code_of(caught.value) is ExitCode.NOT_FOUND


def test_a_call_that_waits_prints_the_result_alone(gateway: FakeGateway, run: Run) -> None:
    ended = TASK | {"status": "succeeded", "result": {"gross": 6}}
    gateway.answers = [(202, {"id": "t1", "status": "pending"}), (200, TASK), (200, ended)]
    assert run("call", "bill-order", "--wait") == (0, '{\n  "gross": 6\n}\n')


@pytest.mark.parametrize(
    ("task", "code", "words"),
    [
        (TASK | {"status": "failed", "reason": "RuntimeError", "error": {"type": "KeyError", "message": "'x'"}},
         ExitCode.TASK_FAILED, ["t1 failed (RuntimeError) at bill: KeyError: 'x'", "`asya replay t1 --state elsewhere`"]),
        (TASK | {"status": "canceled"}, ExitCode.TASK_FAILED, ["t1 was canceled"]),
        (TASK | {"status": "paused", "pause": PAUSE}, ExitCode.PAUSED,
         ["t1 waits for an answer: Publish?", """asya resume t1 --input '{"approved":true}' --pause"""]),
    ],
)  # fmt: skip
def test_a_wait_tells_how_a_task_ended_and_what_to_type(
    gateway: FakeGateway, run: Run, task: dict[str, Any], code: ExitCode, words: list[str]
) -> None:
    gateway.answers = [(202, {"id": "t1", "status": "pending"}), (200, task)]
    with pytest.raises(CommandError) as caught:
        run("call", "bill-order", "--wait", "--state", "elsewhere")
    assert caught.value.code is code
    for text in words:
        assert text in f"{caught.value.problem}\n{caught.value.advice}"


def send(run: Run, *options: str) -> tuple[int, str]:
    return run("send", "-", "--actor", "bill", *options, text='{"n": 1}')


def test_send_waits_too(gateway: FakeGateway, run: Run) -> None:
    gateway.answers = [(404, None), (200, TASK | {"status": "succeeded", "result": [1]})]
    assert send(run, "--id", "t1", "--wait") == (0, "[\n  1\n]\n")
    assert gateway.sent == ["t1"]


def test_a_new_id_is_asked_for_nowhere(gateway: FakeGateway, run: Run) -> None:
    code, _ = send(run)
    assert (code, gateway.calls, len(gateway.sent)) == (0, [], 1)


def test_an_id_that_names_a_task_is_warned_of(gateway: FakeGateway) -> None:
    gateway.answers = [(200, TASK | {"status": "succeeded"})]
    done = CliRunner().invoke(app, ["send", "-", "--actor", "bill", "--id", "t1"], input="{}")
    assert (done.exit_code, done.stdout, gateway.sent) == (0, "t1\n", ["t1"])
    assert "warning: 't1' names a task that has ended (succeeded)" in done.stderr


def test_the_end_of_an_ended_task_is_not_waited_for(gateway: FakeGateway, run: Run) -> None:
    gateway.answers = [(200, TASK | {"status": "failed"})]
    with pytest.raises(CommandError, match=r"'t1' names a task that has ended \(failed\)"):
        send(run, "--id", "t1", "--wait")
    assert gateway.sent == []


def test_an_id_is_sent_though_its_task_cannot_be_read(gateway: FakeGateway, run: Run) -> None:
    gateway.answers = [(403, {"message": "Forbidden"})]
    assert send(run, "--id", "t1") == (0, "t1\n")
    assert gateway.sent == ["t1"]


def test_an_envelope_without_a_record_is_not_waited_for(gateway: FakeGateway, run: Run) -> None:
    stealth = {"id": "t1", "route": {"prev": [], "curr": "bill", "next": []}, "payload": 1,
               "headers": {"x-asya-mesh-status": "off"}}  # fmt: skip
    with pytest.raises(CommandError, match="asks for none"):
        run("send", "-", "--new-id", "--wait", text=json.dumps(stealth))
    assert gateway.sent == []


def test_an_argument_that_is_no_utf_8_is_refused(gateway: FakeGateway, run: Run) -> None:
    with pytest.raises(CommandError, match="an argument is not UTF-8"):
        run("call", "bill-order", "a=\udcff")


@pytest.mark.parametrize(
    ("envelope_id", "problem"),
    [
        ("", "--id is empty"),
        ("é" * 200, "--id has 400 bytes; 256 at most"),
        ("w/x", "--id has '/'; an id has none of"),
        ("-x", "--id begins with '-'; an id has none of"),
        ("7b1ffbc0-5d1e-8c8a-9f61-2a7d1f0f9a11", "which only the mesh gives out"),
    ],
)
def test_an_id_that_the_mesh_refuses_is_not_sent(
    gateway: FakeGateway, run: Run, envelope_id: str, problem: str
) -> None:
    with pytest.raises(CommandError, match=problem):
        send(run, "--id", envelope_id)
    assert gateway.sent == []
