"""The lines of `asya dev`."""

import io
import re

from rich.console import Console

from asya_cli.output.events import EventPrinter


def test_an_event_is_a_line_with_its_time_and_what_belongs_to_it() -> None:
    output = io.StringIO()
    printer = EventPrinter(Console(file=output, width=40))
    printer.tell("error", "bill: e-1 failed: KeyError: '[total]' in a line that is longer than the terminal\nTraceback")
    printer.tell("info", "not for the author")
    with printer.measured() as changed:
        changed.extend(["handlers", "jobs"])
    with printer.measured():
        pass
    lines = output.getvalue().splitlines()
    assert [re.sub(r"^[\d:]{8} ", "", line) for line in lines] == [
        "bill: e-1 failed: KeyError: '[total]' in a line that is longer than the terminal",
        "Traceback",
        "handlers and jobs loaded in 0.0 s",
    ]


def test_a_terminal_that_is_gone_stops_nothing() -> None:
    output = io.StringIO()
    printer = EventPrinter(Console(file=output))
    output.close()
    printer.tell("error", "nobody reads this")
