"""protocol §6, typed contracts: a generic class has the types of its arguments."""

import dataclasses
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

from asya.contracts.annotations import codec_of
from asya.contracts.errors import ContractError
from asya.contracts.function import input_schema

T = TypeVar("T")
U = TypeVar("U")
Number = TypeVar("Number", bound=int)
Either = TypeVar("Either", int, str)


class Model(pydantic.BaseModel, Generic[T]):
    v: T


class Struct(msgspec.Struct, Generic[T]):
    v: T


@dataclasses.dataclass
class Record(Generic[T]):
    v: T


class Dict(TypedDict, Generic[T]):
    v: T


@pydantic.dataclasses.dataclass
class PydanticRecord(Generic[T]):
    v: T


GENERICS = [Model, Struct, Record, Dict, PydanticRecord]


class Case(NamedTuple):
    argument: Any
    fits: Any
    refused: Any


CASES = [
    Case(int, 1, "x"),
    Case(str, "x", 1),
    Case(list[int], [1], ["x"]),
    Case(int | None, None, "x"),
    Case(dict[str, int], {"a": 1}, {"a": "x"}),
    Case(Annotated[int, "a count"], 1, "x"),
]


@pytest.mark.rule("6.typed.generics")
@pytest.mark.parametrize("generic", GENERICS)
@pytest.mark.parametrize("case", CASES)
def test_the_argument_is_the_type_of_the_field(generic: Any, case: Case) -> None:
    codec = codec_of(generic[case.argument])
    payload = {"v": case.fits}
    assert codec.dump(codec.load(payload, "payload"), "result") == payload
    with pytest.raises(ContractError, match=r"payload\.v"):
        codec.load({"v": case.refused}, "payload")
    with pytest.raises(ContractError, match=r"result\.v|payload\.v"):
        codec.dump({"v": case.refused}, "result")


@dataclasses.dataclass
class Pair(Generic[T, U]):
    first: T
    second: list[U]
    both: "Record[dict[str, T]] | None" = None
    model: Model[U] | None = None


@dataclasses.dataclass
class Swapped(Pair[U, T]):
    third: T | None = None


@dataclasses.dataclass
class Counted(Record[int]):
    unit: str = ""


class Named(Dict[T]):
    name: NotRequired[T]


class NamedCount(Named[int]):
    more: str


@dataclasses.dataclass
class Tree(Generic[T]):
    v: T
    children: "list[Tree[T]]"


@pytest.mark.rule("6.typed.generics")
@pytest.mark.parametrize(
    ("kind", "fits", "refused"),
    [
        (Pair[int, str], {"first": 1, "second": ["a"]}, {"first": 1, "second": [1]}),
        (
            Pair[int, str],
            {"first": 1, "second": [], "both": {"v": {"a": 1}}},
            {"first": 1, "second": [], "both": {"v": {"a": "x"}}},
        ),
        (
            Pair[int, str],
            {"first": 1, "second": [], "model": {"v": "a"}},
            {"first": 1, "second": [], "model": {"v": 1}},
        ),
        (Swapped[int, str], {"first": 1, "second": ["a"], "third": "a"}, {"first": 1, "second": ["a"], "third": 1}),
        (Counted, {"v": 1}, {"v": "x"}),
        (Named[int], {"v": 1, "name": 2}, {"v": 1, "name": "x"}),
        (NamedCount, {"v": 1, "more": "a"}, {"v": "x", "more": "a"}),
        (NamedCount, {"v": 1, "more": "a", "name": 2}, {"v": 1, "more": "a", "name": "x"}),
        (
            Tree[int],
            {"v": 1, "children": [{"v": 2, "children": []}]},
            {"v": 1, "children": [{"v": "x", "children": []}]},
        ),
        (Record[Record[int]], {"v": {"v": 1}}, {"v": {"v": "x"}}),
        (list[Record[int]], [{"v": 1}], [{"v": "x"}]),
        (Record[int] | None, {"v": 1}, {"v": "x"}),
        (Record[Number], {"v": 1}, {"v": "x"}),  # a variable stands for its bound
        (Record[Either], {"v": "x"}, {"v": 1.5}),
    ],
)
def test_arguments_reach_bases_fields_and_items(kind: Any, fits: Any, refused: Any) -> None:
    codec = codec_of(kind)
    loaded = codec.load(fits, "payload")
    assert codec.load(codec.dump(loaded, "result"), "payload") == loaded
    with pytest.raises(ContractError):
        codec.load(refused, "payload")


@pytest.mark.rule("6.typed.generics")
@pytest.mark.parametrize("generic", [Record, Dict])
def test_forms_of_a_generic_class_have_schemas_of_their_own(generic: Any) -> None:
    schema = input_schema(dict[str, generic[int] | generic[str]])
    name = generic.__name__
    assert {key: each["properties"]["v"] for key, each in schema["$defs"].items()} == {
        f"{name}_int_": {"type": "integer"},
        f"{name}_str_": {"type": "string"},
    }


def test_a_generic_class_without_an_argument_takes_anything() -> None:
    assert codec_of(Record).load({"v": "x"}, "payload") == Record("x")
