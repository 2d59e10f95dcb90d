"""Prints what happens in a mesh of `asya dev`."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rich.text import Text

from asya_cli import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya_cli.output.console import Console

_STYLES = {"call": "", "job": "", "end": "green", "news": "cyan", "warning": "yellow", "error": "red"}
"""By level. Entries of other levels are for logs."""


class EventPrinter:
    """Prints one line for each event, and what belongs to it below."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def tell(self, level: str, text: str) -> None:
        """Print an event, unless it is of no interest to the author."""
        if level not in _STYLES:
            return
        head, separator, rest = text.partition("\n")
        line = Text.assemble((f"{clock.now().astimezone():%H:%M:%S} ", "dim"), (head, _STYLES[level]), separator, rest)
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
