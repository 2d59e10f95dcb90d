"""protocol §6.typed.schema: the three verdicts on models of each kind, with each part of a fitting value replaced."""

import dataclasses
import enum
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Generic, Literal, NotRequired, Required, TypedDict, TypeVar

import msgspec
import pydantic
import pytest
from pydantic import ConfigDict, Field

from asya.contracts.errors import ContractError
from asya.contracts.function import contract_of
from asya.protocol.strict_json import decode_exact
from tests.doubles.verdicts import NUMBERS, SEEDS, Verdicts

T = TypeVar("T")


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    n: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    n: float


class Pets(pydantic.BaseModel):
    x: Annotated[Cat | Dog, Field(discriminator="kind")]


class Alias(pydantic.BaseModel):
    x: int = Field(alias="count")


class Forbid(pydantic.BaseModel):
    model_config = ConfigDict(extra="forbid")
    x: date | None = None


class OpenTyped(pydantic.BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    x: str = "a"


class Box(pydantic.BaseModel, Generic[T]):
    x: T


class Tree(pydantic.BaseModel):
    n: int
    x: "list[Tree]" = []


class Limited(pydantic.BaseModel):
    x: Annotated[list[int], Field(min_length=1, max_length=2)]
    n: Annotated[int, Field(multiple_of=5, le=100)] = 5
    z: Annotated[str, pydantic.StringConstraints(max_length=1)] = ""


class Options(pydantic.BaseModel):
    x: Literal[1, 2] | None = None
    n: int | list[int] | dict[str, int] | None = None
    z: pydantic.JsonValue = None


class Deep(pydantic.BaseModel):
    x: dict[str, list[tuple[int, date | None]]]


class Several(enum.Enum):
    ONE = 1
    B = "b"
    NOTHING = None
    HALF = 0.5


class OfEnum(pydantic.BaseModel):
    x: Several


class First(msgspec.Struct, tag="a"):
    n: int


class Second(msgspec.Struct, tag="b"):
    n: datetime


class Tagged(msgspec.Struct):
    x: First | Second


class Numbered(msgspec.Struct, tag=1):
    n: int


class ArrayLike(msgspec.Struct, array_like=True):
    n: int
    at: date
    z: str = "d"


class HasArray(msgspec.Struct):
    x: ArrayLike


class Renamed(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    my_count: int
    x: datetime | None = None


class Unset(msgspec.Struct):
    x: int | msgspec.UnsetType = msgspec.UNSET


class LimitedStruct(msgspec.Struct):
    x: Annotated[list[int], msgspec.Meta(min_length=1, max_length=2)]
    n: Annotated[str, msgspec.Meta(pattern="^a+$")] | None = None


class Part(TypedDict, total=False):
    x: Required[int]
    n: datetime


class Whole(TypedDict):
    x: NotRequired[timedelta]
    n: int


@dataclasses.dataclass
class Record:
    n: int
    x: "list[Record]" = dataclasses.field(default_factory=list)
    at: datetime | None = None


AT = "2026-11-24T08:30:00Z"
MODELS: list[tuple[Any, Any]] = [
    (Pets, {"x": {"kind": "cat", "n": 1}}),
    (Alias, {"count": 1}),
    (Forbid, {"x": "2026-11-24"}),
    (OpenTyped, {"x": "a", "n": 1}),
    (Box[int], {"x": 1}),
    (Box[list[date]], {"x": ["2026-11-24"]}),
    (Tree, {"n": 1, "x": [{"n": 2, "x": []}]}),
    (Limited, {"x": [1], "n": 5, "z": "a"}),
    (Options, {"x": 1, "n": 1, "z": {"a": [1.0]}}),
    (Deep, {"x": {"a": [[1, None]]}}),
    (OfEnum, {"x": 1}),
    (Cat | Dog, {"kind": "dog", "n": 1}),
    (list[Cat], [{"kind": "cat", "n": 1}]),
    (Tagged, {"x": {"type": "a", "n": 1}}),
    (First | Second, {"type": "b", "n": AT}),
    (Numbered, {"type": 1, "n": 1}),
    (HasArray, {"x": [1, "2026-11-24", "d"]}),
    (Renamed, {"myCount": 1, "x": AT}),
    (Unset, {"x": 1}),
    (LimitedStruct, {"x": [1], "n": "aa"}),
    (Part, {"x": 1, "n": AT}),
    (Whole, {"x": "P1D", "n": 1}),
    (Record, {"n": 1, "x": [{"n": 1, "at": AT}], "at": None}),
    (Record | Cat, {"n": 1, "kind": "cat"}),
]
OTHERS: tuple[Any, ...] = (
    [],
    {},
    [1],
    [1.0],
    [1, 2, 3],
    ["2026-11-24"],
    {"n": 1.0},
    {"kind": "dog", "n": 1},
    {"type": "b", "n": "5"},
)


def _changed(value: Any) -> Iterator[Any]:
    """A value with each of its parts replaced by others, left out, or with a part that nobody declared."""
    yield from (*SEEDS, *NUMBERS, *OTHERS)
    if isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
            yield from ({**value, key: each} for each in _changed(value[key]))
        for key in ("x", "n", "kind", "other"):
            yield from ({**value, key: each} for each in (1, 1.0, "a", None) if key not in value)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], each, *value[index + 1 :]] for each in _changed(item))


@pytest.mark.slow
@pytest.mark.rule("6.typed.schema")
@pytest.mark.parametrize(("model", "value"), MODELS, ids=lambda each: getattr(each, "__name__", ""))
def test_the_verdicts_on_a_model_agree(model: Any, value: Any) -> None:
    def handler(order: Any) -> Any: ...

    handler.__annotations__ = {"order": model, "return": model}
    verdicts = Verdicts(contract_of(handler))
    assert verdicts.contract.arguments(value) is not None
    for each in (value, *_changed(value)):
        verdicts.check(each)


@pytest.mark.rule("6.typed.schema")
def test_keys_of_a_payload_agree_too() -> None:
    def handler(x: int, n: date, z: str = "") -> Any: ...

    del handler.__annotations__["return"]
    verdicts = Verdicts(contract_of(handler))
    for each in _changed({"x": 1, "n": "2026-11-24"}):
        verdicts.check(each)


@pytest.mark.rule("1.numbers", "6.typed.strict")
@pytest.mark.parametrize("library", [pydantic.create_model, msgspec.defstruct, dataclasses.make_dataclass])
def test_a_whole_number_with_a_point_keeps_its_digits(library: Any) -> None:
    is_model = library is pydantic.create_model
    model = library("Model", x=(int, ...)) if is_model else library("Model", [("x", int)])

    def handler(order: Any) -> Any: ...

    handler.__annotations__ = {"order": model}
    contract = contract_of(handler)
    assert contract.has_decimals
    for text, whole in (("5.0", 5), ("12345678901234567890.0", 12345678901234567890), ("1e20", 10**20), ("-0.0", 0)):
        x = contract.arguments(decode_exact(f'{{"x":{text}}}'.encode())).x
        assert (x, type(x)) == (whole, int)
    for text in ("12345678901234567.5", "1e-400", "5.5"):
        with pytest.raises(ContractError, match=r"^payload\.x"):
            contract.arguments(decode_exact(f'{{"x":{text}}}'.encode()))
