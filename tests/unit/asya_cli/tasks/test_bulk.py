"""`asya replay --failed` and `asya cancel --running`: many tasks at once."""

from __future__ import annotations

import json
import sys
from io import StringIO
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner

from asya.client.errors import UnreachableError
from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_cli.tasks.bulk import tracked
from tests.doubles.command_line import asya
from tests.unit.asya_cli.tasks.conftest import FakeMesh, failed

SLICE = "slice", "it is slice 3 of a set; replay its origin"
AGAIN = {"failed_only": True}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_failed_tasks_run_again_oldest_first(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [
        failed("c", 30, "KeyError: 'price'"),
        failed("b", 20, "ValueError: x"),
        failed("a", 10, "KeyError: 'x'"),
    ]
    done = run("replay", "--failed", "--error", "KeyError")
    assert (done.exit_code, done.stdout) == (0, "a → a-again\nc → c-again\n")
    assert fake_mesh.replayed == [("a", {}), ("c", {})]


def test_a_dry_run_replays_nothing(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [failed("b", 20, "KeyError: 'price'"), failed("a", 10, "KeyError: 'x'")]
    done = run("replay", "--failed", "--dry-run")
    assert (done.exit_code, done.stdout) == (0, "a  KeyError: 'x'\nb  KeyError: 'price'\n")
    assert done.stderr == "2 tasks selected; nothing was changed\n"
    assert fake_mesh.replayed == []


@pytest.mark.parametrize("options", [("--dry-run",), ()])
def test_a_replay_names_the_dead_letters_which_want_a_redrive(fake_mesh: FakeMesh, options: tuple[str, ...]) -> None:
    fake_mesh.tasks = [
        failed("b", 20, "AccessDenied: x", actor="check", reason="DeliveryExhausted"),
        failed("a", 10, "KeyError: 'x'"),
    ]
    done = run("replay", "--failed", *options)
    assert done.stderr.splitlines()[0] == "dead letters, which want a redrive instead: b"
    assert done.stderr.splitlines()[1].strip().startswith("asya dlq redrive check")


def test_failed_slices_run_again_with_their_set_once(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [
        failed("origin", 40, "SliceFailed: slice 3", actor="x-fan-in", reason="SliceFailed"),
        failed("s3", 30, "KeyError: 'x'", parent_id="origin"),
        failed("s2", 20, "KeyError: 'x'", parent_id="origin"),
        failed("alone", 10, "KeyError: 'x'"),
    ]
    fake_mesh.refusals = {"s2": SLICE, "s3": SLICE}
    for options in ((), ("--error", "KeyError")):
        fake_mesh.replayed.clear()
        done = run("replay", "--failed", *options)
        assert done.exit_code == 0, done.exception
        assert fake_mesh.replayed == [("alone", {}), ("origin", AGAIN)]
        assert done.stdout == "alone → alone-again\norigin → origin-again\n"


def test_a_set_within_a_set_runs_again_with_the_outer_one(fake_mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_mesh.tasks = [
        failed("inner", 30, "SliceFailed: slice 1", reason="SliceFailed", parent_id="outer"),
        failed("s1", 20, "KeyError: 'x'", parent_id="inner"),
    ]
    fake_mesh.refusals = {"s1": SLICE}
    answer = fake_mesh.answer

    def refusing(method: str, url: Any, body: Any) -> tuple[int, Any]:
        if method == "POST" and url.path.endswith("/inner/replay"):
            return 409, {"error": {"code": SLICE[0], "message": SLICE[1]}}
        return answer(method, url, body)

    monkeypatch.setattr(fake_mesh, "answer", refusing)
    done = run("replay", "--failed")
    assert done.exit_code == 0, done.exception
    assert fake_mesh.replayed == [("outer", AGAIN)]


def test_what_cannot_run_again_is_named_and_the_others_do(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [failed("b", 20, "E: x"), failed("a", 10, "E: x")]
    fake_mesh.refusals = {"a": ("nothing_to_replay", "no copy was kept")}
    done = run("replay", "--failed")
    assert isinstance(done.exception, CommandError)
    assert "1 of 2 tasks could not be changed" in done.exception.problem
    assert (done.stdout, done.stderr) == ("b → b-again\n", "a: no copy was kept\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay"],
        ["replay", "a", "--failed"],
        ["replay", "a", "--actor", "bill"],
        ["replay", "a", "--dry-run"],
        ["replay", "--failed", "--from", "0"],
        ["cancel"],
        ["cancel", "a", "--running"],
        ["cancel", "a", "--since", "2h"],
    ],
)
def test_one_task_or_many_but_not_both(fake_mesh: FakeMesh, arguments: list[str]) -> None:
    fake_mesh.tasks = [failed("a", 10, "E: x")]
    assert isinstance(run(*arguments).exception, CommandError)
    assert (fake_mesh.replayed, fake_mesh.canceled) == ([], [])


def test_running_tasks_are_canceled(fake_mesh: FakeMesh) -> None:
    running = {"status": "running", "error": None}
    fake_mesh.tasks = [
        failed("c", 30, "") | running,
        failed("b", 20, "", actor="check") | running,
        failed("a", 10, "E: x"),
    ]
    done = run("cancel", "--running", "--actor", "bill")
    assert (done.exit_code, done.stdout, fake_mesh.canceled) == (0, "c\n", ["c"])
    assert run("cancel", "--running", "--actor", "nobody").stderr == "no task is selected\n"


@pytest.mark.parametrize(("end", "code"), [(KeyboardInterrupt(), 130), (UnreachableError("no answer"), 1)])
def test_an_early_end_says_how_many_are_done(
    fake_mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch, end: BaseException, code: int
) -> None:
    fake_mesh.tasks = [failed("c", 30, "E: x"), failed("b", 20, "E: x"), failed("a", 10, "E: x")]
    answer = fake_mesh.answer

    def interrupted(method: str, url: Any, body: Any) -> tuple[int, Any]:
        if method == "POST" and fake_mesh.replayed:
            raise end
        return answer(method, url, body)

    monkeypatch.setattr(fake_mesh, "answer", interrupted)
    done = run("replay", "--failed")
    assert (done.exit_code, done.stdout) == (code, "a → a-again\n")
    assert done.stderr == "1 of 3 tasks done, and perhaps b; the others are as they were\n"


@pytest.mark.parametrize(
    ("end", "code", "advice"),
    [(KeyboardInterrupt, 130, ""), (EOFError, 1, "Give --yes where nobody can answer.\n")],
)
def test_a_question_without_an_answer_changes_nothing(
    fake_mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch, end: type[BaseException], code: int, advice: str
) -> None:
    fake_mesh.tasks = [failed("a", 10, "E: x")]
    monkeypatch.setattr("asya_cli.tasks.bulk.asks", lambda *, yes: not yes)
    monkeypatch.setattr("typer._click.termui.visible_prompt_func", mock.Mock(side_effect=end))
    done = asya("replay", "--failed")
    assert (done.code, fake_mesh.replayed) == (code, [])
    assert done.stderr.endswith(f"asya: nothing was changed\n{advice}")


def test_a_closed_pipe_says_how_many_are_done(fake_mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_mesh.tasks = [failed("b", 20, "E: x"), failed("a", 10, "E: x")]
    monkeypatch.setattr("asya_cli.tasks.bulk.write", mock.Mock(side_effect=BrokenPipeError))
    done = run("replay", "--failed")
    assert fake_mesh.replayed == [("a", {})]
    assert done.stderr == "1 of 2 tasks done; the others are as they were\n"


@pytest.mark.parametrize(("is_terminal", "has_bar"), [(True, False), (False, True)])
def test_lines_on_a_terminal_are_the_progress(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, has_bar: bool
) -> None:
    """A bar on the same terminal would share a line with each id."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen := StringIO())
    monkeypatch.setattr(sys, "stdout", output := StringIO())
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(output, "isatty", lambda: is_terminal)
    assert list(tracked("abc", "replay", 3)) == ["a", "b", "c"]
    assert ("replay" in screen.getvalue()) == has_bar


def test_json_has_a_line_for_each_task(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [failed("b", 20, "E: x"), failed("a", 10, "E: x")]
    fake_mesh.refusals = {"a": ("nothing_to_replay", "no copy was kept")}
    done = run("replay", "--failed", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"id": "a", "problem": "no copy was kept"},
        {"id": "b", "replay": "b-again"},
    ]
    planned = run("replay", "--failed", "--dry-run", "--json")
    assert [json.loads(line)["id"] for line in planned.stdout.splitlines()] == ["a", "b"]
