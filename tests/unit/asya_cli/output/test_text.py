"""What the command prints: text of strangers does not control the terminal."""

import json
import re
import sys
import unicodedata
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

import msgspec
import pytest
import typer
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from asya.client import mesh_client
from asya.client.mesh_client import MeshClient, StoredObject
from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_cli.options import MeshOptions
from asya_cli.output.console import Console
from asya_cli.output.text import one_line, visible, write_json
from asya_cli.progress.actors import Progress
from asya_cli.progress.display import Display
from asya_cli.tasks import result

HOSTILE = "t\x1b]0;owned\x07\x1b[2J\x9b1A\r\u202ekcab\x7f\u200b\xad\u2028\U000e0041"
MEANT = frozenset("\n\t")


def controls(text: str) -> set[str]:
    """The characters that a terminal obeys."""
    return {each for each in text if not each.isprintable() and each not in MEANT}


def task(task_id: str) -> dict[str, Any]:
    error = {"type": f"E{HOSTILE}", "message": f"first\n\tsecond{HOSTILE}"}
    return {
        "id": task_id,
        "status": "failed",
        "progress_percent": 33,
        "created_at": "2026-11-20T09:00:00.000000Z",
        "updated_at": f"2026{HOSTILE}",
        "generation": 0,
        "actor": f"[/x]{HOSTILE}",
        "owner": HOSTILE,
        "reason": HOSTILE,
        "route": {"prev": [HOSTILE], "curr": HOSTILE, "next": [HOSTILE]},
        "error": error,
        "pause": {"prompt": HOSTILE, "fields": [{"name": HOSTILE, "type": "string"}], "since": HOSTILE},
    }


HOP = {"generation": 0, "position": 0, "attempt": 1, "actor": HOSTILE, "received_at": HOSTILE}


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, object]]:
    """The answers of a gateway."""
    answers: list[tuple[int, object]] = []

    def call(_mesh: MeshClient, _method: str, _path: str, _body: bytes, _media_type: str) -> tuple[int, bytes]:
        code, content = answers.pop(0)
        return code, msgspec.json.encode(content)

    monkeypatch.setattr(mesh_client.MeshClient, "exchange", call)
    monkeypatch.setattr(MeshOptions, "client", lambda _: MeshClient(connection=None))  # type: ignore[arg-type]
    monkeypatch.setattr(MeshClient, "stored", lambda *_: None)
    return answers


def run(*args: str) -> str:
    return CliRunner().invoke(app, list(args), env={"COLUMNS": "200"}).output


def test_a_list_shows_the_control_characters_of_its_tasks(gateway: list[tuple[int, object]]) -> None:
    gateway.append((200, {"items": [task(HOSTILE)]}))
    output = run("list")
    assert not controls(output)
    assert r"t\x1b]0;owned\x07\x1b[2J\x9b1A\x0d\u202ekcab\x7f\u200b\xad\u2028\U000e0041" in output


def test_a_newline_in_an_id_is_no_new_line(gateway: list[tuple[int, object]]) -> None:
    gateway.append((200, {"items": [task("one\ntwo")]}))
    assert r"one\ntwo" in run("list")


def test_a_report_of_a_task_has_no_control_characters(gateway: list[tuple[int, object]]) -> None:
    gateway.extend([(200, task(HOSTILE)), (200, {"items": [HOP]})])
    output = run("status", "t", "--timeline")
    assert not controls(output)
    assert "first\n" in output
    assert output.count(r"\x1b]0;owned") > 8


def test_a_second_line_of_a_message_is_no_fact_of_the_task(gateway: list[tuple[int, object]]) -> None:
    gateway.append((200, task("t") | {"error": {"type": "E", "message": "no\n  owner       you"}}))
    lines = run("status", "t").splitlines()
    assert sum(line.startswith("  owner ") for line in lines) == 1


@pytest.mark.parametrize("command", [("list", "--json"), ("status", "t", "--json")])
def test_json_has_escapes_and_the_same_content(gateway: list[tuple[int, object]], command: tuple[str, ...]) -> None:
    gateway.append((200, {"items": [task(HOSTILE)]} if command[0] == "list" else task(HOSTILE)))
    output = run(*command)
    assert not controls(output)
    assert msgspec.json.decode(output)["id"] == HOSTILE


def test_errors_have_no_control_characters(
    gateway: list[tuple[int, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.append((409, {"error": {"code": "x", "message": HOSTILE}}))
    with pytest.raises(SystemExit):
        app(["cancel", "t"])
    assert not controls(capsys.readouterr().err)
    assert str(CommandError(HOSTILE)) == HOSTILE


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_result_is_exact_except_on_a_terminal(
    gateway: list[tuple[int, object]], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    body = b'{"a": "' + HOSTILE.encode() + b'\xff"}'
    gateway.append((200, task("t")))
    monkeypatch.setattr(MeshClient, "stored", lambda *_: StoredObject("s3://b/k", body))
    written = TextIOWrapper(BytesIO(), encoding="utf-8")
    monkeypatch.setattr(written, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stdout", written)
    with pytest.raises(typer.Exit):  # with the code of a failed task
        result.result("t")
    shown = written.buffer.getvalue()  # type: ignore[attr-defined]
    if is_terminal:
        assert not controls(shown.decode())
        assert shown.endswith(b"}\n")
    else:
        assert shown == body


def test_a_console_shows_texts_and_keeps_its_own_controls() -> None:
    output = StringIO()
    console = Console(file=output, width=100, force_terminal=True, color_system="standard", markup=False)
    table = Table(box=None)
    table.add_row(HOSTILE, Text(HOSTILE, "red"))
    console.print(table)
    with Display(console, Progress.of(("[/x]\x1b[2J",))):
        pass
    assert "\x1b]0" not in output.getvalue()
    assert "\x1b[2J" not in output.getvalue()
    assert "\x1b[31m" in output.getvalue()
    assert "[/x]" in output.getvalue()


def test_newlines_and_tabs_of_texts_with_several_lines_stay() -> None:
    assert visible("a\n\tb\x85é🛫") == "a\n\tb\\x85é🛫"
    assert one_line("a\n\tb") == "a\\n\\tb"


HIDDEN = [
    character
    for character in map(chr, range(sys.maxunicode + 1))
    if character not in MEANT and unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
]


def test_every_character_that_a_reader_cannot_see_is_an_escape() -> None:
    assert {each for each in HIDDEN if visible(each) == each} == set()
    assert all(re.fullmatch(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})", visible(each)) for each in HIDDEN)


def test_every_character_that_a_reader_sees_stays() -> None:
    letters = "".join(map(chr, range(sys.maxunicode + 1)))
    changed = {each for each in letters if visible(each) != each and unicodedata.category(each) != "Cn"}
    assert changed == set(HIDDEN)


def test_json_with_hidden_characters_has_escapes_and_the_same_content(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    text = "".join(each for each in HIDDEN if unicodedata.category(each) != "Cs")
    write_json(json.dumps(text, ensure_ascii=False).encode())
    sys.stdout.flush()
    shown = capfdbinary.readouterr().out
    assert shown.isascii()
    assert json.loads(shown) == text
