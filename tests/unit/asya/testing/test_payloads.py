"""Payloads from models."""

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from asya.contracts.annotations import codec_of
from asya.testing import TestKitError, payload_of


class Color(Enum):
    RED = "red"


@dataclass
class Line:
    sku: str
    count: int = 1


@dataclass
class Order:
    id: UUID
    total: Decimal
    placed: date
    at: datetime
    color: Color
    lines: list[Line]
    first: Line
    by_name: dict[str, int]
    note: str | None
    kind: Literal["order"]
    pair: tuple[int, str]
    weight: float
    paid: bool
    more: Any
    tags: list[str] = field(default_factory=list)


@dataclass
class Node:
    name: str
    next: "Node | None"
    children: "list[Node]"


@dataclass
class Endless:
    again: "Endless"


class Limits(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(min_length=6)]
    low: Annotated[int, pydantic.Field(ge=10)]
    high: Annotated[int, pydantic.Field(lt=0)]
    share: Annotated[float, pydantic.Field(gt=0, lt=1)]
    lines: Annotated[list[Line], pydantic.Field(min_length=2)]


class Code(pydantic.BaseModel):
    code: Annotated[str, pydantic.Field(pattern="^[0-9]{4}$")]


class Draft(TypedDict):
    title: str
    body: NotRequired[str]


class Point(msgspec.Struct):
    x: int
    y: int = 0


@pytest.mark.parametrize("model", [Order, Node, Limits, Draft, Point, list[Line], dict[str, Any], int])
def test_a_payload_fits_its_model(model: Any) -> None:
    codec_of(model).load(payload_of(model), "payload")


def test_given_fields_count_and_optional_ones_are_left_out() -> None:
    assert payload_of(Point) == {"x": 1}
    assert payload_of(Draft, title="T") == {"title": "T"}
    assert payload_of(Line, sku="a", count=3) == {"sku": "a", "count": 3}
    assert payload_of(Order, total=Decimal("9.50"), first=Line("b"))["total"] == "9.50"


def test_what_no_schema_can_build_is_to_be_given() -> None:
    with pytest.raises(TestKitError, match=r"code.*; give a value that fits: payload_of\(Code, field=…\)"):
        payload_of(Code)
    assert payload_of(Code, code="1234") == {"code": "1234"}
    with pytest.raises(TestKitError, match="x"):
        payload_of(Point, x="far")


def test_a_type_within_itself_ends() -> None:
    assert payload_of(Node) == {"name": "text", "next": None, "children": []}
    with pytest.raises(TestKitError, match="Endless contains Endless for ever; write this payload by hand"):
        payload_of(Endless)
