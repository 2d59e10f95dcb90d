"""What a handler prints is told, line by line, with the name of its actor."""

from __future__ import annotations

import io
import os

import pytest

from asya_local.dev.printed_lines import LEVEL, LONGEST, PrintedLines


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def stream(told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> PrintedLines:
    stream = PrintedLines(io.StringIO(), lambda level, text: told.append((level, text)))
    monkeypatch.setattr(PrintedLines, "_streams", [stream])
    return stream


def test_whole_lines_are_told_with_their_actor(stream: PrintedLines, told: list[tuple[str, str]]) -> None:
    with PrintedLines.of("check"):
        print("checking", 1, file=stream)  # type: ignore[call-overload]
        stream.write("half")
        stream.writelines([" a line\n", "\n", "another\nopen"])
        assert told == [(LEVEL, f"check: {line}") for line in ("checking 1", "half a line", "another")]
    assert stream.getvalue() == ""


def test_a_line_without_an_end_ends_with_its_call(stream: PrintedLines, told: list[tuple[str, str]]) -> None:
    def fails() -> None:
        with PrintedLines.of("check"):
            stream.write("open")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    with PrintedLines.of("bill"):
        stream.write("of another\n")
    assert told == [(LEVEL, "check: open"), (LEVEL, "bill: of another")]


def test_a_line_without_an_end_is_told_in_pieces(stream: PrintedLines, told: list[tuple[str, str]]) -> None:
    with PrintedLines.of("check"):
        stream.write("x" * (2 * LONGEST + 1))
        assert [len(text) for _, text in told] == [LONGEST + len("check: ")] * 2


def test_a_text_that_the_stream_refuses_is_refused(told: list[tuple[str, str]]) -> None:
    """On AWS the handler fails, too."""
    strict = PrintedLines(io.TextIOWrapper(io.BytesIO(), "utf-8"), lambda level, text: told.append((level, text)))
    escaping = PrintedLines(
        io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace"), lambda level, text: told.append((level, text))
    )
    with PrintedLines.of("check"):
        with pytest.raises(UnicodeEncodeError):
            strict.write("\udcff\n")
        escaping.write("\udcff\n")
    assert told == [(LEVEL, "check: \udcff")]


def test_what_is_printed_between_calls_is_of_no_actor(stream: PrintedLines, told: list[tuple[str, str]]) -> None:
    stream.write("imported\n")
    assert (told, stream.getvalue()) == ([], "imported\n")


def test_a_process_that_a_handler_forks_tells_nothing() -> None:
    reading, writing = os.pipe()
    telling = PrintedLines(io.StringIO(), lambda _level, text: os.write(writing, text.encode()) and None)
    with PrintedLines.of("check"):
        child = os.fork()
        if child == 0:
            telling.write("from the child\n")
            os._exit(0 if telling.getvalue() == "from the child\n" else 1)
        assert os.waitpid(child, 0)[1] == 0
        telling.write("from the parent\n")
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "check: from the parent"
