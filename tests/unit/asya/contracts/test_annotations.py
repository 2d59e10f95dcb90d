"""protocol §6, typed contracts: one table of values, and every library of models treats them alike."""

import dataclasses
import enum
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from asya.contracts.annotations import codec_of
from asya.contracts.errors import ContractError
from asya.contracts.function import input_schema
from tests.doubles.typed_models import dataclass, pydantic_dataclass, pydantic_model, struct, typed_dict


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


ID = "12345678-1234-5678-1234-567812345678"

ACCEPTED: list[tuple[Any, Any, Any, Any]] = [
    (int, 5, 5, 5),
    (float, 5.5, 5.5, 5.5),
    (float, 5, 5.0, 5.0),
    (str, "5", "5", "5"),
    (bool, True, True, True),
    (Decimal, "12.30", Decimal("12.30"), "12.30"),
    (Decimal, "1e3", Decimal("1E+3"), "1E+3"),
    (Decimal, 12, Decimal(12), "12"),
    (Decimal, 0.1, Decimal("0.1"), "0.1"),
    (date, "2026-11-24", date(2026, 11, 24), "2026-11-24"),
    (datetime, "2026-11-24T08:30:00Z", datetime(2026, 11, 24, 8, 30, tzinfo=UTC), "2026-11-24T08:30:00Z"),
    (datetime, "2026-11-24T08:30:00", datetime(2026, 11, 24, 8, 30), "2026-11-24T08:30:00"),  # noqa: DTZ001
    (time, "08:30:00", time(8, 30), "08:30:00"),
    (UUID, ID, UUID(ID), ID),
    (Color, "red", Color.RED, "red"),
    (Literal["a", 1], 1, 1, 1),
    (list[Decimal], ["1.0"], [Decimal("1.0")], ["1.0"]),
    (dict[str, date], {"a": "2026-11-24"}, {"a": date(2026, 11, 24)}, {"a": "2026-11-24"}),
    (tuple[int, str], [1, "a"], (1, "a"), [1, "a"]),
    (set[int], [1], {1}, [1]),
    (int | None, None, None, None),
    (int | str, "a", "a", "a"),
]

REFUSED: list[tuple[Any, Any]] = [
    (int, "5"),
    (int, 5.5),
    (int, True),
    (float, "5.5"),
    (float, True),
    (str, 5),
    (str, None),
    (bool, 1),
    (bool, "true"),
    (Decimal, "twelve"),
    (Decimal, True),
    (Decimal, ""),
    (date, "24.11.2026"),
    (date, "20261124"),
    (date, 20261124),
    (date, "2026-02-30"),
    (datetime, "tomorrow"),
    (datetime, 1700000000),
    (UUID, "12"),
    (UUID, 12),
    (Color, "green"),
    (Literal["a", 1], "b"),
    (list[Decimal], ["x"]),
    (list[int], {"a": 1}),
    (dict[str, int], ["a"]),
    (dict[str, int], {"a": "1"}),
    (tuple[int, str], [1]),
    (int | None, "1"),
]


LIBRARIES = [pydantic_model, struct, dataclass, typed_dict, pydantic_dataclass]


@pytest.mark.rule("6.typed", "6.typed.forms")
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("kind", "value", "loaded", "dumped"), ACCEPTED)
def test_each_library_reads_and_writes_the_same_forms(
    library: Callable[[Any], Any], kind: Any, value: Any, loaded: Any, dumped: Any
) -> None:
    codec = codec_of(library(kind))
    read = codec.load({"x": value}, "payload")
    x = read["x"] if isinstance(read, dict) else read.x
    assert x == loaded
    assert type(x) is type(loaded)
    assert codec.dump(read, "result") == {"x": dumped}
    assert type(codec.dump(read, "result")["x"]) is type(dumped)


@pytest.mark.rule("6.typed.strict", "6.contract")
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_each_library_refuses_the_same_values(library: Callable[[Any], Any], kind: Any, value: Any) -> None:
    with pytest.raises(ContractError, match=r"^payload\.x"):
        codec_of(library(kind)).load({"x": value}, "payload")


@pytest.mark.rule("6.contract")
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_missing_field_is_named(library: Callable[[Any], Any]) -> None:
    with pytest.raises(ContractError, match=r"`x`|payload\.x: missing"):
        codec_of(library(int)).load({}, "payload")


@pytest.mark.rule("6.typed.result")
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_dict_is_a_result_as_well_as_an_instance(library: Callable[[Any], Any]) -> None:
    codec = codec_of(library(Decimal))
    assert codec.dump({"x": Decimal("1.50")}, "result") == {"x": "1.50"}
    with pytest.raises(ContractError, match=r"^result\.x"):
        codec.dump({"x": "many"}, "result")


@pytest.mark.rule("6.typed.result")
@pytest.mark.parametrize("library", [pydantic_model, struct, dataclass])
def test_an_instance_that_does_not_fit_is_refused(library: Callable[[Any], Any]) -> None:
    codec = codec_of(library(int))
    instance = codec.load({"x": 1}, "payload")
    instance.x = "many"
    with pytest.raises(ContractError, match="result"):
        codec.dump(instance, "result")


@pytest.mark.rule("6.typed.open")
@pytest.mark.parametrize("library", LIBRARIES)
def test_other_keys_are_dropped(library: Callable[[Any], Any]) -> None:
    codec = codec_of(library(int))
    assert codec.dump(codec.load({"x": 1, "y": 2}, "payload"), "result") == {"x": 1}


class OpenModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    x: int


class OpenDict(TypedDict, total=False):
    x: int


@pytest.mark.rule("6.typed.open")
@pytest.mark.parametrize("kind", [OpenModel, OpenDict])
def test_an_open_type_keeps_other_keys(kind: Any) -> None:
    codec = codec_of(kind)
    assert codec.dump(codec.load({"x": 1, "y": 2}, "payload"), "result") == {"x": 1, "y": 2}


class Line(pydantic.BaseModel):
    price: Annotated[Decimal, pydantic.Field(gt=0)]


@dataclasses.dataclass
class Cart:
    lines: list[Line]
    parent: "Cart | None" = None


class Noted(TypedDict):
    cart: Cart
    note: NotRequired[str]


@pytest.mark.rule("6.typed")
def test_libraries_mix_and_types_contain_themselves() -> None:
    payload = {"cart": {"lines": [{"price": "1.20"}], "parent": {"lines": [], "parent": None}}}
    codec = codec_of(Noted)
    loaded = codec.load(payload, "payload")
    assert loaded == {"cart": Cart([Line(price=Decimal("1.20"))], Cart([]))}
    assert codec.dump(loaded, "result") == payload
    payload["cart"]["parent"]["lines"] = [{"price": "0"}]
    with pytest.raises(ContractError, match=r"^payload\.cart\.parent\.lines\[0\]\.price: "):
        codec.load(payload, "payload")


def test_classes_of_one_name_have_definitions_of_their_own() -> None:
    def made(kind: type) -> type:
        @dataclasses.dataclass
        class Line:
            amount: kind  # type: ignore[valid-type]

        return Line

    first, second = made(int), made(str)
    second.__module__ = "shop.lines"
    order = dataclasses.make_dataclass("Order", [("first", first), ("second", second), ("again", first)])
    schema = input_schema(order)
    kinds = {}
    for name, field in schema["properties"].items():
        definition = schema["$defs"][field["$ref"].removeprefix("#/$defs/")]
        kinds[name] = definition["properties"]["amount"]["type"]
    assert kinds == {"first": "integer", "second": "string", "again": "integer"}
    assert len(schema["$defs"]) == 2


@pytest.mark.parametrize(
    ("kind", "value", "loaded"),
    [
        (NewType("Name", str), "a", "a"),
        (Annotated[int, "a note"], 1, 1),
        (Sequence[int], [1], [1]),
        (dict[UUID, int], {ID: 1}, {UUID(ID): 1}),
        (dict, {"a": object}, {"a": object}),
        (Any, [1], [1]),
        (bytes, "YQ==", b"a"),
    ],
)
def test_other_forms_of_annotations(kind: Any, value: Any, loaded: Any) -> None:
    codec = codec_of(kind)
    assert codec.load(value, "payload") == loaded
    assert codec.dump(loaded, "result") == value


@pytest.mark.parametrize(
    ("kind", "constraint"),
    [(Annotated[int, pydantic.Field(gt=3)], "greater"), (Annotated[int, msgspec.Meta(gt=3)], ">")],
)
def test_constraints_are_those_of_their_library(kind: Any, constraint: str) -> None:
    assert codec_of(kind).load(4, "payload") == 4
    with pytest.raises(ContractError, match=constraint):
        codec_of(kind).load(3, "payload")


def test_a_missing_field_has_one_message_in_all_libraries() -> None:
    inner = dataclasses.make_dataclass("Inner", [("total", int)])
    kinds = (
        dataclasses.make_dataclass("Outer", [("order", inner)]),
        pydantic.create_model("Outer", order=(inner, ...)),
        msgspec.defstruct("Outer", [("order", msgspec.defstruct("Inner", [("total", int)]))]),
    )
    for kind in kinds:
        with pytest.raises(ContractError, match=r"^payload.order.total: missing$"):
            codec_of(kind).load({"order": {}}, "payload")
        with pytest.raises(ContractError, match=r"^payload.order: missing$"):
            codec_of(kind).load({}, "payload")


@pytest.mark.parametrize("kind", [Callable[[], int], "not a type", object()])
def test_an_unknown_annotation_is_no_contract(kind: Any) -> None:
    value = object()
    assert codec_of(kind).load(value, "payload") is value
    assert codec_of(kind).dump(value, "result") is value


@pytest.mark.rule("6.typed.untyped")
def test_6_a_class_whose_annotations_cannot_be_resolved_is_no_contract() -> None:
    @dataclasses.dataclass
    class Order:
        customer: "NobodyKnowsThisName"  # type: ignore[name-defined]  # noqa: F821

    class Line(TypedDict):
        article: "NobodyKnowsThisName"  # type: ignore[name-defined]  # noqa: F821

    assert codec_of(Order).load({"anything": 1}, "payload") == {"anything": 1}
    assert codec_of(Line).load({"anything": 1}, "payload") == {"anything": 1}
