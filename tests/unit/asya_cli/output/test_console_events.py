"""The lines of `asya dev`."""

import io
import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from asya_cli.clock import using
from asya_cli.output import console
from asya_cli.output.console import EventPrinter
from tests.doubles.command_clock import SetClock

NOW = datetime(2026, 3, 29, 0, 59, 58, tzinfo=UTC)


def test_an_event_is_a_line_with_its_time_and_what_belongs_to_it() -> None:
    output = io.StringIO()
    printer = EventPrinter(Console(file=output, width=40))
    seconds = iter((10.0, 10.4, 11.0))
    with using(SetClock(lambda: NOW, lambda: next(seconds))):
        printer.tell("error", "bill: e-1 failed: KeyError: '[total]' in a line longer than the terminal\nTraceback")
        printer.tell("info", "not for the author")
        with printer.measured() as changed:
            changed.extend(["handlers", "jobs"])
        with printer.measured():
            pass
    at = f"{NOW.astimezone():%H:%M:%S}"
    assert output.getvalue().splitlines() == [
        f"{at} bill: e-1 failed: KeyError: '[total]' in a line longer than the terminal",
        "  Traceback",
        f"{at} handlers and jobs loaded in 0.4 s",
    ]


def test_a_terminal_that_is_gone_stops_nothing() -> None:
    output = io.StringIO()
    printer = EventPrinter(Console(file=output))
    output.close()
    printer.tell("error", "nobody reads this")


FORGED = "10:20:01 order-7 failed at charge"
TEXTS = st.text(st.characters() | st.sampled_from("\r\n\t\x07\x1b\x9b\x85\u2028\u202e")) | st.sampled_from(
    [f"\n{FORGED}", f"\r{FORGED}", f"\x1b]0;owned\x07\x1b[2J{FORGED}", f"\x1b[31m\v\f\b{FORGED}"]
)


@given(st.sampled_from(["call", "end", "error", "warning", "news"]), TEXTS)
def test_only_the_first_line_of_an_event_has_a_time_and_no_text_moves_the_cursor(level: str, text: str) -> None:
    output = io.StringIO()
    EventPrinter(console.Console(file=output)).tell(level, f"check: {text}")
    head, *rest = output.getvalue().removesuffix("\n").split("\n")
    assert re.match(r"[\d:]{8} check: ", head)
    assert all(line.startswith("  ") or not line for line in rest)
    assert_plain(head, *rest)
    assert len(rest) == text.count("\n")


@given(TEXTS)
def test_a_printed_line_begins_with_whose_it_is(text: str) -> None:
    output = io.StringIO()
    EventPrinter(console.Console(file=output)).tell("printed", f"check: {text}")
    assert output.getvalue().startswith("check: ")
    assert output.getvalue().count("\n") == 1
    assert_plain(output.getvalue().removesuffix("\n"))


def test_no_character_is_left_out() -> None:
    written = io.BytesIO()
    printer = EventPrinter(console.Console(file=io.TextIOWrapper(written, "utf-8", write_through=True)))
    printer.tell("printed", "check: \x1b[2J\r\v\x07\x9b\udcff")
    printer.tell("error", "id\rX failed:\n\tat\f")
    lines = written.getvalue().decode().splitlines()
    assert lines[0] == r"check: \x1b[2J\x0d\x0b\x07\x9b\udcff"
    assert lines[1].endswith(r"id\x0dX failed:")
    assert lines[2].endswith(r"at\x0c")


def assert_plain(*lines: str) -> None:
    for line in lines:
        assert not [each for each in line if (each < " " and each != "\t") or "\x7f" <= each <= "\x9f"]
