"""`asya failures`: groups of failed tasks."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from asya_cli.main import app
from asya_cli.tasks.failures import readable_quote
from tests.unit.asya_cli.tasks.conftest import FakeMesh, failed, retried

UUIDS = ("6b1ffbc0-5d1e-4c8a-9f61-2a7d1f0f9a11", "1f6a0a54-3f0e-4f8e-9d3c-0f6f1c9f7f10")


def test_tasks_of_one_cause_are_one_group(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [
        failed("d", 40, f"ValueError: order {UUIDS[0]} has 3.5 parts\nmore", actor="check"),
        failed("c", 30, "KeyError: 'price'"),
        failed("b", 20, f"ValueError: order {UUIDS[1]} has 12 parts\nelse", actor="check"),
        failed("a", 10, f"ValueError: order {UUIDS[1]} has 7 parts", actor="check"),
        failed("z", 5, "KeyError: 'price'", actor="check"),
    ]
    done = CliRunner().invoke(app, ["failures", "--json"])
    groups = [json.loads(line) for line in done.stdout.splitlines()]
    assert groups[0] == {
        "actor": "check",
        "error": "ValueError: order # has # parts",
        "count": 3,
        "first": "2026-11-20T09:10:00.000000Z",
        "last": "2026-11-20T09:40:00.000000Z",
        "example": "d",
    }
    assert [(each["actor"], each["count"]) for each in groups[1:]] == [("bill", 1), ("check", 1)]


@pytest.mark.parametrize(("columns", "is_whole"), [("40", False), ("64", True), ("80", True)])
def test_a_narrow_terminal_breaks_ids_before_it_hides_columns(
    fake_mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch, columns: str, is_whole: bool
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    fake_mesh.tasks = [failed(UUIDS[0], 40, "KeyError: 'price'", actor="check")]
    for command, words in (("failures", ["1", "check"]), ("list", ["failed", "33", "check"])):
        row = CliRunner().invoke(app, [command]).stdout.splitlines()[1]
        assert [word for word in row.split() if word in words] == words
        assert (UUIDS[0] in row) == is_whole
        assert len(row.rstrip()) <= int(columns)


def test_a_task_without_an_error_has_its_reason(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [failed("a", 10, "", actor="check", reason="Timeout") | {"error": None}]
    output = CliRunner().invoke(app, ["failures"]).stdout
    assert output.split()[-6:] == ["1", "check", "Timeout", *output.split()[-3:]]


@pytest.mark.parametrize(("options", "lines"), [((), 3), (("--json",), 2)])
def test_groups_beyond_the_limit_are_told(fake_mesh: FakeMesh, options: tuple[str, ...], lines: int) -> None:
    fake_mesh.tasks = [failed(name, 10, f"E{name}: x") for name in "abc"]
    done = CliRunner().invoke(app, ["failures", "-n", "2", *options])
    assert len(done.stdout.splitlines()) == lines
    assert done.stderr.startswith("and 1 group more; -n 3 shows them\n")


def test_no_failure_at_all(fake_mesh: FakeMesh) -> None:
    done = CliRunner().invoke(app, ["failures"])
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "no failed tasks\n")


def test_the_first_group_has_a_command_that_can_be_read_and_typed(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [failed("a", 10, "KeyError: 'SE'")]
    done = CliRunner().invoke(app, ["failures", "--state", "x"])
    assert done.stderr.startswith(
        "Show the first: asya replay --failed --actor bill --error \"KeyError: 'SE'\" --dry-run --state x;"
    )


@pytest.mark.parametrize(
    ("text", "quoted"), [("KeyError: 'SE'", "\"KeyError: 'SE'\""), ("cost $5", "'cost $5'"), ('a "b"', "'a \"b\"'")]
)
def test_an_argument_is_quoted_as_people_read_it(text: str, quoted: str) -> None:
    assert readable_quote(text) == quoted


@pytest.mark.rule("13.retry")
@pytest.mark.slow
def test_tasks_that_run_again_are_grouped_by_the_error_of_their_last_attempt(fake_mesh: FakeMesh) -> None:
    fake_mesh.tasks = [
        failed("d", 40, "KeyError: 'price'"),
        retried("c", 30, "ConnectionError: refused by host7"),
        retried("b", 20, "ConnectionError: refused by host8"),
        retried("a", 10, "Timeout: no answer"),
        failed("z", 5, "x") | {"status": "running", "error": None, "reason": None},
    ]
    done = CliRunner().invoke(app, ["failures", "--retrying", "--json"])
    groups = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["error"], each["count"], each["example"]) for each in groups] == [
        ("ConnectionError: refused by host#", 2, "c"),
        ("Timeout: no answer", 1, "a"),
    ]
    done = CliRunner().invoke(app, ["failures", "--retrying"])
    assert done.stderr.startswith(
        'Show the first: asya list --retrying --actor bill --error "ConnectionError: refused by host#" '
    )
    listed = CliRunner().invoke(app, ["list", "--retrying", "--error", "refused by host#", "--json"]).stdout
    assert [json.loads(line)["id"] for line in listed.splitlines()] == ["c", "b"]
    fake_mesh.tasks = []
    assert CliRunner().invoke(app, ["failures", "--retrying"]).stderr == "no tasks that run again after an error\n"


@pytest.mark.rule("13.retry")
def test_a_list_says_which_attempt_failed_why_and_when_the_next_is_due(
    fake_mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    fake_mesh.tasks = [retried("b", 20, "KeyError: 'price'\nmore"), retried("a", 20, "KeyError: x", next_at=None)]
    first, second = CliRunner().invoke(app, ["list"]).stdout.splitlines()[1:]
    assert first.rstrip().endswith("attempt 2 of 5 failed: KeyError: 'price'; the next is due at 2026-11-20T10:00:00Z")
    assert second.rstrip().endswith("attempt 2 of 5 failed: KeyError: x; the next is at work")
