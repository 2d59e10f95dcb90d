"""What a diagram of a mesh shows."""

from __future__ import annotations

from pathlib import Path

from asya_cli.mesh_file.diagram import Way, diagram_of
from asya_infra.mesh_file import load_mesh


def test_nodes_have_kinds_and_ways_have_reasons(shop: Path) -> None:
    shop.write_text(shop.read_text().replace("tools:", "sink: {hooks: [mend]}\ntools:"))
    diagram = diagram_of(load_mesh(shop, "").mesh)
    kinds = {node.key: node.kind for node in diagram.nodes}
    assert kinds == {
        "check": "light", "bill": "heavy", "mend": "light", "ask": "pause", "tool check": "tool", "x-fan-in": "fan_in",
        "x-sink": "end",
    }  # fmt: skip
    assert Way("tool check", "check", "route") in diagram.ways
    assert Way("check", "bill", "sends") in diagram.ways
    assert Way("check", "mend", "policy", "repair") in diagram.ways
    assert Way("x-sink", "mend", "hook") in diagram.ways


def test_an_actor_has_the_kind_that_the_registry_or_the_mesh_file_gives_it(shop: Path) -> None:
    shop.write_text(shop.read_text() + "  later: {route: [check, x-pause, rest]}\n")
    shop.write_text(shop.read_text().replace("actors:\n", "actors:\n  rest: {kind: wait, wait: {for: 1h}}\n", 1))
    kinds = {node.key: node.kind for node in diagram_of(load_mesh(shop, "").mesh).nodes}
    assert (kinds["x-pause"], kinds["rest"]) == ("pause", "wait")


def test_an_actor_before_a_fan_in_sends_slices_and_a_way_of_a_route_is_drawn_once(shop: Path) -> None:
    text = shop.read_text().replace("[check, ask, bill, x-fan-in]", "[check, x-fan-in, mend]")
    text = text.replace("can_send_to: [bill]", "can_send_to: [bill, x-fan-in]")
    shop.write_text(text)
    diagram = diagram_of(load_mesh(shop, "").mesh)
    assert [way.kind for way in diagram.ways if way.start == "check" and way.kind != "policy"] == ["route", "slices"]
