"""The layout of a diagram: layers from left to right, no node over another, and ways that end at their nodes."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from asya_cli.mesh_file.diagram import Diagram, Node, Way
from asya_cli.mesh_file.svg import NODE_HEIGHT, lay_out

KEYS = [f"actor-{number}" for number in range(8)]
PAIRS = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(KEYS)), unique=True, max_size=16)


def diagram(*pairs: tuple[str, str]) -> Diagram:
    names = dict.fromkeys(name for pair in pairs for name in pair) or {"alone": None}
    return Diagram(tuple(Node(name, name, "light") for name in names), tuple(Way(*pair, "route") for pair in pairs))


@given(PAIRS)
def test_nodes_are_apart_and_ways_lead_from_node_to_node(pairs: list[tuple[str, str]]) -> None:
    drawn = diagram(*pairs)
    layout = lay_out(drawn, {node.key: 100.0 for node in drawn.nodes})
    for one, other in combinations(layout.boxes.values(), 2):
        assert abs(one.x - other.x) >= 100 or abs(one.y - other.y) > NODE_HEIGHT
    for way, points in zip(drawn.ways, layout.lines, strict=True):
        for name, (x, y) in ((way.start, points[0]), (way.end, points[-1])):
            box = layout.boxes[name]
            assert abs(x - box.x) == box.width / 2
            assert abs(y - box.y) < NODE_HEIGHT / 2
    assert all(box.y - NODE_HEIGHT / 2 >= -0.01 for box in layout.boxes.values())
    assert all(box.y + NODE_HEIGHT / 2 <= layout.height + 0.01 for box in layout.boxes.values())


def test_a_route_goes_to_the_right_and_a_way_back_to_the_left() -> None:
    route = [("a", "b"), ("b", "c"), ("c", "d")]
    layout = lay_out(diagram(*route, ("d", "a")), dict.fromkeys("abcd", 100.0))
    columns = [layout.boxes[name].x for name in "abcd"]
    assert columns == sorted(columns)
    assert all(start < end for start, end in pairwise(columns))
    back = layout.lines[-1]
    assert back[0][0] > back[-1][0]
    # It bends around the nodes between its ends.
    assert all(abs(y - layout.boxes["b"].y) > NODE_HEIGHT / 2 for _, y in back[1:-1])


def test_ways_cross_no_more_than_they_must() -> None:
    drawn = diagram(("a", "d"), ("b", "c"), ("a", "e"), ("x", "a"), ("x", "b"), ("d", "z"), ("c", "z"))
    boxes = lay_out(drawn, dict.fromkeys("abcdexz", 100.0)).boxes
    assert (boxes["a"].y < boxes["b"].y) == (boxes["d"].y < boxes["c"].y)
