"""Draws a diagram as SVG: one file without references, readable on a light and on a dark page."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from asya_cli.mesh_file.layout import NODE_HEIGHT, lay_out
from asya_cli.output.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asya_cli.mesh_file.diagram import Diagram, Node, Way
    from asya_cli.mesh_file.layout import Box, Layout, Point

_MARGIN = 24.0
_CHARACTER = 7.6
"""The width of a character of a name in pixels, rather too much: the font of the reader is not known."""
_PADDING = 28.0
_LEGEND_HEIGHT = 40.0
_LOOP = 34.0
_KINDS = {
    "tool": "tool",
    "light": "light",
    "heavy": "heavy, Spark",
    "pause": "pause",
    "wait": "wait",
    "fan_in": "fan-in",
    "end": "end",
}
_WAYS = {
    "route": "route of a tool",
    "slices": "fan-out: slices",
    "sends": "can_send_to",
    "policy": "then_route of a policy",
    "hook": "hook of x-sink",
}
# Without variables, which simple viewers do not know: they show the light colors.
_STYLE = """\
text { font-family: system-ui, 'Helvetica Neue', Helvetica, Arial, sans-serif; font-size: 13px; fill: #1b1f24; }
.small { font-size: 11px; fill: #59636e; }
.label { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
.page { fill: #ffffff; }
.node, .way { stroke: #59636e; stroke-width: 1.2; }
.head { fill: #59636e; }
.way { fill: none; }
.route, .slices { stroke-width: 2.4; }
.slices { stroke-dasharray: 2 3; }
.policy, .hook { stroke-dasharray: 7 5; }
.inner { fill: none; }
.tool { fill: #ddf4ff; }
.light { fill: #f6f8fa; }
.heavy { fill: #fff1d6; }
.pause, .wait { fill: #fbefff; }
.fan_in { fill: #dafbe1; }
.end { fill: #ffebe9; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; }
.small { fill: #9198a1; }
.label { stroke: #0d1117; }
.page { fill: #0d1117; }
.node, .way { stroke: #9198a1; }
.head { fill: #9198a1; }
.tool { fill: #0c2d4a; }
.light { fill: #21262d; }
.heavy { fill: #4d3308; }
.pause, .wait { fill: #3c1e52; }
.fan_in { fill: #0f3d1d; }
.end { fill: #561b1b; }
}
"""


def svg(diagram: Diagram, title: str) -> str:
    """Return a diagram as a document. Equal diagrams give equal bytes.

    Args:
        diagram: The diagram.
        title: What screen readers read.
    """
    widths = {node.key: max(84.0, len(_name(node)) * _CHARACTER + _PADDING) for node in diagram.nodes}
    layout = lay_out(diagram, widths)
    legend = [kind for kind in _WAYS if any(way.kind == kind for way in diagram.ways)]
    width = max(layout.width + _LOOP, _legend_width(legend)) + 2 * _MARGIN
    height = layout.height + 2 * _MARGIN + (_LEGEND_HEIGHT if legend else 0.0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}"'
        f' height="{_n(height)}" role="img">',
        f"<title>{_text(title)}</title>",
        f"<style>\n{_STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="9" markerHeight="9"'
        ' markerUnits="userSpaceOnUse" orient="auto"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>',
        f'<rect class="page" width="{_n(width)}" height="{_n(height)}"/>',
        f'<g transform="translate({_n(_MARGIN)} {_n(_MARGIN)})">',
        *_ways(diagram.ways, layout),
        *(line for node in diagram.nodes for line in _node(node, layout.boxes[node.key])),
        "</g>",
        *_legend(legend, height - _MARGIN),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _ways(ways: Sequence[Way], layout: Layout) -> Iterator[str]:
    for way, points in zip(ways, layout.lines, strict=True):
        yield f'<path class="way {way.kind}" marker-end="url(#head)" d="{_path(points)}"/>'
    for way, points in zip(ways, layout.lines, strict=True):
        if way.label:
            x, y = (points[0][0] + points[1][0]) / 2, (points[0][1] + points[1][1]) / 2
            label = _text(way.label)
            yield f'<text class="small label" x="{_n(x)}" y="{_n(y - 4)}" text-anchor="middle">{label}</text>'


def _path(points: Sequence[Point]) -> str:
    (x, y), (end_x, end_y) = points[0], points[-1]
    start = f"M{_n(x)} {_n(y)}"
    if len(points) == 2 and x == end_x:  # both ends are at one side of one node
        return f"{start} C{_n(x + _LOOP)} {_n(y)} {_n(x + _LOOP)} {_n(end_y)} {_n(end_x)} {_n(end_y)}"
    parts = [start]
    for number, ((x, y), (to_x, to_y)) in enumerate(pairwise(points)):
        middle = (x + to_x) / 2
        is_straight = number % 2 == 1  # across the layer of a bend
        parts.append(
            f"L{_n(to_x)} {_n(to_y)}"
            if is_straight
            else f"C{_n(middle)} {_n(y)} {_n(middle)} {_n(to_y)} {_n(to_x)} {_n(to_y)}"
        )
    return " ".join(parts)


def _node(node: Node, box: Box) -> Iterator[str]:
    left, top = box.x - box.width / 2, box.y - NODE_HEIGHT / 2
    corner = NODE_HEIGHT / 2 if node.kind in {"tool", "end"} else 6.0
    yield (
        f'<rect class="node {node.kind}" x="{_n(left)}" y="{_n(top)}" width="{_n(box.width)}"'
        f' height="{_n(NODE_HEIGHT)}" rx="{_n(corner)}"/>'
    )
    if node.kind == "heavy":  # a second border, as a reader may not see colors
        yield (
            f'<rect class="node inner" x="{_n(left + 3)}" y="{_n(top + 3)}" width="{_n(box.width - 6)}"'
            f' height="{_n(NODE_HEIGHT - 6)}" rx="4"/>'
        )
    yield f'<text x="{_n(box.x)}" y="{_n(box.y - 2)}" text-anchor="middle">{_text(node.name)}</text>'
    kind = _KINDS[node.kind]
    yield f'<text class="small" x="{_n(box.x)}" y="{_n(box.y + 13)}" text-anchor="middle">{kind}</text>'


def _legend(kinds: Sequence[str], y: float) -> Iterator[str]:
    x = _MARGIN
    for kind in kinds:
        yield f'<path class="way {kind}" marker-end="url(#head)" d="M{_n(x)} {_n(y - 4)} H{_n(x + 36)}"/>'
        yield f'<text class="small" x="{_n(x + 44)}" y="{_n(y)}">{_WAYS[kind]}</text>'
        x += _legend_width([kind])


def _legend_width(kinds: Sequence[str]) -> float:
    return sum(64.0 + len(_WAYS[kind]) * 6.5 for kind in kinds)


def _name(node: Node) -> str:
    return one_line(node.name)


def _text(text: str) -> str:
    return escape(one_line(text))


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
