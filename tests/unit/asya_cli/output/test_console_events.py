"""The lines of `asya dev`."""

import io
from datetime import UTC, datetime

from rich.console import Console

from asya_cli.clock import using
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
        "Traceback",
        f"{at} handlers and jobs loaded in 0.4 s",
    ]


def test_a_terminal_that_is_gone_stops_nothing() -> None:
    output = io.StringIO()
    printer = EventPrinter(Console(file=output))
    output.close()
    printer.tell("error", "nobody reads this")
