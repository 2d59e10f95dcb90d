"""What a handler prints is told, and printed as it is."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import pytest

from asya_local.dev.printed_lines import LEVEL, PrintedLines

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def stream(told: list[tuple[str, str]]) -> Iterator[PrintedLines]:
    PrintedLines.actor = "check"
    yield PrintedLines(io.StringIO(), lambda level, text: told.append((level, text)))
    PrintedLines.actor = ""


def test_whole_lines_are_told_with_their_actor(stream: PrintedLines, told: list[tuple[str, str]]) -> None:
    print("checking", 1, file=stream)  # type: ignore[call-overload]
    stream.write("half")
    stream.writelines([" a line\n", "\n", "another\nopen"])
    assert told == [(LEVEL, f"check: {line}") for line in ("checking 1", "half a line", "another")]
    assert stream.getvalue() == "checking 1\nhalf a line\n\nanother\nopen"


def test_what_is_printed_between_calls_is_of_no_actor(stream: PrintedLines, told: list[tuple[str, str]]) -> None:
    PrintedLines.actor = ""
    stream.write("imported\n")
    assert (told, stream.getvalue()) == ([], "imported\n")


def test_a_process_that_a_handler_forks_tells_nothing(stream: PrintedLines) -> None:
    reading, writing = os.pipe()
    telling = PrintedLines(io.StringIO(), lambda _level, text: os.write(writing, text.encode()) and None)
    child = os.fork()
    if child == 0:
        telling.write("from the child\n")
        os._exit(0)
    os.waitpid(child, 0)
    telling.write("from the parent\n")
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "check: from the parent"
