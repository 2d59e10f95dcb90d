"""`asya resume`, and the questions of a paused task in `asya status`."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from asya.client.errors import ConflictError
from asya.client.mesh_client import MeshClient
from asya.protocol.pause import PauseField, TaskPause
from asya.tasks.view import TaskView
from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_cli.options import MeshOptions
from asya_cli.tasks.report import show_task_report

CALLS: list[tuple[str, str, Any]] = []


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client whose status endpoint answers what the test says."""
    made = MeshClient(None)  # type: ignore[arg-type]
    CALLS.clear()

    def answering(status: int, answer: object) -> None:
        def call(_: MeshClient, method: str, path: str, asked: bytes, _media_type: str) -> tuple[int, bytes]:
            CALLS.append((method, path, json.loads(asked)))
            return status, json.dumps(answer).encode()

        monkeypatch.setattr(MeshClient, "exchange", call)
        monkeypatch.setattr(MeshOptions, "client", lambda _: made)

    return answering


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["resume", "order 7", *arguments])


def test_the_answers_are_sent(client: Any) -> None:
    client(202, {"id": "order 7", "status": "running"})
    done = run("--input", '{"approved": true}')
    assert (done.exit_code, done.stdout) == (0, "")
    assert CALLS == [("POST", "/api/v1/mesh/order%207/resume", {"input": {"approved": True}})]


@pytest.mark.rule("11.resume.since")
def test_the_pause_that_was_read_is_named(client: Any) -> None:
    client(202, {"id": "order 7", "status": "running"})
    assert run("--pause", "2026-01-01T00:00:00Z").exit_code == 0
    assert CALLS[0][2] == {"input": {}, "since": "2026-01-01T00:00:00Z"}


def test_a_pause_is_that_of_one_task(client: Any) -> None:
    done = CliRunner().invoke(app, ["resume", "--paused", "--pause", "2026-01-01T00:00:00Z"])
    assert isinstance(done.exception, CommandError)
    assert CALLS == []


def test_without_answers_none_are_sent(client: Any) -> None:
    client(202, {"id": "order 7", "status": "running"})
    assert run().exit_code == 0
    assert CALLS[0][2] == {"input": {}}


@pytest.mark.parametrize("answers", ["{", "[]", "true", '"x"', ""])
def test_input_that_is_not_a_json_object_is_not_sent(client: Any, answers: str) -> None:
    client(202, {})
    done = run("--input", answers)
    assert isinstance(done.exception, CommandError)
    assert CALLS == []


def test_invalid_answers_are_listed_by_field(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [{"name": "approved", "message": "is missing"}, {"name": "x", "message": "is not asked for"}]
    client(422, {"error": {"code": "invalid_input", "message": "…", "fields": fields}})
    monkeypatch.setattr(MeshClient, "task", lambda *_: None)
    done = run()
    assert isinstance(done.exception, CommandError)
    assert done.exception.problem == "order 7 stays paused: approved is missing; x is not asked for"


def test_a_task_that_is_not_paused_is_an_error(client: Any) -> None:
    client(409, {"error": {"code": "not_paused", "message": "task 'order 7' is not paused"}})
    done = run()
    assert isinstance(done.exception, ConflictError)
    assert "is not paused" in done.exception.problem


def test_no_such_task(client: Any) -> None:
    client(404, {"error": {"code": "not_found", "message": "…"}})
    assert "there is no task 'order 7'" in str(run().exception)


def test_status_shows_prompt_and_fields() -> None:
    fields = (
        PauseField(name="approved", type="boolean", prompt="Publish it?"),
        PauseField(name="title", type="string", required=False),
        PauseField(name="channel", type="string", options=("web", "mail"), default="web"),
        PauseField(name="tags", type="array", options=("a", 1)),
        PauseField(name="responsible_editor", type="string"),
    )
    task = TaskView(
        id="one",
        status="paused",
        progress_percent=48,
        pause=TaskPause(
            prompt="Publish the report?",
            fields=fields,
            since="2026-01-01T00:00:01.000000Z",
            callback="https://gateway.example/callbacks?token=x",
        ),
        waiting_until="2026-01-09T00:00:00.000000Z",
        created_at="2026-01-01T00:00:00.000000Z",
        updated_at="2026-01-01T00:00:01.000000Z",
        generation=0,
    )
    output = StringIO()
    show_task_report(Console(file=output, width=120), task, None, None)
    lines = [" ".join(line.split()) for line in output.getvalue().splitlines()]
    assert lines[0] == "one paused"
    assert "waiting for Publish the report?" in lines
    assert "link https://gateway.example/callbacks?token=x" in lines
    assert "waits until 2026-01-09T00:00:00.000000Z" in lines
    assert "approved true or false: Publish it?" in lines
    assert "title text (optional)" in lines
    assert 'channel one of "web", "mail" (default "web")' in lines
    assert 'tags a list of one of "a", 1' in lines
    assert "responsible_editor text" in lines
