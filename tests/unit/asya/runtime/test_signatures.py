"""protocol §6, typed signatures: what reaches a handler, and what leaves it."""

import dataclasses
import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pydantic
import pytest

from asya.protocol.errors import ErrorInfo
from asya.protocol.strict_json import decode_value
from asya.runtime.call import HandlerFailed, HandlerInvoker
from asya.runtime.fan_out import FanOut, fan_out
from asya.runtime.load import LoadError
from asya.runtime.modes import EnvelopeMode, PayloadMode
from asya.runtime.signatures import typed
from tests.unit.asya.runtime.handler_calls import FOREVER, view


@dataclasses.dataclass
class Order:
    count: int
    placed: datetime.date


class Model(pydantic.BaseModel):
    count: int
    price: Decimal = Decimal("1.50")


def by_dataclass(order: Order) -> Order:
    return dataclasses.replace(order, count=order.count + 1)


def by_model(order: Model) -> Model:
    return order


def by_keys(count: int, placed: datetime.date | None = None) -> dict[str, Any]:
    return {"count": count, "placed": placed or datetime.date(2026, 1, 1)}


def untyped(order):  # type: ignore[no-untyped-def]
    return order


def unresolvable(order: "NotThere") -> Any:  # type: ignore[name-defined]  # noqa: F821
    return order


class Typed:
    def run(self, order: Order) -> Order:
        return order

    def __call__(self, order: Order) -> Order:
        return order


async def coroutine(order: Order) -> Order:
    return order


def generator(order: Order) -> Iterator[Order | tuple[str, ...]]:
    yield order
    yield "SET", ".headers.seen", "yes"
    yield order


def splits(order: Order) -> FanOut:
    return fan_out([order, Model(count=1), datetime.date(2026, 1, 1)], to=["score"])


PAYLOAD = {"count": 2, "placed": "2026-11-24"}


def outputs(handler: Callable[..., Any], payload: Any, **options: Any) -> list[Any]:
    held = typed("m.run", handler, **options)
    invoker = HandlerInvoker(held.call, held.mode, options.get("lists_fan_out", False))
    return [
        decode_value(frame.payload) for frame in invoker.frames(payload, view, FOREVER) if frame.payload is not None
    ]


def failure(handler: Callable[..., Any], payload: Any) -> ErrorInfo:
    with pytest.raises(HandlerFailed) as caught:
        outputs(handler, payload)
    return caught.value.error


@pytest.mark.rule("6.typed")
@pytest.mark.parametrize("handler", [Typed().run, Typed(), coroutine])
def test_the_payload_becomes_the_type_and_the_result_json(handler: Callable[..., Any]) -> None:
    assert outputs(handler, PAYLOAD) == [PAYLOAD]


@pytest.mark.rule("6.typed", "6.typed.result")
def test_the_result_replaces_the_payload() -> None:
    assert outputs(by_dataclass, PAYLOAD | {"other": 1}) == [PAYLOAD | {"count": 3}]
    assert outputs(by_model, {"count": 2}) == [{"count": 2, "price": "1.50"}]


@pytest.mark.rule("6.typed.keys")
def test_several_parameters_are_keys() -> None:
    assert outputs(by_keys, {"count": 2}) == [{"count": 2, "placed": "2026-01-01"}]
    assert outputs(by_keys, PAYLOAD) == [PAYLOAD]


@pytest.mark.rule("6.typed.frames")
def test_each_yielded_value_is_held_to_the_type_and_commands_stay() -> None:
    assert outputs(generator, PAYLOAD) == [PAYLOAD, PAYLOAD]


@pytest.mark.rule("6.typed.frames")
def test_items_of_a_fan_out_travel_in_the_form_of_their_own_types() -> None:
    assert outputs(splits, PAYLOAD) == [PAYLOAD, {"count": 1, "price": "1.50"}, "2026-01-01"]


@pytest.mark.rule("6.contract")
@pytest.mark.parametrize(
    ("handler", "payload", "message"),
    [
        (by_dataclass, PAYLOAD | {"count": "two"}, "payload.count: should be a whole number; got 'two'"),
        (by_dataclass, {"count": 2}, "payload.placed: missing"),
        (by_dataclass, [1], "payload: should be an object (Order); got an array"),
        (by_model, {"count": "2"}, "payload.count: Input should be a valid integer"),
        (by_model, {}, "payload.count: missing"),
        (by_keys, {}, "payload.count: missing"),
    ],
)
def test_a_payload_that_does_not_fit_fails_before_user_code(
    handler: Callable[..., Any], payload: Any, message: str
) -> None:
    error = failure(handler, payload)
    assert (error.type, error.message, error.mro) == ("ContractError", message, ("ValueError", "Exception"))


@pytest.mark.rule("6.contract", "6.typed.result")
def test_a_result_that_does_not_fit_fails() -> None:
    def wrong(order: Order) -> Order:
        return {"count": order.count}  # type: ignore[return-value]

    error = failure(wrong, PAYLOAD)
    assert (error.type, error.message) == ("ContractError", "result.placed: missing")


@pytest.mark.rule("6.typed.untyped")
@pytest.mark.parametrize("handler", [untyped, lambda payload: payload, lambda *all: all, str.upper])
def test_a_handler_without_annotations_is_called_as_it_is(handler: Callable[..., Any]) -> None:
    held = typed("m.run", handler)
    assert held.call is handler
    assert held.mode == PayloadMode()


@pytest.mark.rule("6.typed.untyped")
def test_annotations_that_cannot_be_resolved_are_no_contract() -> None:
    assert typed("m.run", unresolvable).mode == PayloadMode()


@pytest.mark.rule("6.not-json", "6.typed.untyped")
def test_a_handler_without_a_type_of_its_result_gives_json() -> None:
    assert failure(lambda payload: Order(1, datetime.date(2026, 1, 1)), 1).type == "processing_error"


@pytest.mark.rule("6.typed.mode")
@pytest.mark.parametrize("handler", [by_dataclass, by_model, by_keys])
@pytest.mark.parametrize("mode", ["envelope", "envelope-v1"])
def test_models_are_of_payload_mode_only(handler: Callable[..., Any], mode: str) -> None:
    with pytest.raises(LoadError, match="handler_mode"):
        typed("m.run", handler, mode)


def whole(envelope: dict[str, Any]) -> dict[str, Any]:
    return envelope


def test_envelope_mode_takes_a_dict() -> None:
    assert typed("m.run", whole, "envelope").mode == EnvelopeMode("envelope")
