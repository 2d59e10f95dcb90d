"""Numbers with the text that they have in JSON (`protocol §1.numbers`)."""

import copy
import json
import math
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asya.protocol.numbers import Digits, ExactNumber, json_text, read_number, rounded, whole
from asya.protocol.strict_json import decode_exact, decode_untyped, decode_value, encode_exact, encode_value
from tests.doubles.json_numbers import NUMBERS, are_equal

LONG = "12345678901234567.89"
# Documents of JSON as texts, with any white space that matters to a search for numbers.
DOCUMENTS = st.recursive(
    st.one_of(NUMBERS, NUMBERS, st.text(max_size=5).map(json.dumps)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(st.text(max_size=3), inner, max_size=4).map(
            lambda items: "{" + ",".join(f"{json.dumps(key)}:{item}" for key, item in items.items()) + "}"
        ),
    ),
    max_leaves=8,
)


def canonical(text: str) -> str:
    """The document as the mesh writes it, with the texts of its numbers."""
    return bytes(encode_exact(decode_exact(text.encode()))).decode()


def numbers_of(text: str) -> list[str]:
    found: list[str] = []
    json.loads(text, parse_float=found.append, parse_int=found.append)
    return found


def classes_of(value: Any) -> set[type]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {type(value)}.union(*(classes_of(item) for item in items))


@pytest.mark.rule("1.numbers")
@given(DOCUMENTS)
@pytest.mark.slow
def test_1_what_is_read_exactly_is_written_with_its_digits(text: str) -> None:
    value = decode_exact(text.encode())

    assert value == decode_value(text.encode())
    for written in (
        encode_value(value),
        encode_exact(value),
        json_text(value),
        json_text(value, separators=(",", ":")),
    ):
        read = numbers_of(bytes(written).decode() if not isinstance(written, str) else written)
        assert all(are_equal(new, old) for new, old in zip(read, numbers_of(text), strict=True))
    assert ExactNumber not in classes_of(rounded(value))
    assert rounded(value) == value


@pytest.mark.rule("1.numbers.passed")
@given(DOCUMENTS)
@pytest.mark.slow
def test_1_untyped_code_gets_plain_numbers_which_it_passes_on_with_their_digits(text: str) -> None:
    value, digits = decode_untyped(text.encode())

    assert classes_of(value) <= {dict, list, str, int, float}
    passed = {"moved": [value], "again": copy.deepcopy(value)}
    written = encode_value(passed if digits is None else digits.restored(passed))
    old = numbers_of(text)
    assert all(are_equal(new, known) for new, known in zip(numbers_of(bytes(written).decode()), old * 2, strict=True))


@pytest.mark.rule("1.numbers.passed")
@given(st.one_of(DOCUMENTS, DOCUMENTS.map(canonical), NUMBERS), st.booleans())
@example("[-0, -0.0, 0.0, 5e-324, 1e-400, 1.5e-320, 0.00001, 1e16, 1E5, 123456789.1234567, 1.0, 1.10, 100]", False)
@example('{"1.10":"2.50","e":["7e5","12345678901234567.89"],"n":1.5}', False)
def test_1_a_look_at_the_text_finds_what_reading_each_number_finds(text: str, is_canonical: bool) -> None:
    raw = canonical(text).encode() if is_canonical else text.encode()
    digits = Digits()
    each_read = msgspec.json.Decoder[Any](float_hook=digits.read).decode(raw)

    value, found = decode_untyped(raw)

    assert repr(value) == repr(each_read)
    written = encode_value(value if found is None else found.restored(value))
    assert bytes(written) == bytes(encode_value(digits.restored(each_read)))


@pytest.mark.rule("1.numbers.passed")
def test_1_a_number_that_code_computes_is_its_own() -> None:
    value, digits = decode_untyped(b'{"price": 1.10, "total": 2.5}')

    assert digits is not None
    given = {"doubled": value["price"] * 2, "price": value["price"], "total": value["total"] + 0.5}  # type: ignore[index]
    assert bytes(encode_value(digits.restored(given))) == b'{"doubled":2.2,"price":1.10,"total":3.0}'
    untouched = {"n": [1, (2.5, "x")]}
    assert digits.restored(untouched) is not given
    assert digits.restored(untouched)["n"] is untouched["n"]  # type: ignore[index]


def test_a_float_without_digits_of_its_own_needs_no_note() -> None:
    assert decode_untyped(b'{"a": 5.0, "b": [9.5, 12.75], "c": 12345678901234567, "d": "1.2.3"}')[1] is None
    assert Digits().restored({"a": 1.5}) == {"a": 1.5}


@pytest.mark.parametrize("text", ["1e400", "[1.50, -1E999]", '{"a": 1e400}'])
def test_a_number_beyond_floats_cannot_be_read(text: str) -> None:
    for read in (decode_value, decode_exact, decode_untyped):
        with pytest.raises(ValueError, match="Number out of range"):
            read(text.encode())


def test_an_exact_number_is_a_float_that_copies_keep() -> None:
    number = read_number(LONG)

    assert (str(number), repr(number), number == 12345678901234567.89) == (LONG, LONG, True)
    assert [str(each) for each in (copy.deepcopy(number), pickle.loads(pickle.dumps(number)))] == [LONG, LONG]
    assert type(read_number("2.5")) is float
    assert math.isinf(read_number("1e400"))


@pytest.mark.rule("1.numbers")
@pytest.mark.parametrize("text", ["1e-999999999", "-7.5E-99999999999999999999", "1e-400", "9007199254740993.5"])
def test_a_number_that_its_float_alone_makes_whole_is_not(text: str) -> None:
    number = ExactNumber(text)

    assert number.is_integer()
    assert whole(number) is number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.0e99999999999999999999", 0), ("9007199254740993.0", 2**53 + 1), ("1" + "0" * 400 + "e-400", 1)],
)
def test_a_whole_number_in_any_form_is_an_int(text: str, number: int) -> None:
    assert (whole(ExactNumber(text)), type(whole(ExactNumber(text)))) == (number, int)
