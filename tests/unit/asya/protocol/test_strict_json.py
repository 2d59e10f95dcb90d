"""protocol §1, strict JSON: a value arrives equal, or its type and path are refused."""

import dataclasses
import datetime
import decimal
import enum
import json
import math
import uuid
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.strict_json import NotJsonError, decode_value, encode_value
from tests.unit.asya.protocol.test_codec import JSON

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.text(st.characters(codec=None))
    | st.binary(max_size=4)
    | st.dates()
    | st.decimals()
    | st.uuids(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.booleans() | st.none(), inner, max_size=3)
        | st.sets(st.integers(), max_size=2)
    ),
    max_leaves=8,
)


def as_lists(value: Any) -> Any:
    """The value with tuples as lists, as in JSON."""
    if isinstance(value, list | tuple):
        return [as_lists(item) for item in value]
    return {key: as_lists(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.rule("1.strict-json")
@given(ANYTHING)
def test_any_value_arrives_equal_or_is_refused(value: Any) -> None:
    try:
        text = encode_value(value)
    except NotJsonError:
        return
    assert bytes(text).isascii()
    assert decode_value(text) == json.loads(bytes(text)) == as_lists(value)


@pytest.mark.rule("1.payload")
@given(JSON)
@pytest.mark.slow
def test_every_json_value_is_taken(value: Any) -> None:
    assert decode_value(encode_value(value)) == value


class Colour(enum.Enum):
    RED = "red"


class Level(enum.StrEnum):
    HIGH = "high"


class Kind(str, enum.Enum):  # noqa: UP042 - its str() is not its text, unlike that of a StrEnum
    BIG = "big"


class Number(enum.IntEnum):
    TWO = 2


@dataclasses.dataclass
class Point:
    x: int


Pair = namedtuple("Pair", "left right")


class Nothing(dict[str, int]):
    """A mapping that raises when it is read."""

    def items(self) -> Any:
        raise ValueError("unreadable")


REFUSED: list[tuple[Any, str]] = [
    (math.nan, "$: nan"),
    ({"a": [1, math.inf]}, "$.a[1]: inf"),
    ({1: "a"}, "$: the key 1 is of type int"),
    ({"a": {None: 1}}, "$.a: the key None is of type NoneType"),
    ({"a b": {True: 1}}, '$["a b"]: the key True is of type bool'),
    (b"bytes", "$: a value of type bytes"),
    ([{1, 2}], "$[0]: a value of type set"),
    ({"at": datetime.datetime(2026, 1, 1)}, "$.at: a value of type datetime.datetime"),  # noqa: DTZ001
    (decimal.Decimal("1.5"), "decimal.Decimal"),
    (uuid.UUID(int=1), "uuid.UUID"),
    (Colour.RED, "Colour"),
    (Point(1), "Point"),
    ({"n": np.int64(3)}, "$.n: a value of type numpy.int64"),
    ({"mean": np.array([1, 2])}, "$.mean: a value of type numpy.ndarray has no form in JSON; return its tolist()"),
    ("\ud800", "half a surrogate pair"),
    ({"\udfff": 1}, "half a surrogate pair"),
    (10**5000, "digits"),
    (object(), "$: a value of type object"),
    (lambda: None, "function"),
]


@pytest.mark.rule("1.strict-json", "6.not-json")
@pytest.mark.parametrize(("value", "problem"), REFUSED, ids=[str(index) for index in range(len(REFUSED))])
def test_what_json_cannot_hold_is_refused_by_type_and_path(value: Any, problem: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        encode_value(value)
    assert problem in str(caught.value)


TAKEN: list[tuple[Any, Any]] = [
    ((1, (2, 3)), [1, [2, 3]]),
    (Pair(1, "x"), [1, "x"]),
    (OrderedDict(a=1), {"a": 1}),
    (defaultdict(int, a=(1,)), {"a": [1]}),
    (Level.HIGH, "high"),
    ((Level.HIGH, Kind.BIG, Number.TWO), ["high", "big", 2]),
    ({Kind.BIG: (1,)}, {"big": [1]}),
    (2**70, 2**70),
    (np.float64(1.5), 1.5),
    ("\uffff\x00\u2028𝄞", "\uffff\x00\u2028𝄞"),
    ({"error": "x", "message": "y"}, {"error": "x", "message": "y"}),
    ({}, {}),
    ([], []),
    (0, 0),
    ("", ""),
    (False, False),
    (None, None),
]


@pytest.mark.parametrize(("value", "arrives"), TAKEN, ids=[str(index) for index in range(len(TAKEN))])
def test_values_arrive_as_their_json(value: Any, arrives: Any) -> None:
    text = bytes(encode_value(value))
    assert json.loads(text) == arrives
    assert text.isascii()


def test_values_nested_too_deeply_or_in_themselves_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    circle: list[Any] = []
    circle.append(circle)
    for value in (deep, circle):
        with pytest.raises(NotJsonError, match="nested too deeply"):
            encode_value(value)
    while deep:  # taken apart by hand: the interpreter would do it by recursion
        deep = deep[0]


@pytest.mark.parametrize("text", [b"1e999", b"nope", b"[" * 100_000, b'"\\ud800"', b""])
def test_text_that_no_value_can_hold_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - in whatever words
        decode_value(text)
