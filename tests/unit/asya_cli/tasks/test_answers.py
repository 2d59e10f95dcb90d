"""`asya resume --tool …`: one answer to the same question of many tasks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from asya_cli.errors import CommandError
from asya_cli.main import app
from tests.unit.asya_cli.tasks.conftest import FakeMesh

YES = '{"approved": true}'
FIELDS = [{"name": "approved", "type": "boolean"}]


def paused(number: int, *, actor: str = "approve", fields: Any = FIELDS, **pause: Any) -> dict[str, Any]:
    """A task that waits for an answer since this minute."""
    moment = f"2026-11-20T09:{number:02d}:00.000000Z"
    question = {"prompt": f"Pay {number}?", "fields": fields, "since": moment, **pause}
    return {
        "id": f"order-{number}", "status": "paused", "progress_percent": 33, "actor": actor, "generation": 0, "tool": "nightly",
        "created_at": moment, "updated_at": moment, "pause": question,
    }  # fmt: skip


def run(*arguments: str, confirm: str = "") -> Any:
    return CliRunner().invoke(app, ["resume", *arguments], input=confirm)


@pytest.mark.rule("11.resume.since")
def test_each_selected_pause_gets_the_answer_oldest_first(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [paused(3), paused(2), paused(1) | {"tool": "other"}]
    done = run("--tool", "nightly", "--input", YES)
    assert (done.exit_code, done.stdout) == (0, "order-2\norder-3\n")
    since = "2026-11-20T09:02:00.000000Z"
    assert fake_mesh.resumed[0] == ("order-2", {"input": {"approved": True}, "since": since})
    assert [name for name, _ in fake_mesh.resumed] == ["order-2", "order-3"]


def test_a_dry_run_shows_the_questions_and_who_refuses(fake_mesh: FakeMesh) -> None:
    others = [{"name": "price", "type": "number"}]
    fake_mesh.tasks = [paused(2), paused(1, fields=others)]
    done = run("--actor", "approve", "--input", YES, "--dry-run")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "order-1  Pay 1?  (refuses the answer: approved is not asked for; the fields are price; price is missing: a number)",
        "order-2  Pay 2?",
    ]
    assert "1 task of 2 will refuse this answer" in done.stderr
    assert fake_mesh.resumed == []


def test_a_refusal_is_said_and_the_others_are_answered(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [paused(number) for number in (4, 3, 2, 1)]
    fake_mesh.refusals = {
        "order-1": ("not_paused", "the pause of 09:01 has ended; task 'order-1' is in a later pause"),
        "order-3": ("invalid_input", "is missing"),
    }
    done = run("--paused", "--input", YES, "--json")
    assert isinstance(done.exception, CommandError)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["id"] for line in lines if "problem" not in line] == ["order-2", "order-4"]
    assert [line["id"] for line in lines if "problem" in line] == ["order-1", "order-3"]
    assert "is in a later pause" in done.stderr
    assert "approved: is missing" in done.stderr
    # The next command takes what is left.
    fake_mesh.refusals.clear()
    assert run("--paused", "--input", YES).stdout == "order-1\norder-3\n"


def test_an_answer_that_fits_no_task_is_not_sent(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [paused(2), paused(1)]
    done = run("--paused", "--input", '{"approved": "perhaps"}')
    assert isinstance(done.exception, CommandError)
    assert done.exception.problem == 'no task takes this answer: approved should be true or false, not "perhaps"'
    assert fake_mesh.resumed == []


def test_one_answer_is_for_one_question(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [paused(3), paused(2), paused(1, actor="refund")]
    done = run("--tool", "nightly", "--input", YES)
    assert isinstance(done.exception, CommandError)
    assert done.exception.problem == "the selected tasks wait at 2 actors: approve (2), refund (1)"
    assert run("--tool", "nightly", "--actor", "refund", "--input", YES).stdout == "order-1\n"


def test_tasks_that_wait_for_a_time_are_left_out(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [paused(2, actor="hold", until="2026-12-01T00:00:00Z", fields=[]), paused(1)]
    done = run("--paused", "--input", YES)
    assert done.stdout == "order-1\n"
    assert done.stderr.splitlines() == ["left out, because they wait for a time: 1 task", "approve asks: Pay 1?"]


def test_it_asks_at_a_terminal(fake_mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asya_cli.tasks.bulk.asks", lambda *, yes: not yes)
    fake_mesh.tasks = [paused(2), paused(1)]
    done = run("--paused", "--input", YES, confirm="n\n")
    assert isinstance(done.exception, CommandError)
    assert ("resume 2 tasks?" in done.stderr, fake_mesh.resumed) == (True, [])
    assert done.stderr.startswith("approve asks: Pay 2? (and 1 other question)\n")
    assert run("--paused", "--input", YES, confirm="y\n").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [(), ("order-1", "--paused"), ("order-1", "--tool", "x"), ("order-1", "--dry-run")]
)
def test_it_takes_an_id_or_a_selection(fake_mesh: FakeMesh, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert isinstance(done.exception, CommandError)
    assert done.exception.problem == "resume takes an ID, or options that select paused tasks"
