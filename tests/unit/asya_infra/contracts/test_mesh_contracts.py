"""What a mesh file says of contracts: who gets what from whom, and what is left of a schema."""

from typing import Any

import pytest

from asya.manifest import ActorFunction, Capability, Queues
from asya.registry import PRODUCT, Registry
from asya_infra.contracts.mesh_contracts import ActorContract, MeshContracts, ToolContract, contracts_of
from asya_infra.contracts.read import Types
from asya_infra.contracts.routes import route_conflicts
from asya_infra.mesh_file.capability_model import mesh_model
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.sections import read_section

TEXT = {"type": "string"}


def contracts(
    route: list[str], schema: dict[str, Any] | None = None, actors: dict[str, Any] | None = None
) -> MeshContracts:
    handlers: dict[str, Any] = {name: {"handler": f"shop.{name}"} for name in "abc"}
    values = {"namespace": "shop", "actors": handlers | (actors or {}), "tools": {"order": {"route": route}}}
    types = {name: Types(TEXT, TEXT) for name in "abc"}
    return contracts_of(read_section(MeshFile, values), types, {"order": schema or {}})


def takers(found: MeshContracts) -> dict[str, tuple[str, ...]]:
    return {name: actor.next for name, actor in found.actors.items() if actor.next}


def test_the_actors_of_a_route_get_the_results_of_those_before_them() -> None:
    found = contracts(["a", "b", "c"])
    assert takers(found) == {"a": ("b",), "b": ("c",)}
    assert found.tools == {"order": ToolContract(None, ("a",), "c")}


def test_a_checkpoint_passes_payloads_on() -> None:
    found = contracts(["x-checkpoint", "a", "x-checkpoint", "b"])
    assert takers(found) == {"a": ("x-checkpoint", "b")}
    assert found.tools["order"].next == ("x-checkpoint", "a")


@pytest.mark.parametrize("passes", [True, False])
def test_a_kind_of_the_mesh_itself_passes_payloads_on_if_its_capability_says_so(passes: bool) -> None:
    """What an actor gives whose kind says nothing is not known."""
    stamp = ActorFunction(
        kind="stamp", entry_point="seals.stamp", timeout=9, queues=Queues(), passes_payloads=passes, text="stamps"
    )
    registry = Registry((*PRODUCT.capabilities, Capability(name="seals", functions=(stamp,))))
    actors: dict[str, Any] = {"a": {"handler": "shop.a"}, "b": {"handler": "shop.b"}, "seal": {"kind": "stamp"}}
    values = {"namespace": "shop", "actors": actors, "tools": {"order": {"route": ["a", "seal", "b"]}}}
    mesh, types = read_section(mesh_model(registry), values), {name: Types(TEXT, TEXT) for name in "ab"}
    assert takers(contracts_of(mesh, types, {}, registry)) == {"a": ("seal", "b") if passes else ("seal",)}
    conflicts = [text for _, text in route_conflicts(mesh, {**types, "b": Types({"type": "integer"})}, {}, registry)]
    assert len(conflicts) == passes


@pytest.mark.parametrize("pause", ["x-pause", "ask"])
def test_after_a_pause_nothing_is_known(pause: str) -> None:
    found = contracts(["a", pause, "b"], actors={"ask": {"kind": "pause"}})
    assert takers(found) == {"a": (pause,)}
    assert contracts(["a", pause], actors={"ask": {"kind": "pause"}}).tools["order"].result is None


def test_failed_payloads_and_declared_targets_are_on_their_way_too() -> None:
    then = {"handler": "shop.b", "resiliency": {"policies": {"rescue": {"then_route": ["c", "a"]}}}}
    found = contracts(["a", "b"], actors={"b": then, "c": {"handler": "shop.c", "can_send_to": ["b"]}})
    assert takers(found) == {"a": ("b", "c"), "c": ("a", "b")}


def test_actors_without_types_are_left_out() -> None:
    values = {"namespace": "shop", "actors": {"a": {"handler": "shop.a"}}}
    assert contracts_of(read_section(MeshFile, values), {"a": Types()}, {}) == MeshContracts()


def test_what_is_for_people_is_left_out_of_schemas() -> None:
    schema = {
        "type": "object",
        "title": "Order",
        "description": "An order",
        "properties": {
            "title": {"type": "string", "title": "Title", "default": "", "examples": ["x"]},
            "default": {"anyOf": [{"$ref": "#/$defs/description"}, {"enum": [{"title": "x"}]}]},
        },
        "$defs": {"description": {"type": "integer", "description": "A number"}},
    }
    assert contracts([*"ab"], schema).tools["order"].input == {
        "type": "object",
        "title": "Order",
        "properties": {
            "title": {"type": "string"},
            "default": {"anyOf": [{"$ref": "#/$defs/description"}, {"enum": [{"title": "x"}]}]},
        },
        "$defs": {"description": {"type": "integer"}},
    }
    assert contracts([*"ab"]).actors["a"] == ActorContract(TEXT, TEXT, ("b",))
