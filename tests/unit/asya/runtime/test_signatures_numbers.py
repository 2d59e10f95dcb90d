"""Any number of JSON reaches the types of handlers with its digits, whichever library they are made with (`protocol §1`)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from hypothesis import given
from msgspec import Raw
from pydantic import AliasChoices, AliasPath, BaseModel, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from asya.contracts.errors import ContractError
from asya.runtime.call import HandlerFailed, HandlerInvoker
from asya.runtime.fan_out import FanOut, fan_out
from asya.runtime.signatures import typed
from tests.doubles.json_numbers import NUMBERS, are_equal
from tests.unit.asya.runtime.handler_calls import FOREVER, view

LONG = "12345678901234567.89"


class Line(BaseModel):
    price: Decimal
    weight: float = 0.0
    notes: Any = None


class Order(BaseModel):
    total: Annotated[Decimal, Field(alias="Total")]
    lines: list[Line] = []
    rates: dict[str, Decimal | None] = {}
    pair: tuple[int, Decimal] | None = None
    many: tuple[Decimal, ...] = ()
    given: Decimal | None = Field(None, validation_alias=AliasChoices("given", AliasPath("old", 0)))
    inner: "Order | None" = None


class Struct(msgspec.Struct):
    total: Decimal
    weight: float = 0.0
    notes: Any = None


@dataclass
class Plain:
    total: Decimal
    weight: float
    notes: Any
    order: Order | None = None
    struct: Struct | None = None


class Typed(TypedDict):
    total: Decimal
    notes: dict[str, Any]


class Open(TypedDict, total=False):
    total: Decimal


@pydantic_dataclass
class Checked:
    total: Decimal


def outputs(handler: Callable[..., Any], payload: str) -> list[Any]:
    """The payloads that a handler gives for a payload, as texts."""
    held = typed("m.run", handler)
    call = HandlerInvoker(held.call, held.mode)
    received = call.read(Raw(payload.encode()))
    return [
        None if frame.payload is None else bytes(frame.payload).decode()
        for frame in call.frames(received.value, view, FOREVER, received.digits)
    ]


def argument(kind: Any, payload: str) -> Any:
    """The argument that a handler of a type gets."""
    taken: list[Any] = []

    def run(value):  # type: ignore[no-untyped-def]
        taken.append(value)

    run.__annotations__ = {"value": kind}
    try:
        outputs(run, payload)
    except HandlerFailed as failure:
        raise ContractError(failure.error.message) from failure
    return taken[0]


@pytest.mark.rule("1.numbers")
@given(NUMBERS)
@pytest.mark.slow
def test_1_a_decimal_of_each_library_has_every_digit(text: str) -> None:
    order = argument(
        Order,
        f'{{"Total": {text}, "lines": [{{"price": {text}, "weight": {text}, "notes": [{text}]}}], "old": [{text}], '
        f'"rates": {{"eur": {text}, "usd": null}}, "pair": [1, {text}], "many": [{text}], "inner": {{"Total": {text}}}}}',
    )
    plain = argument(
        Plain,
        f'{{"total": {text}, "weight": {text}, "notes": [{text}], "order": {{"Total": {text}}}, "struct": {{"total": {text}}}}}',
    )
    struct = argument(Struct, f'{{"total": {text}, "weight": {text}, "notes": {{"n": {text}}}}}')
    typed_dict = argument(Typed, f'{{"total": {text}, "notes": {{"n": {text}}}}}')
    decimals = [
        *(order.total, order.lines[0].price, order.rates["eur"], order.pair[1], order.many[0], order.given),
        *(order.inner.total, plain.total, plain.order.total, plain.struct.total, struct.total, typed_dict["total"]),
        argument(Checked, f'{{"total": {text}}}').total,
        argument(Open, f'{{"total": {text}}}')["total"],
        argument(list[Decimal], f"[{text}]")[0],
        argument(dict[str, Decimal], f'{{"n": {text}}}')["n"],
        argument(Decimal | None, text),
        argument(Annotated[Decimal, Field(le=Decimal("1e999"))], text),
    ]
    floats = [
        *(order.lines[0].weight, order.lines[0].notes[0], plain.weight, plain.notes[0]),
        *(struct.weight, struct.notes["n"], typed_dict["notes"]["n"]),
    ]

    assert [each for each in decimals if type(each) is not Decimal or not are_equal(str(each), text)] == []
    assert [each for each in floats if type(each) not in (int, float) or float(each) != float(text)] == []


@pytest.mark.rule("1.numbers")
def test_1_keys_of_a_payload_that_are_decimals_have_every_digit() -> None:
    def bill(total: Decimal, order: Order, extra: dict, rest: Any):  # type: ignore[no-untyped-def, type-arg]
        assert {type(each) for each in (extra["n"], rest)} == {float}
        return {"total": str(total), "order": str(order.total)}

    given = f'{{"total": {LONG}, "order": {{"Total": 1.10}}, "extra": {{"n": {LONG}}}, "rest": {LONG}}}'
    assert outputs(bill, given) == [f'{{"total":"{LONG}","order":"1.10"}}']


def test_a_union_with_float_takes_a_float_and_one_with_text_refuses_to_round() -> None:
    class Either(BaseModel):
        either: Decimal | float | None = None
        text: str | Decimal | None = None
        first: Decimal | str | None = None

    assert type(argument(Either, f'{{"either": {LONG}}}').either) is float
    assert argument(Either, '{"text": 1.50}').text == Decimal("1.5")
    assert argument(Either, f'{{"text": "{LONG}"}}').text == LONG
    assert argument(Either, f'{{"first": {LONG}}}').first == Decimal(LONG)
    with pytest.raises(ContractError, match=r"payload\.text: 12345678901234567\.89 has more digits than a float"):
        argument(Either, f'{{"text": {LONG}}}')


def test_a_number_that_no_float_holds_is_named() -> None:
    with pytest.raises(ContractError, match=r"payload\.weight: should be a number that a double can hold; got 1000"):
        argument(Plain, f'{{"total": 1, "weight": 1{"0" * 400}, "notes": null}}')


# --- on the way out ------------------------------------------------------------------------------------------------------


def _merged(payload):  # type: ignore[no-untyped-def]
    return {**payload, "seen": True}


def _changed(payload: dict) -> dict:  # type: ignore[type-arg]
    payload["seen"] = True
    return payload


def _yielded(payload: dict) -> Iterator[dict]:  # type: ignore[type-arg]
    yield {**payload, "seen": True}


async def _later(payload):  # type: ignore[no-untyped-def]
    yield {"total": payload["total"], "seen": True}


def _typed_result(payload: dict) -> Struct:  # type: ignore[type-arg]
    return payload  # type: ignore[return-value]


@pytest.mark.rule("1.numbers.passed")
@pytest.mark.parametrize("handler", [_merged, _changed, _yielded, _later])
def test_1_a_number_that_untyped_code_passes_on_keeps_its_digits(handler: Callable[..., Any]) -> None:
    for text in (LONG, "1.10", "1e-400", "2.5", "12345678901234567890"):
        assert outputs(handler, f'{{"total": {text}}}') == [f'{{"total":{text},"seen":true}}']


@pytest.mark.rule("1.numbers.passed")
def test_1_items_of_a_fan_out_and_typed_results_keep_them_too() -> None:
    def split(payload) -> FanOut:  # type: ignore[no-untyped-def]
        return fan_out(payload["lines"], to=["price"])

    assert outputs(split, f'{{"lines": [{{"price": {LONG}}}, 1.10]}}') == [None, f'{{"price":{LONG}}}', "1.10"]
    assert outputs(_typed_result, f'{{"total": {LONG}}}') == [f'{{"total":"{LONG}","weight":0.0,"notes":null}}']


def test_an_output_that_contains_itself_is_refused_as_without_digits() -> None:
    def endless(payload):  # type: ignore[no-untyped-def]
        payload["self"] = payload
        return payload

    with pytest.raises(HandlerFailed, match="contains itself"):
        outputs(endless, f'{{"total": {LONG}}}')


@pytest.mark.rule("1.strict-json")
@pytest.mark.parametrize(
    ("given", "place"),
    [
        (lambda _: {"a": [float("nan")]}, "$.a[0]: nan"),
        (lambda _: fan_out([1, {"b": float("inf")}], to=["x"]), "items[1]: $.b: inf"),
    ],
)
def test_1_no_number_of_an_untyped_handler_is_none(given: Callable[..., Any], place: str) -> None:
    with pytest.raises(HandlerFailed) as failed:
        outputs(given, "null")
    assert place in failed.value.error.message


@pytest.mark.rule("1.strict-json")
@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity"])
def test_1_no_number_of_a_typed_handler_is_none(bad: str) -> None:
    def order(_: Any) -> Order:
        return Order.model_construct(total=Decimal(1), lines=[Line.model_construct(price=Decimal(bad))])

    def weight(_: Any) -> Line:
        return Line(price=Decimal(1), weight=float(bad))

    def notes(_: Any) -> Line:
        return Line(price=Decimal(1), notes={"a": [float(bad)]})

    def struct(_: Any) -> Struct:
        return Struct(total=Decimal(bad))

    def plain(_: Any) -> Plain:
        return Plain(Decimal(1), float(bad), [Decimal(bad)])

    def model(_: Any) -> Any:
        return {"lines": [Struct(Decimal(1), notes=[float(bad)])]}

    for handler in (order, weight, notes, struct, plain, model):
        with pytest.raises(HandlerFailed, match="form in JSON") as failed:
            outputs(handler, "null")
        assert failed.value.error.message.startswith(("result", "the handler gave a value that is not JSON: $."))
