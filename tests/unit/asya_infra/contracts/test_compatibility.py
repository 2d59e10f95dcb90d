"""What a type accepted and its successor refuses; harmless changes are no refusal."""

import datetime
import decimal
import enum
import uuid
from dataclasses import dataclass, field, make_dataclass
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pydantic
import pytest

from asya.contracts.function import input_schema
from asya_infra.contracts.compatibility import Refusal, refusals


def record(*required: tuple[str, Any], **defaults: tuple[Any, Any]) -> Any:
    """A dataclass with these fields: required ones, and others with their type and default."""
    fields = [(name, kind) for name, kind in required]
    optional = [(name, kind, field(default=value)) for name, (kind, value) in defaults.items()]
    return make_dataclass("Order", [*fields, *optional])


def x(kind: Any) -> Any:
    """A record with one required field."""
    return make_dataclass("Box", [("x", kind)])


def objects(required: tuple[str, ...] = (), others: Any = True, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": others,
    }


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Colors(enum.Enum):
    RED = "red"
    BLUE = "blue"
    GREEN = "green"


class Open(pydantic.BaseModel, extra="allow"):
    id: str


class Closed(pydantic.BaseModel, extra="forbid"):
    id: str


class Plain(pydantic.BaseModel):
    id: str


class Renamed(pydantic.BaseModel):
    identity: str = pydantic.Field(alias="id")


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    name: str


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str


class Late(TypedDict):
    id: str
    note: NotRequired[str]


class Early(TypedDict):
    id: str
    note: str


@dataclass
class Tree:
    name: str
    children: "list[Tree]"


@dataclass
class NumberTree:
    name: int
    children: "list[NumberTree]"


NUMBER, TEXT = {"type": "integer"}, {"type": "string"}
LEAST_1, LEAST_3 = Annotated[int, pydantic.Field(ge=1)], Annotated[int, pydantic.Field(ge=3)]
ABOVE_0 = Annotated[int, pydantic.Field(gt=0)]
MOST_5, MOST_9 = Annotated[float, pydantic.Field(le=5)], Annotated[float, pydantic.Field(le=9)]
BELOW_9 = Annotated[float, pydantic.Field(lt=9)]
SHORT, LONG = Annotated[str, pydantic.Field(max_length=3)], Annotated[str, pydantic.Field(max_length=9)]
FILLED = Annotated[str, pydantic.Field(min_length=1)]
CODED = Annotated[str, pydantic.Field(pattern="^[a-z]+$")]
DIGITS = Annotated[str, pydantic.Field(pattern="^[0-9]+$")]
SOME = Annotated[list[int], pydantic.Field(min_length=1)]
EVEN, FOURTH = Annotated[int, pydantic.Field(multiple_of=2)], Annotated[int, pydantic.Field(multiple_of=4)]

BREAKING: list[tuple[Any, Any, Refusal]] = [
    # Fields.
    (record(("id", str)), record(("id", str), ("note", str)), Refusal("note", "str", None)),
    (record(("id", str), note=(str, "")), record(("id", str), ("note", str)), Refusal("note", "str", None)),
    (Late, Early, Refusal("note", "str", None)),
    (x(record(("id", str))), x(record(("id", str), ("note", str))), Refusal("x.note", "str", None)),
    (list[Plain], list[x(str)], Refusal("[].x", "str", None)),
    (Plain, Closed, Refusal("*", None, "Any")),
    (Open, Closed, Refusal("*", None, "Any")),
    (x(Plain), x(Closed), Refusal("x.*", None, "Any")),
    (objects(a=NUMBER, b=NUMBER, others=False), objects(a=NUMBER, others=False), Refusal("b", None, "int")),
    (objects(a=TEXT), objects(a=TEXT, others=False), Refusal("*", None, "Any")),
    (objects(a=TEXT), objects(others=NUMBER), Refusal("a", "int", "str")),
    (objects(others=TEXT), objects(a=NUMBER), Refusal("a", "int", "str")),
    # Types.
    (x(str), x(int), Refusal("x", "int", "str")),
    (x(float), x(int), Refusal("x", "int", "float")),
    (x(int | None), x(int), Refusal("x", "int", "None")),
    (x(int | str), x(int), Refusal("x", "int", "str")),
    (x(int), x(bool), Refusal("x", "bool", "int")),
    (x(bool), x(int), Refusal("x", "int", "True or False")),
    (x(str), x(list[str]), Refusal("x", "list[str]", "str")),
    (x(list[str]), x(list[int]), Refusal("x[]", "int", "str")),
    (x(list[int]), x(tuple[int, int]), Refusal("x", "list with minItems 2 and maxItems 2", "list[int]")),
    (x(tuple[int, int]), x(tuple[int, str]), Refusal("x[1]", "str", "int")),
    (x(dict[str, str]), x(dict[str, int]), Refusal("x[]", "int", "str")),
    (x(Plain), x(str), Refusal("x", "str", "Plain")),
    (Tree, NumberTree, Refusal("name", "int", "str")),
    (x(Cat | Dog), x(Cat), Refusal("x.kind", "'cat'", "'dog'")),
    (x(Cat | Dog), x(Cat | x(int)), Refusal("x", "Cat | Box", "Dog")),
    # Forms of strings.
    (x(str), x(datetime.date), Refusal("x", "date", "str")),
    (x(datetime.date), x(datetime.datetime), Refusal("x", "datetime", "date")),
    (x(uuid.UUID), x(datetime.date), Refusal("x", "date", "UUID")),
    (x(str), x(decimal.Decimal), Refusal("x", "Decimal", "str")),
    (x(decimal.Decimal), x(float), Refusal("x", "float", "Decimal")),
    (x(decimal.Decimal), x(str), Refusal("x", "str", "Decimal")),
    (x(str), x(bytes), Refusal("x", "str with contentEncoding base64", "str")),
    (x(str), {**objects(x={"type": "string", "format": "email"})}, Refusal("x", "str with format email", "str")),
    # Values.
    (x(Colors), x(Color), Refusal("x", "'red' or 'blue'", "'green'")),
    (x(Literal[1, 2]), x(Literal[1]), Refusal("x", "1", "2")),
    (x(str), x(Color), Refusal("x", "'red' or 'blue'", "str")),
    (x(Literal["a", 1]), x(str), Refusal("x", "str", "1")),
    (x(Literal[1]), x(Literal[True]), Refusal("x", "True", "1")),
    # Limits.
    (x(int), x(LEAST_3), Refusal("x", "int with minimum 3", "int")),
    (x(LEAST_1), x(LEAST_3), Refusal("x", "int with minimum 3", "int with minimum 1")),
    (x(Literal[1, 5]), x(LEAST_3), Refusal("x", "int", "1")),
    (x(MOST_9), x(MOST_5), Refusal("x", "float with maximum 5", "float with maximum 9")),
    (x(MOST_9), x(BELOW_9), Refusal("x", "float with exclusiveMaximum 9", "float with maximum 9")),
    (x(LONG), x(SHORT), Refusal("x", "str with maxLength 3", "str with maxLength 9")),
    (x(str), x(FILLED), Refusal("x", "str with minLength 1", "str")),
    (x(str), x(CODED), Refusal("x", "str with pattern ^[a-z]+$", "str")),
    (x(list[int]), x(SOME), Refusal("x", "list[int] with minItems 1", "list[int]")),
    (x(EVEN), x(FOURTH), Refusal("x", "int with multipleOf 4", "int with multipleOf 2")),
    (
        objects(x={"type": "array"}),
        objects(x={"type": "array", "uniqueItems": True}),
        Refusal("x", "list with uniqueItems True", "list"),
    ),
    (
        objects(("a",), a=TEXT),
        objects(("a",), a=TEXT) | {"minProperties": 2},
        Refusal("", "dict with minProperties 2", "dict"),
    ),
]

HARMLESS: list[tuple[Any, Any]] = [
    (record(("id", str)), record(("id", str), note=(str, ""))),
    (record(("id", str), ("note", str)), record(("id", str))),
    (record(("id", str), ("note", str)), record(("id", str), note=(str, ""))),
    (record(("a", str), ("b", int)), record(("b", int), ("a", str))),
    (Early, Late),
    (Closed, Plain),
    (Closed, Open),
    (Plain, Open),
    (Plain, Renamed),
    (Plain, record(("id", str))),
    (x(int), x(float)),
    (x(int), x(int | None)),
    (x(int), x(int | str)),
    (x(int), x(decimal.Decimal)),
    (x(int | None), x(float | None)),
    (x(datetime.date), x(str)),
    (x(datetime.date), x(datetime.date | None)),
    (x(Color), x(Colors)),
    (x(Color), x(str)),
    (x(bool), x(Literal[True, False])),
    (x(Literal[1, 2]), x(int)),
    (x(Literal[4, 5]), x(LEAST_3)),
    (x(Literal["2026-01-01"]), x(datetime.date)),
    (x(LEAST_3), x(LEAST_1)),
    (x(LEAST_1), x(ABOVE_0)),
    (x(ABOVE_0), x(LEAST_1)),
    (x(LEAST_1), x(int)),
    (x(BELOW_9), x(MOST_9)),
    (x(SHORT), x(LONG)),
    (x(FOURTH), x(EVEN)),
    (x(FILLED), x(str)),
    (x(CODED), x(DIGITS)),  # which strings two patterns share is not known
    (x(tuple[int, int]), x(list[int])),
    (x(list[int]), x(list[float])),
    (x(Cat), x(Cat | Dog)),
    (x(Cat | Dog), x(Dog | Cat)),
    (Tree, Tree),
    (x(str), x(Any)),
    (x(Any), x(int)),  # nothing is known of what it accepted
    (dict, Plain),
    ({}, Plain),
    ({"type": "object"}, objects(("id",), id=TEXT, others=False)),
    (objects(a=TEXT), {"not": {"required": ["a"]}}),
    (objects(a=TEXT), objects(a={"allOf": [{}, {}]})),
    (objects(a={"$ref": "#/$defs/s"}) | {"$defs": {"s": TEXT}}, objects(a=TEXT)),
    (objects(a=TEXT), objects(a={"allOf": [TEXT]})),
    (objects(a=NUMBER), objects(a={"minimum": 3})),  # a limit of any type
]


def schema(kind: Any) -> dict[str, Any]:
    return dict(kind) if isinstance(kind, dict) else input_schema(kind)


@pytest.mark.parametrize(("before", "after", "refusal"), BREAKING)
def test_a_value_that_was_allowed_and_is_refused_is_found(before: Any, after: Any, refusal: Refusal) -> None:
    assert refusals(schema(before), schema(after)) == [refusal]


@pytest.mark.parametrize(("before", "after"), HARMLESS)
def test_a_type_that_accepts_all_that_another_one_allows_is_harmless(before: Any, after: Any) -> None:
    assert refusals(schema(before), schema(after)) == []


@pytest.mark.parametrize("kind", [each for before, after, *_ in BREAKING for each in (before, after)])
def test_no_type_refuses_what_it_allows(kind: Any) -> None:
    assert refusals(schema(kind), schema(kind)) == []


def test_each_field_is_named_once() -> None:
    before, after = record(("a", str | bytes), ("b", int)), record(("a", int), ("b", str), ("c", str))
    assert [each.field for each in refusals(schema(before), schema(after))] == ["c", "a", "b"]


def test_a_schema_without_a_type_is_one_of_its_fields() -> None:
    before = {"properties": {"a": NUMBER}}
    assert refusals(before, before | {"required": ["a"]}) == [Refusal("a", "int", None)]
