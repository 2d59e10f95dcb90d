"""The memory of a chaos run as SVG: a line for each server, and one for all Lambda workers together."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import TYPE_CHECKING

from tests.chaos.memory import MIB
from tests.chaos.timeline import LEFT, WIDTH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.chaos.processes import MemorySample

_HEIGHT, _LEGEND = 180, 20
_COLORS = ("#3f6fb5", "#c4511d", "#2b8a3e", "#8a2b7c", "#777")


def draw_memory(samples: Iterable[MemorySample], seconds: float) -> str:
    """Draw the memory of each part over time, in MiB; `seconds` is the length of the run."""
    lines: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for sample in samples:
        part = "all Lambda workers" if sample.part == "worker" else sample.part
        lines[part][sample.at] += sample.bytes / MIB
    largest = max((size for line in lines.values() for size in line.values()), default=1.0)
    scale_x, scale_y = (WIDTH - LEFT - 10) / max(seconds, 1.0), (_HEIGHT - 10) / largest
    parts = [f'<text x="0" y="14" fill="#777">up to {largest:.0f} MiB</text>']
    for number, (part, line) in enumerate(sorted(lines.items())):
        color = _COLORS[number % len(_COLORS)]
        points = " ".join(
            f"{LEFT + at * scale_x:.1f},{_HEIGHT - size * scale_y:.1f}" for at, size in sorted(line.items())
        )
        title = f"<title>{escape(part)}</title>"
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5">{title}</polyline>')
        parts.append(f'<text x="0" y="{40 + number * _LEGEND}" fill="{color}">{escape(part)}</text>')
    view = f'viewBox="0 0 {WIDTH} {_HEIGHT + 10}" font-size="12" font-family="sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {view} role="img">{"".join(parts)}</svg>'
