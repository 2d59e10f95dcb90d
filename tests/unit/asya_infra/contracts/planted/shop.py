"""Small handlers, some of which do not fit each other."""

import dataclasses
import enum
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic

from asya import fan_out
from asya.runtime.fan_out import FanOut

# --- types -------------------------------------------------------------------------------------------------------------


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Order(pydantic.BaseModel):
    id: str
    total: Decimal
    placed: date


class Checked(pydantic.BaseModel):
    id: str
    ok: bool


class OpenChecked(Checked, extra="allow"):
    pass


class Forbidding(pydantic.BaseModel, extra="forbid"):
    id: str


class Aliased(pydantic.BaseModel):
    total: Decimal = pydantic.Field(alias="amount")


class Nested(pydantic.BaseModel):
    lines: list[Order]


class StructOrder(msgspec.Struct):
    id: str
    total: Decimal
    note: str = ""


class StructClosed(msgspec.Struct, forbid_unknown_fields=True):
    id: str


@dataclasses.dataclass
class Line:
    price: Decimal
    count: int


@dataclasses.dataclass
class Cart:
    lines: list[Line]
    note: str = ""


@dataclasses.dataclass
class Tree:
    name: str
    children: "list[Tree]"


@dataclasses.dataclass
class NumberTree:
    name: int
    children: "list[NumberTree]"


class Ticket(TypedDict):
    id: str
    when: datetime
    note: NotRequired[str]


class OpenTicket(TypedDict, total=False):
    id: str


def need(kind: Any) -> Any:
    def handler(payload):  # type: ignore[no-untyped-def]
        return payload

    handler.__annotations__ = {"payload": kind}
    return handler


def give(kind: Any) -> Any:
    def handler(payload):  # type: ignore[no-untyped-def]
        return payload

    handler.__annotations__ = {"return": kind}
    return handler


def field(kind: Any) -> Any:
    return dataclasses.make_dataclass("Record", [("x", kind)])


# --- what gives and what needs: `gives_X` and `needs_X` ------------------------------------------------------------------

TYPES = {
    "order": Order,
    "checked": Checked,
    "open": OpenChecked,
    "forbidding": Forbidding,
    "aliased": Aliased,
    "nested": Nested,
    "struct": StructOrder,
    "struct_closed": StructClosed,
    "cart": Cart,
    "tree": Tree,
    "number_tree": NumberTree,
    "ticket": Ticket,
    "open_ticket": OpenTicket,
    "dict": dict[str, Any],
    "list": list[Any],
    "orders": list[Order],
    "checkeds": list[Checked],
    "either": Order | Checked,
    "order_or_none": Order | None,
    "str_dict": dict[str, str],
    "int_dict": dict[str, int],
    "strs": list[str],
    "pair": tuple[int, str],
    "triple": tuple[int, str, str],
    "x_str": field(str),
    "x_int": field(int),
    "x_float": field(float),
    "x_bool": field(bool),
    "x_decimal": field(Decimal),
    "x_uuid": field(UUID),
    "x_date": field(date),
    "x_datetime": field(datetime),
    "x_color": field(Color),
    "x_sizes": field(Literal["s", "m"]),
    "x_strs": field(list[str]),
    "x_ints": field(list[int]),
    "x_str_or_int": field(str | int),
    "x_optional_int": field(int | None),
    "x_positive": field(Annotated[int, pydantic.Field(gt=0)]),
    "x_none": field(None),
    "x_cart": field(Cart),
    "x_any": field(Any),
    "x_default": dataclasses.make_dataclass("Record", [("x", int, 3)]),
}

for _name, _kind in TYPES.items():
    globals()[f"gives_{_name}"] = give(_kind)
    globals()[f"needs_{_name}"] = need(_kind)


# --- other forms of handlers -------------------------------------------------------------------------------------------


def untyped(payload):  # type: ignore[no-untyped-def]
    return payload


def adds(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "total": 1}


def by_keys(id: str, total: Decimal, note: str = "") -> Checked:  # noqa: A002
    return Checked(id=id, ok=total > 0)


def stream(order: Order) -> Iterator[Checked | tuple[str, ...] | None]:
    yield None


async def async_stream(order: Order) -> AsyncIterator[Checked]:
    yield Checked(id=order.id, ok=True)


async def coroutine(order: Order) -> Checked:
    return Checked(id=order.id, ok=True)


def splits(order: Order) -> FanOut:
    return fan_out([order], to=["a"])


class Bill:
    def __init__(self) -> None:
        raise RuntimeError("not at synthesis")

    def charge(self, order: Order) -> Checked:
        return Checked(id=order.id, ok=True)

    @staticmethod
    def refund(order: Order) -> Checked:
        return Checked(id=order.id, ok=False)
