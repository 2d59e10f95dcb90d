"""A rich console that writes no control characters of its texts."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rich.console import Console as RichConsole  # noqa: TID251 - the only one
from rich.segment import Segment

from asya_cli.output.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

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
