"""Places the nodes of a diagram in layers from left to right, and leads its ways between them.

The steps are those of Sugiyama: break cycles, assign layers, order each layer to cross few ways, then place. Equal diagrams have
equal layouts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from asya_cli.mesh_file.diagram import Diagram, Way

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
