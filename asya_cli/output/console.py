"""A rich console that writes no control characters of its texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console as RichConsole  # noqa: TID251 - the only one
from rich.segment import Segment

from asya_cli.output.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType


class Console(RichConsole):
    """Makes the control characters in texts visible. Styles, and the cursor movements of live displays, stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render an object and the objects in it: every text that is printed passes here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
