"""What each command prints at 80 columns is what is recorded, and fits."""

from __future__ import annotations

import re

import pytest

from tests.doubles.command_line import COLUMNS
from tests.unit.asya_cli import snapshots

TABLES = ("actors", "dlq list", "data ls", "failures", "job list", "list", "local status", "report")
"""The commands whose output is a table."""


@pytest.fixture(scope="module")
def current() -> snapshots.Pages:
    """The pages of the commands as they are."""
    return snapshots.help_pages() | snapshots.output_pages()


@pytest.mark.slow
def test_the_commands_print_what_is_recorded(current: snapshots.Pages) -> None:
    recorded = snapshots.read()
    found = (snapshots.differences(name, recorded.get(name), current.get(name)) for name in {*recorded, *current})
    assert "".join(filter(None, found)) == ""


@pytest.mark.slow
def test_each_command_has_a_page_of_help_and_one_of_output(current: snapshots.Pages) -> None:
    for path, command in snapshots.commands():
        assert f"help/{path}.txt" in current
        assert hasattr(command, "commands") or f"output/{path}.txt" in current, path


@pytest.mark.slow
def test_help_and_tables_fit_into_80_columns(current: snapshots.Pages) -> None:
    pages = {name for name in current if name.startswith("help/")} | {f"output/asya {name}.txt" for name in TABLES}
    # Errors are two lines whatever the width, so that a command in them can be copied; JSON is for programs.
    own = [line for name in pages for line in current[name].splitlines() if not line.startswith(("!", "{"))]
    assert [line for line in own if len(line) > COLUMNS] == []


@pytest.mark.slow
def test_markup_and_escapes_are_not_printed(current: snapshots.Pages) -> None:
    assert [name for name, text in current.items() if re.search(r"\[/\w*\]|\x1b", text)] == []


def test_a_change_is_told_with_the_command_that_accepts_it() -> None:
    assert snapshots.differences("a", "x", "x") == ""
    assert "python -m tests.unit.asya_cli.snapshots" in snapshots.differences("a", "x", "y")
