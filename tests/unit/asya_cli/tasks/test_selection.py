"""Which tasks a command is about."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO

import msgspec
import pytest
from typer.testing import CliRunner

from asya.client.errors import MeshError
from asya.tasks.view import TaskView
from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_cli.output.console import Console
from asya_cli.tasks import selection
from asya_cli.tasks.listing import table_of
from asya_cli.tasks.selection import Selection, age
from tests.unit.asya_cli.tasks.conftest import FakeMesh, failed

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def listed(*options: str) -> list[str]:
    done = CliRunner().invoke(app, ["list", "--json", *options])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return [json.loads(line)["id"] for line in done.stdout.splitlines()]


@pytest.fixture
def tasks(fake_mesh: FakeMesh) -> FakeMesh:
    fake_mesh.tasks = [
        failed("e", 50, "KeyError: 'price'", actor="sales", parent_id="d", tool="night"),
        failed("d", 40, "KindError: slice 3 of 7", actor="x-fan-in", reason="SliceFailed"),
        failed("c", 30, "KeyError: 'total'", owner="AIDAALICE"),
        failed("b", 20, "ValueError: no number") | {"status": "running"},
        failed("a", 10, "KeyError: 'price'", actor="sales"),
    ]
    return fake_mesh


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], ["e", "d", "c", "b", "a"]),
        (["--status", "failed"], ["e", "d", "c", "a"]),
        (["--actor", "sales"], ["e", "a"]),
        (["--error", "KeyError"], ["e", "c", "a"]),
        (["--error", "'price'", "--roots"], ["a"]),
        (["--error", "SliceFailed"], ["d"]),
        (["--error", "KindError: slice # of #"], ["d"]),
        (["--since", "2026-11-20T09:25:00Z"], ["e", "d", "c"]),
        (["--error", "KeyError", "-n", "2"], ["e", "c"]),
        (["--tool", "night"], ["e"]),
        (["--owner", "AIDAALICE"], ["c"]),
        (["--actor", "nobody"], []),
    ],
)
def test_the_selected_tasks_are_listed(tasks: FakeMesh, options: list[str], ids: list[str]) -> None:
    assert listed(*options) == ids


def test_a_selection_that_is_too_large_says_how_to_narrow_it(tasks: FakeMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "TASK_LIMIT", 3)
    with pytest.raises(CommandError, match="more than 3 tasks are selected"):
        listed()
    assert listed("-n", "3") == ["e", "d", "c"]
    assert listed("--actor", "sales") == ["e", "a"]


@pytest.mark.parametrize("command", [["list", "-n", "100"], ["failures"]])
def test_a_list_of_many_pages_says_how_to_narrow_it(
    tasks: FakeMesh, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setattr(selection, "CALL_LIMIT", 2)
    tasks.page = 1
    done = CliRunner().invoke(app, command)
    assert isinstance(done.exception, CommandError)
    assert "2 pages were read, and there are more" in done.exception.problem
    assert listed("-n", "2") == ["e", "d"]


@pytest.mark.parametrize(
    "command",
    [
        ["list", "--actor", "sales"],
        ["replay", "--failed", "--tool", "night"],
        ["cancel", "--running", "--roots"],
        ["failures"],
    ],
)
def test_a_gateway_that_does_not_know_a_filter_ends_the_command(tasks: FakeMesh, command: list[str]) -> None:
    """Its list has other tasks, too, and none of them may be replayed or canceled."""
    tasks.is_earlier = True
    tasks.tasks[3]["parent_id"] = "d"
    done = CliRunner().invoke(app, command)
    assert isinstance(done.exception, MeshError)
    assert done.exception.advice == "Deploy the mesh with the version of this command."
    assert (tasks.replayed, tasks.canceled) == ([], [])


@pytest.mark.parametrize(
    ("since", "earliest"),
    [
        ("90s", "2026-11-20T11:58:30.000000Z"),
        ("30m", "2026-11-20T11:30:00.000000Z"),
        ("2h", "2026-11-20T10:00:00.000000Z"),
        ("7d", "2026-11-13T12:00:00.000000Z"),
        ("2026-11-24T22:00:00+01:00", "2026-11-24T21:00:00.000000Z"),
        (None, None),
    ],
)
def test_since_is_an_age_or_a_time(since: str | None, earliest: str | None) -> None:
    assert Selection.of(since=since, now=NOW).wanted.since == earliest


@pytest.mark.parametrize("since", ["yesterday", "2", "-2h", "1.5h", "999999999d", "2026-11-24"])
def test_another_since_is_refused(since: str) -> None:
    with pytest.raises(CommandError, match="neither an age nor a time"):
        Selection.of(since=since, now=NOW)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        ("2026-11-20T11:59:18Z", "42s"),
        ("2026-11-20T11:30:00Z", "30m"),
        ("2026-11-20T09:30:00Z", "2h"),
        ("2026-11-01T00:00:00Z", "19d"),
        ("2026-11-20T12:00:05Z", "0s"),
        ("no time", "?"),
    ],
)
def test_an_age_has_one_unit(moment: str, text: str) -> None:
    assert age(moment, NOW) == text


@pytest.mark.parametrize("actor", ["sales-by-country", "an-actor-with-a-very-long-name-indeed"])
def test_a_list_fits_a_terminal_of_80_columns(actor: str) -> None:
    name, error = "6b1ffbc0-5d1e-4c8a-9f61-2a7d1f0f9a11", "KeyError: 'price'" * 9
    views = [msgspec.convert(failed(name, 1, error, actor=actor), TaskView)]
    output = StringIO()
    Console(file=output, width=80).print(table_of(views, NOW, 80))
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[:4] == [name, "failed", "33", "2h"]
    start = lines[0].index("actor")
    assert "".join(line[start:].split()[0] for line in lines[1:]) == actor
    assert lines[1].rstrip().endswith("…") == (actor == "sales-by-country")


def test_a_list_shows_until_when_tasks_wait() -> None:
    running = failed("b", 1, "", actor="embargo") | {"status": "running", "error": None}
    waiting = running | {"id": "a", "waiting_until": "2026-11-23T12:00:00.000000Z"}
    for tasks, is_shown in (([running, waiting], True), ([running], False)):
        output = StringIO()
        views = [msgspec.convert(task, TaskView) for task in tasks]
        Console(file=output, width=100).print(table_of(views, NOW, 100))
        assert ("waits until" in output.getvalue()) == is_shown
        assert ("2026-11-23T12:00:00Z\n" in output.getvalue()) == is_shown
