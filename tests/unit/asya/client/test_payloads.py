"""What programs send and get has the forms of typed actors."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given

from asya.client.payloads import decoded, encoded
from asya.contracts.errors import ContractError
from tests.doubles.json_numbers import NUMBERS, are_equal


@dataclass
class Order:
    id: str
    total: Decimal
    placed: date
    tags: set[str]


class Line(msgspec.Struct):
    sku: str
    price: Decimal


class Customer(pydantic.BaseModel):
    name: str
    since: datetime


ORDER = Order("7", Decimal("9.50"), date(2026, 1, 2), {"b", "a"})
LINE = Line("tea", Decimal("2.10"))
CUSTOMER = Customer(name="Åse", since=datetime(2026, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (ORDER, '{"id":"7","total":"9.50","placed":"2026-01-02","tags":["a","b"]}'),
        (LINE, '{"sku":"tea","price":"2.10"}'),
        (CUSTOMER, '{"name":"\\u00c5se","since":"2026-01-02T00:00:00Z"}'),
        ({"lines": [LINE], "on": date(2026, 1, 2)}, '{"lines":[{"sku":"tea","price":"2.10"}],"on":"2026-01-02"}'),
        ([1, None, "x"], '[1,null,"x"]'),
        (None, "null"),
    ],
)
def test_models_and_plain_values_become_json(payload: object, text: str) -> None:
    assert encoded(payload).decode() == text


@pytest.mark.parametrize("model", [ORDER, LINE, CUSTOMER])
def test_a_model_comes_back_as_it_went(model: Any) -> None:
    assert decoded(encoded(model), type(model)) == model


def test_a_type_may_be_any_annotation() -> None:
    assert decoded(b'[{"sku":"tea","price":"2.10"}]', list[Line]) == [LINE]
    assert decoded(b'{"sku":"tea","price":"2.10"}', None) == {"sku": "tea", "price": "2.10"}


@pytest.mark.parametrize(
    ("payload", "problem"),
    [({"rate": float("nan")}, "nan"), ({"a": {1, 2}}, "set"), (object(), "object"), ({"a": b"x"}, "bytes")],
)
def test_a_value_without_a_form_in_json_is_refused(payload: object, problem: str) -> None:
    with pytest.raises(ContractError, match=f"payload: .*{problem}"):
        encoded(payload)


def test_a_result_that_does_not_fit_names_the_field() -> None:
    with pytest.raises(ContractError, match=r"^result\.total: should be a decimal"):
        decoded(b'{"id":"7","total":"much","placed":"2026-01-02","tags":[]}', Order)


@pytest.mark.rule("1.numbers")
@given(NUMBERS)
@pytest.mark.slow
def test_1_a_number_of_a_result_has_every_digit_of_a_decimal(text: str) -> None:
    assert are_equal(str(decoded(f'{{"sku": "tea", "price": {text}}}'.encode(), Line).price), text)
    assert decoded(f'{{"price": {text}}}'.encode(), None) == {"price": json.loads(text)}
