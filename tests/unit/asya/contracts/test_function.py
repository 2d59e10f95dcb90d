"""protocol §6, typed contracts: what the annotations of a function say of its payload and its result."""

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from asya import fan_out
from asya.contracts import forms
from asya.contracts.errors import ContractError
from asya.contracts.function import contract_of, input_schema
from asya.contracts.signature import SignatureError
from asya.runtime.fan_out import FanOut


@dataclasses.dataclass
class Order:
    id: str
    total: Decimal
    note: str = ""


class Client:
    """A class that is no contract."""


def by_keys(id: str, total: Decimal, note: str = "none") -> Any:  # noqa: A002
    return id, total, note


def for_tests(order: Order, client: Client | None = None, *, limit=3) -> None:  # type: ignore[no-untyped-def]
    pass


@pytest.mark.rule("6.typed.keys")
def test_several_parameters_are_keys_and_defaults_are_optional() -> None:
    contract = contract_of(by_keys)
    assert contract.arguments({"id": "a", "total": "1.0", "other": 1}) == {"id": "a", "total": Decimal("1.0")}
    with pytest.raises(ContractError, match=r"^payload\.total: missing$"):
        contract.arguments({"id": "a"})
    with pytest.raises(ContractError, match="should be an object with id, total, note"):
        contract.arguments(["a"])


@pytest.mark.rule("6.typed.keys")
def test_a_parameter_with_a_default_and_no_type_of_json_is_no_key() -> None:
    assert contract_of(for_tests).arguments({"id": "a", "total": "2"}) == Order("a", Decimal(2))


def untyped(a, b):  # type: ignore[no-untyped-def]
    pass


def positional(a: int, b: int, /) -> None:
    pass


@pytest.mark.rule("6.load-errors")
@pytest.mark.parametrize("function", [untyped, positional, lambda: None])
def test_a_function_that_no_payload_can_call_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(SignatureError):
        contract_of(function)


def returns(order: dict[str, Any]) -> Order | None: ...  # type: ignore[empty-body]
async def coroutine(order: dict[str, Any]) -> Order: ...  # type: ignore[empty-body]
def awaitable(order: dict[str, Any]) -> Awaitable[Order]: ...  # type: ignore[empty-body]
def gives_generator(order: dict[str, Any]) -> Iterator[Order]: ...  # type: ignore[empty-body]
def may_fan_out(order: dict[str, Any]) -> FanOut | Order: ...  # type: ignore[empty-body]


def generator(order: dict[str, Any]) -> Iterable[Order | tuple[str, ...] | None]:
    yield Order("a", Decimal(1))


async def async_generator(order: dict[str, Any]) -> AsyncIterator[Order]:
    yield Order("a", Decimal(1))


@pytest.mark.rule("6.typed.frames")
@pytest.mark.parametrize(
    "function", [returns, coroutine, awaitable, gives_generator, may_fan_out, generator, async_generator]
)
def test_the_type_of_each_frame(function: Callable[..., Any]) -> None:
    contract = contract_of(function)
    assert contract.dumped(Order("a", Decimal("1.0"))) == {"id": "a", "total": "1.0", "note": ""}
    with pytest.raises(ContractError, match=r"^result"):
        contract.dumped([])


def a_list(order: dict[str, Any]) -> list[Order]: ...  # type: ignore[empty-body]


def test_a_list_that_fans_out_has_the_type_of_its_items() -> None:
    assert contract_of(a_list).dumped([Order("a", Decimal(1))]) == [{"id": "a", "total": "1", "note": ""}]
    assert contract_of(a_list, lists_fan_out=True).dumped(Order("a", Decimal(1)))["id"] == "a"


def job(spark: Client, order: Order) -> Order: ...  # type: ignore[empty-body]


def test_what_comes_before_the_payload_is_no_part_of_it() -> None:
    assert contract_of(job, given=1).arguments({"id": "a", "total": "1"}) == Order("a", Decimal(1))


def test_schemas_say_what_a_function_accepts_and_gives() -> None:
    contract = contract_of(job, given=1)
    decimals = {"type": ["string", "number"], **forms.DECIMAL.schema()}
    accepted = {"id": {"type": "string"}, "total": decimals, "note": {"type": "string"}}
    assert contract.input_schema() == {
        "type": "object",
        "title": "Order",
        "properties": accepted,
        "required": ["id", "total"],
    }
    assert contract.input_schema() == input_schema(Order)
    assert contract.output_schema() == {
        "type": "object",
        "title": "Order",
        "properties": accepted | {"total": {"type": "string", **forms.DECIMAL.schema()}},
        "required": ["id", "total", "note"],
        "additionalProperties": False,
    }
    assert contract_of(by_keys).input_schema() == {
        "type": "object",
        "properties": accepted,
        "required": ["id", "total"],
    }
    assert contract_of(lambda payload: payload).input_schema() is None
    assert contract_of(lambda payload: payload).output_schema() is None


def test_fan_out_is_no_payload() -> None:
    def split(order: Order) -> FanOut:
        return fan_out([order], to=["a"])

    contract = contract_of(split)
    assert contract.output_schema() == {}
