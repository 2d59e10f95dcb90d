"""A diagram as SVG: one file without references, with escaped text."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from asya_cli.mesh_file.diagram import Diagram, Node, Way
from asya_cli.mesh_file.svg import svg
from tests.doubles.command_line import asya

SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_is_whole_and_equal_each_time(shop: Path) -> None:
    """The picture of another mesh is recorded as a golden file: `tests/unit/asya_cli/recorded/output/asya graph.txt`."""
    file = shop.parent / "mesh.svg"
    outcome = asya("graph", "--mesh", str(shop), "-o", str(file))
    assert (outcome.code, outcome.stdout) == (0, "")
    text = file.read_text()
    assert asya("graph", "--mesh", str(shop), "--format", "svg").stdout == text
    root = ET.fromstring(text)
    texts = [each.text for each in root.iter(f"{SVG}text")]
    for name in ("check", "bill", "heavy, Spark", "ask", "pause", "x-fan-in", "fan-in", "repair", "route of a tool"):
        assert name in texts
    assert "prefers-color-scheme: dark" in text
    for reference in ("href", "<script", "@import", "<image", "url(http"):
        assert reference not in text


def test_the_text_of_names_is_escaped() -> None:
    names = ['<script>"&', "bell\x07"]
    nodes = tuple(Node(str(number), name, "light") for number, name in enumerate(names))
    text = svg(Diagram(nodes, (Way("0", "1", "policy", "a<b"),)), "a mesh & more")
    root = ET.fromstring(text)
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert {names[0], "bell\\x07", "a<b"} <= set(texts)
    assert root.findtext(f"{SVG}title") == "a mesh & more"


def test_a_mesh_without_ways_has_a_picture_too() -> None:
    text = svg(Diagram((Node("a", "a", "end"),), ()), "one")
    assert text.count("<rect") == 2
    assert "route of a tool" not in text
