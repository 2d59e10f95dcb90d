"""Draws a diagram as SVG: one file without references, readable on a light and on a dark page.

Its nodes stand in layers from left to right, with the ways between them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from html import escape
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from asya_cli.output.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from asya_cli.mesh_file.diagram import Diagram, Node, Way

NODE_HEIGHT = 44.0
_ROW_GAP = 24.0
_COLUMN_GAP = 84.0
_BEND_HEIGHT = 12.0
_SWEEPS = 8
_SETTLING_ROUNDS = 12
_PRIORITY = ("route", "slices", "sends", "policy", "hook")

Point = tuple[float, float]
Place = str | tuple[int, int]
"""The key of a node, or a bend of a long way: the number of the way, and the layer."""


@dataclass(frozen=True)
class Box:
    """The place of a node: its center and its width."""

    x: float
    y: float
    width: float


@dataclass
class Layout:
    """Where everything is.

    Attributes:
        boxes: The place of each node, by its key.
        lines: The points of each way: in pairs, each pair across a layer or from node to node.
    """

    width: float
    height: float
    boxes: dict[str, Box] = field(default_factory=dict)
    lines: list[list[Point]] = field(default_factory=list)


def lay_out(diagram: Diagram, widths: Mapping[str, float]) -> Layout:
    """Place a diagram whose nodes have these widths, in pixels, by their keys."""
    forward = _forward(diagram.ways)
    layer_of = _layers([node.key for node in diagram.nodes], forward)
    chains = [_chain(number, way, layer_of) for number, way in enumerate(diagram.ways)]
    layers: list[list[Place]] = [[] for _ in range(max(layer_of.values(), default=0) + 1)]
    for node in diagram.nodes:
        layers[layer_of[node.key]].append(node.key)
    for chain in chains:
        for bend in chain[1:-1]:
            assert isinstance(bend, tuple)
            layers[bend[1]].append(bend)
    links = [pair for chain in chains for pair in pairwise(chain)]
    layers = _ordered(layers, links)
    rows = _rows(layers, links)
    column_widths = [max((widths.get(str(place), 0.0) for place in layer), default=0.0) for layer in layers]
    centers, x = [], 0.0
    for width in column_widths:
        centers.append(x + width / 2)
        x += width + _COLUMN_GAP
    top = min((y - _height(place) / 2 for place, y in rows.items()), default=0.0)
    bottom = max((y + _height(place) / 2 for place, y in rows.items()), default=0.0)
    layout = Layout(max(0.0, x - _COLUMN_GAP), bottom - top)
    for node in diagram.nodes:
        layout.boxes[node.key] = Box(centers[layer_of[node.key]], rows[node.key] - top, widths[node.key])
    ports = _ports(chains, layout.boxes, {place: y - top for place, y in rows.items()})
    for number, (way, chain) in enumerate(zip(diagram.ways, chains, strict=True)):
        points = [ports[number, 0]]
        for bend in chain[1:-1]:
            layer = int(bend[1])
            half = column_widths[layer] / 2
            points += [(centers[layer] - half, rows[bend] - top), (centers[layer] + half, rows[bend] - top)]
        points.append(ports[number, 1])
        layout.lines.append(points if chain[0] == way.start else points[::-1])
    return layout


def _forward(ways: Sequence[Way]) -> list[tuple[str, str]]:
    """Return the ways that decide the layers: each that closes no cycle, those of routes first."""
    after: dict[str, set[str]] = defaultdict(set)

    def reaches(start: str, end: str) -> bool:
        seen, rest = {start}, [start]
        while rest:
            name = rest.pop()
            if name == end:
                return True
            new = after[name] - seen
            seen |= new
            rest += new
        return False

    chosen = []
    for way in sorted(ways, key=lambda way: _PRIORITY.index(way.kind)):
        if not reaches(way.end, way.start):
            after[way.start].add(way.end)
            chosen.append((way.start, way.end))
    return chosen


def _layers(keys: Sequence[str], ways: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the layer of each node: the length of the longest way to it."""
    before: dict[str, list[str]] = defaultdict(list)
    for start, end in ways:
        before[end].append(start)
    layers: dict[str, int] = {}
    for key in keys:
        rest = [key]
        while rest:
            name = rest[-1]
            missing = [each for each in before[name] if each not in layers]
            if missing:
                rest += missing
                continue
            layers[rest.pop()] = max((layers[each] + 1 for each in before[name]), default=0)
    return layers


def _chain(number: int, way: Way, layer_of: Mapping[str, int]) -> list[Place]:
    """Return the places of a way from left to right: its nodes, and a bend in each layer between them."""
    left, right = sorted((way.start, way.end), key=lambda key: (layer_of[key], key != way.start))
    return [left, *((number, layer) for layer in range(layer_of[left] + 1, layer_of[right])), right]


def _ordered(layers: list[list[Place]], links: Sequence[tuple[Place, Place]]) -> list[list[Place]]:
    """Return the layers with the order that crosses the fewest ways, of those that the sweeps have found."""
    left, right = _neighbors(links)
    best, fewest = layers, _crossings(layers, right)
    for sweep in range(_SWEEPS):
        layers = [[*layer] for layer in layers]
        is_forward = sweep % 2 == 0
        neighbors = left if is_forward else right
        for index in range(1, len(layers)) if is_forward else range(len(layers) - 2, -1, -1):
            beside = layers[index - 1 if is_forward else index + 1]
            position = {place: number for number, place in enumerate(beside)}
            own = {place: number for number, place in enumerate(layers[index])}
            layers[index].sort(key=lambda place: _mean(neighbors[place], position, own[place]))
        crossings = _crossings(layers, right)
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _mean(neighbors: Sequence[Place], position: Mapping[Place, float], otherwise: float) -> float:
    known = [position[each] for each in neighbors if each in position]
    return sum(known) / len(known) if known else otherwise


def _neighbors(links: Iterable[tuple[Place, Place]]) -> tuple[dict[Place, list[Place]], dict[Place, list[Place]]]:
    left: dict[Place, list[Place]] = defaultdict(list)
    right: dict[Place, list[Place]] = defaultdict(list)
    for start, end in links:
        if start != end:
            left[end].append(start)
            right[start].append(end)
    return left, right


def _crossings(layers: Sequence[Sequence[Place]], right: Mapping[Place, Sequence[Place]]) -> int:
    count = 0
    for layer, following in pairwise(layers):
        position = {place: number for number, place in enumerate(following)}
        ends = [
            (n, position[each]) for n, place in enumerate(layer) for each in right.get(place, ()) if each in position
        ]
        count += sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(ends, 2))
    return count


def _rows(layers: Sequence[Sequence[Place]], links: Sequence[tuple[Place, Place]]) -> dict[Place, float]:
    """Return the vertical center of each place: near its neighbors, and apart from those above and below."""
    left, right = _neighbors(links)
    rows: dict[Place, float] = {}
    for layer in layers:
        rows |= dict(zip(layer, _apart(layer, [0.0] * len(layer)), strict=True))
    for turn in range(_SETTLING_ROUNDS):
        neighbors = left if turn % 2 == 0 else right
        for layer in layers if turn % 2 == 0 else reversed(layers):
            wanted = [_mean(neighbors[place], rows, rows[place]) for place in layer]
            rows |= dict(zip(layer, _apart(layer, wanted), strict=True))
    return rows


def _apart(layer: Sequence[Place], wanted: Sequence[float]) -> list[float]:
    """Return the positions nearest to the wanted ones that keep the order and the gaps: an isotonic regression."""
    offsets = [0.0]
    for above, below in pairwise(layer):
        offsets.append(offsets[-1] + (_height(above) + _height(below)) / 2 + _ROW_GAP)
    blocks: list[tuple[float, int]] = []  # the mean and the number of those that touch
    for want, offset in zip(wanted, offsets, strict=False):
        mean, count = want - offset, 1
        while blocks and blocks[-1][0] >= mean:
            other, number = blocks.pop()
            mean, count = (mean * count + other * number) / (count + number), count + number
        blocks.append((mean, count))
    means = [mean for mean, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def _height(place: Place) -> float:
    return NODE_HEIGHT if isinstance(place, str) else _BEND_HEIGHT


def _ports(
    chains: Sequence[Sequence[Place]], boxes: Mapping[str, Box], rows: Mapping[Place, float]
) -> dict[tuple[int, int], Point]:
    """Return where each way leaves its left node (end 0) and reaches its right one (1), in the order of the other ends."""
    sides: dict[tuple[str, int], list[tuple[float, int, int]]] = defaultdict(list)
    for number, chain in enumerate(chains):
        # A way from a node to itself has both ends at its right side.
        is_loop = chain[0] == chain[-1]
        sides[str(chain[0]), 1].append((rows[chain[1]], number, 0))
        sides[str(chain[-1]), 1 if is_loop else -1].append((rows[chain[-2]], number, 1))
    ports: dict[tuple[int, int], Point] = {}
    for (key, side), ends in sides.items():
        box = boxes[key]
        for index, (_, number, end) in enumerate(sorted(ends)):
            step = (index + 1) / (len(ends) + 1) - 0.5
            ports[number, end] = (box.x + side * box.width / 2, box.y + step * NODE_HEIGHT)
    return ports


_MARGIN = 24.0
_CHARACTER = 7.6
"""The width of a character of a name in pixels, rather too much: the font of the reader is not known."""
_PADDING = 28.0
_LEGEND_HEIGHT = 40.0
_LOOP = 34.0
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
.node { fill: #f6f8fa; }
.tool { fill: #ddf4ff; }
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
.node { fill: #21262d; }
.tool { fill: #0c2d4a; }
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
    kind = "heavy, Spark" if node.kind == "heavy" else node.kind.replace("_", "-")
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
