"""The timeline of a chaos run as SVG: a row for each kind of fault, and the starts and ends below."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.chaos.event_log import Event

ROWS = {
    "gateway": "gateway stopped",
    "s3": "S3 fails",
    "dynamodb": "DynamoDB fails",
    "sqs": "SQS fails",
    "worker": "Lambda worker killed",
    "driver": "Spark driver killed",
}
WIDTH, LEFT, ROW, CHART = 1000, 150, 22, 90
_BINS = 120
_COLORS = {"faults": "#c4511d", "started": "#3f6fb5", "ended": "#2b8a3e"}


def draw_timeline(events: Iterable[Event], starts: Iterable[float], ends: Iterable[float], seconds: float) -> str:
    """Draw the timeline.

    Args:
        events: The faults with their times.
        starts: When each envelope was accepted, in seconds after the beginning.
        ends: When each result was written.
        seconds: The length of the run.
    """
    scale = (WIDTH - LEFT - 10) / max(seconds, 1.0)
    parts = []
    for row, (kind, text) in enumerate(ROWS.items()):
        y = row * ROW + 4
        parts.append(f'<text x="0" y="{y + 12}">{escape(text)}</text>')
        parts.append(f'<line x1="{LEFT}" y1="{y + 16}" x2="{WIDTH - 10}" y2="{y + 16}" stroke="#ddd"/>')
        for event in (each for each in events if each.kind == kind):
            x, width = LEFT + max(0.0, event.at) * scale, max(2.0, event.seconds * scale)
            title = escape(f"{event.at:.0f} s: {event.text}")
            box = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="14" fill="{_COLORS["faults"]}"'
            parts.append(f"<rect {box}><title>{title}</title></rect>")
    top = len(ROWS) * ROW + 10
    for chart, (name, times) in enumerate((("started", list(starts)), ("ended", list(ends)))):
        parts += _histogram(name, times, seconds, top + chart * (CHART + 10))
    height = top + 2 * (CHART + 10) + 20
    parts += _axis(seconds, scale, height - 14)
    view = f'viewBox="0 0 {WIDTH} {height}" font-size="12" font-family="sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {view} role="img">{"".join(parts)}</svg>'


def _histogram(name: str, times: Sequence[float], seconds: float, y: float) -> list[str]:
    width = max(seconds, 1.0) / _BINS
    bins = Counter(min(_BINS - 1, max(0, int(at / width))) for at in times)
    largest = max(bins.values(), default=1)
    step = (WIDTH - LEFT - 10) / _BINS
    parts = [f'<text x="0" y="{y + 14}">{name}: {len(times)}</text>']
    parts.append(f'<text x="0" y="{y + 30}" fill="#777">up to {largest / width:.1f} per s</text>')
    for number, count in sorted(bins.items()):
        height = CHART * count / largest
        box = f'x="{LEFT + number * step:.1f}" y="{y + CHART - height:.1f}" width="{step:.1f}" height="{height:.1f}"'
        parts.append(f'<rect {box} fill="{_COLORS[name]}"><title>{count} at {number * width:.0f} s</title></rect>')
    return parts


def _axis(seconds: float, scale: float, y: float) -> list[str]:
    step = 60 if seconds > 240 else 30
    marks = range(0, int(seconds) + 1, step)
    return [f'<text x="{LEFT + at * scale:.0f}" y="{y + 10}" fill="#777">{at} s</text>' for at in marks]
