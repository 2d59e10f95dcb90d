"""Where the time went."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

BAR_WIDTH = 30


@dataclass
class Stopwatch:
    """Measures steps one after the other, in seconds."""

    laps: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Measure what happens inside, also when it fails."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.laps.append((name, time.monotonic() - began))

    @property
    def total(self) -> float:
        """All steps together."""
        return sum(seconds for _, seconds in self.laps)

    def table(self) -> Table:
        """The steps with their share of the whole."""
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(justify="right")
        table.add_column(style="cyan")
        for name, seconds in self.laps:
            share = round(BAR_WIDTH * seconds / self.total) if self.total else 0
            table.add_row(f"  {name}", f"{seconds:.1f} s", "▇" * share)
        table.add_row(Text("  in all", "bold"), Text(f"{self.total:.1f} s", "bold"), "")
        return table
