"""A rich console that writes no control characters of its texts.

It also prints what happens in a mesh of `asya dev`.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rich.console import Console as RichConsole  # noqa: TID251 - the only one
from rich.segment import Segment
from rich.text import Text

from asya_cli import clock
from asya_cli.output.text import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import ConsoleOptions, RenderableType

_WIDTH = 160
"""Columns of a table where the output is no terminal."""

WHOLE_IDS = 64
"""Columns from which on a table breaks no id; in fewer columns it would leave no room for anything else."""


class Console(RichConsole):
    """Makes the control characters in texts visible. Styles, and the cursor movements of live displays, stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render an object and the objects in it: every text that is printed passes here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def table_console() -> Console:
    """Return a console for tables: as wide as the terminal, as `COLUMNS` says, or else 160 columns."""
    has_width = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(width=None if has_width else _WIDTH, markup=False)


PRINTED = "printed"
"""The level of a line that a handler or a job has printed. It begins with whose it is."""
_STYLES = {"call": "", "end": "green", "news": "cyan", "warning": "yellow", "error": "red"}
"""By level. Entries of other levels are for logs."""


class EventPrinter:
    """Prints one line for each event, and what belongs to it below, indented.

    Only a line of the command begins with a time: a text of a stranger forges none.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    def tell(self, level: str, text: str) -> None:
        """Print an event, unless it is of no interest to the author."""
        if level == PRINTED:
            self._print(Text(one_line(text)))
        elif level in _STYLES:
            head, *rest = text.split("\n")
            line = Text.assemble((f"{clock.now().astimezone():%H:%M:%S} ", "dim"), (one_line(head), _STYLES[level]))
            # Of a text, rich would leave some control characters out.
            self._print(line.append("".join(f"\n  {visible(each)}".rstrip(" ") for each in rest)))

    def _print(self, line: Text) -> None:
        with suppress(OSError, ValueError):  # a terminal that is gone stops nothing
            self._console.print(line, soft_wrap=True)

    @contextmanager
    def measured(self) -> Iterator[list[str]]:
        """Print what was loaded again within the block, and how long it took."""
        changed: list[str] = []
        began = clock.monotonic()
        yield changed
        if changed:
            self.tell("news", f"{' and '.join(changed)} loaded in {clock.monotonic() - began:.1f} s")
