"""Measures the duration of the demo's steps."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table
from rich.text import Text

from asya_cli import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

BAR_WIDTH = 30


class Lap(NamedTuple):
    """One measured step, in seconds. A step with `within` is part of an earlier one, which counts its time."""

    name: str
    seconds: float
    within: bool = False


@dataclass
class Stopwatch:
    """Measures consecutive steps."""

    laps: list[Lap] = field(default_factory=list)

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Measure the body, also when it fails. Parts noted by the body follow this step."""
        began, place = clock.monotonic(), len(self.laps)
        try:
            yield
        finally:
            self.laps.insert(place, Lap(name, clock.monotonic() - began))

    def note(self, name: str, seconds: float) -> None:
        """Add a part of a step that was measured elsewhere."""
        self.laps.append(Lap(name, seconds, within=True))

    @property
    def total(self) -> float:
        """Sum of all steps, in seconds."""
        return sum(lap.seconds for lap in self.laps if not lap.within)

    def table(self) -> Table:
        """Table of the steps, with a bar for the share of each."""
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(justify="right")
        table.add_column()
        for name, seconds, within in self.laps:
            share = round(BAR_WIDTH * min(1.0, seconds / self.total)) if self.total else 0
            style = "dim" if within else ""
            indent = "      " if within else "  "
            table.add_row(
                Text(indent + name, style), Text(f"{seconds:.1f} s", style), Text("▇" * share, style or "cyan")
            )
        table.add_row(Text("  total", "bold"), Text(f"{self.total:.1f} s", "bold"), Text())
        return table
