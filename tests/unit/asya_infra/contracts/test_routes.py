"""Planted mismatches are found, and what may fit is no mismatch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from asya_infra.contracts.read import Function, Types, read_types
from asya_infra.contracts.routes import route_conflicts
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.sections import read_section

FOLDER = Path(__file__).parent / "planted"


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Types]:
    """The types of all handlers of the folder, from one process."""
    names = sorted({name for route, *_ in (*MISMATCHES, *FITTING) for name in route})
    functions = [Function(name, f"shop.{name}") for name in names]
    found = read_types(tmp_path_factory.mktemp("build"), FOLDER, functions, [], {})
    assert not found.errors
    return dict(found.functions)


def actor(function: str) -> str:
    return function.replace(".", "-").replace("_", "-").lower()


def problems(
    types: dict[str, Types], route: Sequence[str], schema: dict[str, Any] | None = None, **actors: Any
) -> list[str]:
    values = {
        "namespace": "shop",
        "actors": {actor(each): {"handler": f"shop.{each}"} for each in route},
        "tools": {"order": {"route": [actor(each) for each in route]}},
    }
    values["actors"].update(actors)  # type: ignore[attr-defined]
    mesh = read_section(MeshFile, values)
    by_actor = {actor(name): each for name, each in types.items()}
    schemas = {"order": {"type": "object"} if schema is None else schema}
    return [text for _, text in route_conflicts(mesh, by_actor, schemas)]


def inputs(required: bool = True, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties) if required else []}


MISMATCHES: list[tuple[list[str], dict[str, Any] | None, str]] = [
    # A field is missing.
    (["gives_checked", "needs_order"], None, "needs total: Decimal; 'gives-checked' gives none"),
    (["gives_struct", "needs_order"], None, "needs placed: date; 'gives-struct' gives none"),
    (["gives_cart", "needs_struct"], None, "needs id: str; 'gives-cart' gives none"),
    (["gives_ticket", "needs_order"], None, "needs total: Decimal; 'gives-ticket' gives none"),
    (["gives_order", "needs_ticket"], None, "needs when: datetime; 'gives-order' gives none"),
    (["gives_order", "needs_aliased"], None, "needs amount: Decimal; 'gives-order' gives none"),
    (["gives_aliased", "needs_struct"], None, "needs total: Decimal; 'gives-aliased' gives none"),
    (["gives_order", "needs_cart"], None, "needs lines: list[Line]; 'gives-order' gives none"),
    (["gives_checkeds", "needs_orders"], None, "needs [].total: Decimal; 'gives-checkeds' gives none"),
    (["gives_order", "needs_tree"], None, "needs name: str; 'gives-order' gives none"),
    (["gives_order", "by_keys", "needs_order"], None, "needs total: Decimal; 'by-keys' gives none"),
    (["gives_checked", "by_keys"], None, "needs total: Decimal; 'gives-checked' gives none"),
    (["stream", "needs_order"], None, "needs total: Decimal; 'stream' gives none"),
    (["async_stream", "needs_order"], None, "needs total: Decimal; 'async-stream' gives none"),
    (["coroutine", "needs_order"], None, "needs total: Decimal; 'coroutine' gives none"),
    (["Bill.charge", "needs_order"], None, "needs total: Decimal; 'bill-charge' gives none"),
    (["gives_checked", "Bill.refund"], None, "needs total: Decimal; 'gives-checked' gives none"),
    # The input of the tool.
    (
        ["needs_order"],
        inputs(id={"type": "string"}, placed={}),
        "needs total: Decimal; the input of tool 'order' gives none",
    ),
    (["by_keys"], inputs(id={"type": "string"}), "needs total: Decimal; the input of tool 'order' gives none"),
    (["needs_x_int"], inputs(x={"type": "string"}), "needs x: int; the input of tool 'order' gives str"),
    (["needs_x_ints"], inputs(x={"$ref": "#/$defs/s"}) | {"$defs": {"s": {"type": "string"}}}, "gives str"),
    (["needs_strs"], None, "needs list[str]; the input of tool 'order' gives dict"),
    # Types conflict.
    (["gives_x_str", "needs_x_int"], None, "needs x: int; 'gives-x-str' gives str"),
    (["gives_x_str", "needs_x_ints"], None, "needs x: list[int]; 'gives-x-str' gives str"),
    (["gives_x_int", "needs_x_str"], None, "needs x: str; 'gives-x-int' gives int"),
    (["gives_x_bool", "needs_x_int"], None, "needs x: int; 'gives-x-bool' gives bool"),
    (["gives_x_bool", "needs_x_decimal"], None, "needs x: Decimal; 'gives-x-bool' gives bool"),
    (["gives_x_decimal", "needs_x_float"], None, "needs x: float; 'gives-x-decimal' gives Decimal"),
    (["gives_x_date", "needs_x_datetime"], None, "needs x: datetime; 'gives-x-date' gives date"),
    (["gives_x_datetime", "needs_x_date"], None, "needs x: date; 'gives-x-datetime' gives datetime"),
    (["gives_x_uuid", "needs_x_decimal"], None, "needs x: Decimal; 'gives-x-uuid' gives UUID"),
    (["gives_x_color", "needs_x_sizes"], None, "needs x: 's' or 'm'; 'gives-x-color' gives 'red' or 'blue'"),
    (["gives_x_int", "needs_x_color"], None, "needs x: 'red' or 'blue'; 'gives-x-int' gives int"),
    (["gives_x_strs", "needs_x_ints"], None, "needs x[]: int; 'gives-x-strs' gives str"),
    (["gives_x_ints", "needs_x_str_or_int"], None, "needs x: int | str; 'gives-x-ints' gives list[int]"),
    (["gives_x_none", "needs_x_str"], None, "needs x: str; 'gives-x-none' gives None"),
    (["gives_x_str", "needs_x_optional_int"], None, "gives str"),
    (["gives_x_str", "needs_x_positive"], None, "needs x: int; 'gives-x-str' gives str"),
    (["gives_x_str", "needs_x_default"], None, "needs x: int; 'gives-x-str' gives str"),
    (["gives_x_str", "needs_x_cart"], None, "needs x: Cart; 'gives-x-str' gives str"),
    (["gives_tree", "needs_number_tree"], None, "needs name: int; 'gives-tree' gives str"),
    (["gives_str_dict", "needs_int_dict"], None, "gives str"),
    (["gives_orders", "needs_order"], None, "needs Order; 'gives-orders' gives list[Order]"),
    (["gives_order", "needs_list"], None, "needs list[Any]; 'gives-order' gives Order"),
    (["gives_triple", "needs_pair"], None, "needs a list of 2; 'gives-triple' gives a list of 3"),
    (["gives_either", "needs_cart"], None, "needs Cart; 'gives-either' gives Order | Checked"),
    # A field is not allowed.
    (["gives_order", "needs_forbidding"], None, "takes no field total; 'gives-order' gives it"),
    (["gives_checked", "needs_struct_closed"], None, "takes no field ok; 'gives-checked' gives it"),
]

FITTING: list[tuple[list[str], dict[str, Any] | None]] = [
    (["gives_order", "needs_order", "needs_checked"], None),
    (["gives_order", "needs_struct"], None),
    (["gives_order", "by_keys", "needs_checked"], None),
    (["gives_order", "untyped", "needs_cart"], None),
    (["gives_order", "adds", "needs_cart"], None),
    (["gives_order", "splits", "needs_cart"], None),
    (["gives_open", "needs_order"], None),
    (["gives_open_ticket", "needs_order"], None),
    (["gives_dict", "needs_order"], None),
    (["gives_either", "needs_order"], None),
    (["gives_either", "by_keys"], None),
    (["gives_order_or_none", "needs_order"], None),
    (["gives_ticket", "needs_ticket"], None),
    (["gives_tree", "needs_tree"], None),
    (["gives_x_int", "needs_x_float"], None),
    (["gives_x_float", "needs_x_int"], None),
    (["gives_x_int", "needs_x_decimal"], None),
    (["gives_x_str", "needs_x_decimal"], None),
    (["gives_x_str", "needs_x_date"], None),
    (["gives_x_str", "needs_x_color"], None),
    (["gives_x_date", "needs_x_str"], None),
    (["gives_x_color", "needs_x_str"], None),
    (["gives_x_optional_int", "needs_x_int"], None),
    (["gives_x_str_or_int", "needs_x_int"], None),
    (["gives_x_any", "needs_x_cart"], None),
    (["gives_x_int", "needs_x_positive"], None),
    (["gives_order", "needs_x_default"], None),
    (["gives_strs", "needs_list"], None),
    (["gives_int_dict", "needs_x_int"], None),
    (["needs_order"], None),
    (["needs_order"], inputs(required=False, id={}, total={"type": "string"}, placed={})),
    (["needs_order"], inputs(id={}) | {"additionalProperties": True}),
    (["needs_order"], {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{}, {}]}}}),
]


@pytest.mark.parametrize(("route", "schema", "message"), MISMATCHES)
def test_a_planted_mismatch_is_found(
    types: dict[str, Types], route: list[str], schema: dict[str, Any] | None, message: str
) -> None:
    found = problems(types, route, schema)
    assert any(message in each for each in found)
    assert all(each.startswith(f"'{actor(route[-1])}' ") for each in found)


@pytest.mark.parametrize(("route", "schema"), FITTING)
def test_what_may_fit_is_no_mismatch(types: dict[str, Types], route: list[str], schema: dict[str, Any] | None) -> None:
    assert problems(types, route, schema) == []


def test_there_are_forty() -> None:
    assert len({(tuple(route), str(schema)) for route, schema, _ in MISMATCHES}) >= 40


def test_declared_targets_and_routes_of_policies_are_routes_too(types: dict[str, Types]) -> None:
    missing = [f"'needs-order' needs {each}; 'gives-checked' gives none" for each in ("total: Decimal", "placed: date")]
    gives = {"handler": "shop.gives_checked", "can_send_to": ["needs-order"]}
    assert problems(types, ["needs_order"], None, **{"gives-checked": gives}) == missing
    policies = {"rescue": {"then_route": ["needs-order"]}}
    failing = {"handler": "shop.needs_checked", "resiliency": {"policies": policies}}
    needs = {"handler": "shop.needs_order"}
    found = problems(
        types, ["gives_checked", "needs_checked"], None, **{"needs-checked": failing, "needs-order": needs}
    )
    assert found == missing


def test_the_answers_of_a_pause_may_have_any_type(types: dict[str, Types]) -> None:
    pause = {"kind": "pause", "pause": {"fields": [{"name": "total", "type": "number"}]}}
    found = problems(types, ["gives_checked", "ask", "needs_order"], None, ask=pause)
    assert found == ["'needs-order' needs placed: date; 'gives-checked' gives none"]
    freely = {"kind": "pause"}
    assert problems(types, ["gives_checked", "ask", "needs_order"], None, ask=freely) == []
