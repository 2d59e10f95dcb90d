"""protocol §6, typed signatures: a payload that does not fit is a ValueError naming the field."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

from asya.runtime.signatures import adapter


@dataclasses.dataclass
class Address:
    city: str


@dataclasses.dataclass
class Order:
    count: int
    address: Address
    note: str = ""


class Model(pydantic.BaseModel):
    count: int
    tags: list[str] = []


def by_dataclass(order: Order) -> Any:
    return order


def by_model(order: Model) -> Any:
    return order


def untyped(order):  # type: ignore[no-untyped-def]
    return order


def unresolvable(order: "NotThere") -> Any:  # type: ignore[name-defined]  # noqa: F821
    return order


class Typed:
    def run(self, order: Order) -> Any:
        return order

    def __call__(self, order: Order) -> Any:
        return order


async def coroutine(order: Order) -> Any:
    return order


PAYLOAD = {"count": 2, "address": {"city": "Oslo"}}


@pytest.mark.rule("6.typed")
@pytest.mark.parametrize("handler", [by_dataclass, Typed().run, Typed(), coroutine])
def test_a_dataclass_is_made(handler: Callable[[Any], Any]) -> None:
    assert adapter("m.run", handler)(PAYLOAD) == Order(2, Address("Oslo"))


@pytest.mark.rule("6.typed")
def test_a_pydantic_model_is_made() -> None:
    assert adapter("m.run", by_model)({"count": 2, "tags": ["a"]}) == Model(count=2, tags=["a"])


@pytest.mark.parametrize("handler", [untyped, unresolvable, lambda payload: payload, lambda *all: all, str.upper])
def test_other_handlers_get_the_payload_as_it_is(handler: Callable[[Any], Any]) -> None:
    assert adapter("m.run", handler)(PAYLOAD) is PAYLOAD


@pytest.mark.rule("6.typed")
@pytest.mark.parametrize(
    ("handler", "payload", "named"),
    [
        (by_dataclass, {"count": "two", "address": {"city": "x"}}, "payload.count"),
        (by_dataclass, {"count": 2, "address": {"city": 5}}, "payload.address.city"),
        (by_dataclass, {"count": 2}, "`address`"),
        (by_dataclass, [1], "payload: Expected `object`"),
        (by_dataclass, None, "payload: "),
        (by_model, {"count": "two"}, "payload.count: "),
        (by_model, {"count": 1, "tags": ["a", 5]}, "payload.tags[1]: "),
        (by_model, None, "payload: "),
    ],
)
def test_a_mismatch_is_a_value_error_naming_the_field(handler: Callable[[Any], Any], payload: Any, named: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is looked at below
        adapter("m.run", handler)(payload)
    assert named in str(caught.value)
    assert type(caught.value) is ValueError
