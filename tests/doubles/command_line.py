"""The `asya` command in this process, as a shell runs it: with its exit code, and the errors that it prints."""

from __future__ import annotations

import io
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from unittest import mock

import typer.main
from typer import rich_utils

from asya_cli.main import app

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = 80
_NOT_INHERITED = ("AWS_", "ASYA_", "NO_COLOR", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERM")
_command_of = cache(typer.main.get_command)
"""Each call of the command would build all commands again."""


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


def asya(*arguments: str, text: str = "", environment: Mapping[str, str] | None = None) -> Outcome:
    """Run the command.

    Args:
        arguments: What is typed after `asya`.
        text: Standard input.
        environment: Further variables; those of AWS, of Asya and of the terminal are not inherited.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    variables = {
        **inherited,
        "TZ": "UTC",
        "COLUMNS": str(COLUMNS),
        "TERMINAL_WIDTH": str(COLUMNS),
        **(environment or {}),
    }
    streams = {name: io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for name in ("stdout", "stderr")}
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8")
    with ExitStack() as stack:
        stack.callback(time.tzset)
        stack.enter_context(mock.patch.dict(os.environ, variables, clear=True))
        for name, stream in (*streams.items(), ("stdin", stdin)):
            stack.enter_context(mock.patch.object(sys, name, stream))
        stack.enter_context(mock.patch.object(sys, "argv", ["asya", *arguments]))
        stack.enter_context(mock.patch.object(typer.main, "get_command", _command_of))
        # typer reads these when it is imported, which may have been under other variables.
        stack.enter_context(
            mock.patch.object(rich_utils, "FORCE_TERMINAL", True if "FORCE_COLOR" in variables else None)
        )
        stack.enter_context(mock.patch.object(rich_utils, "MAX_WIDTH", COLUMNS))
        time.tzset()
        code = _run(arguments)
    written = {name: bytes(stream.buffer.getvalue()).decode() for name, stream in streams.items()}  # type: ignore[attr-defined]
    return Outcome(code, **written)


def _run(arguments: tuple[str, ...]) -> int:
    try:
        app(list(arguments), prog_name="asya")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def assert_two_lines(outcome: Outcome, code: int, problem: str, advice: str) -> None:
    """Check that a command failed with an answer for people.

    Args:
        outcome: What it left behind.
        code: The exit code.
        problem: Part of the first line.
        advice: Part of the last line.
    """
    lines = outcome.stderr.splitlines()
    assert outcome.code == code, outcome
    assert outcome.stdout == ""
    assert 1 <= len(lines) <= 2, outcome.stderr
    assert lines[0].startswith("asya: ")
    assert problem in lines[0]
    assert advice in lines[-1]
    assert "Traceback" not in outcome.stderr
    assert "0x" not in outcome.stderr  # the address of an object
