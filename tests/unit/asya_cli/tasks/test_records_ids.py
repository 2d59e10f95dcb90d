"""Every id that an envelope may have is an argument of each command, and comes back from the lines that commands print."""

from __future__ import annotations

import json
import shlex
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from typer.testing import CliRunner

from asya.client.mesh_client import MeshClient
from asya.protocol.pause import TaskPause
from asya_cli.main import app
from asya_cli.options import MeshOptions
from asya_cli.tasks.records import resume_command
from tests.fuzz.envelope_ids import SELECTED, USABLE
from tests.fuzz.sizes import examples

TIME = "2026-11-29T09:00:00.000000Z"
PAUSE = TaskPause(since=TIME, prompt="Go on?", fields=())


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of calls about a task that has failed."""
    called: list[str] = []
    client = MeshClient(None)  # type: ignore[arg-type]

    def call(
        _: MeshClient, method: str, path: str, _asked: bytes = b"", *_more: Any, **_named: Any
    ) -> tuple[int, bytes]:
        called.append(path)
        times = {"created_at": TIME, "updated_at": TIME}
        return 200, json.dumps(
            {"id": "t", "status": "failed", "progress_percent": 0, "generation": 0, **times}
        ).encode()

    monkeypatch.setattr(MeshClient, "exchange", call)
    monkeypatch.setattr(MeshOptions, "client", lambda _: client)
    return called


@pytest.mark.rule("1.id.characters")
@pytest.mark.parametrize("envelope_id", SELECTED)
@pytest.mark.parametrize("command", ["status", "cancel", "resume", "replay", "dismiss --reason no", "result"])
def test_a_command_calls_about_the_id_that_was_typed(paths: list[str], command: str, envelope_id: str) -> None:
    CliRunner().invoke(app, shlex.split(f"{command} {shlex.quote(envelope_id)}"))
    assert paths
    assert paths[0].split("?")[0].split("/")[4] == quote(envelope_id, safe="")


@pytest.mark.rule("1.id.characters", "11.resume.since")
@given(USABLE)
@examples(100, 2000)
def test_the_line_to_type_names_the_same_id_and_the_question(envelope_id: str) -> None:
    assert shlex.split(resume_command(envelope_id, PAUSE, "")) == ["asya", "resume", envelope_id, "--pause", TIME]
