"""protocol §6.typed.schema: the published schema, the gateway and the actor agree on each JSON value of each type."""

import dataclasses
import enum
import ipaddress
import os
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from asya.contracts.function import contract_of
from tests.doubles.typed_models import dataclass, pydantic_dataclass, pydantic_model, struct, typed_dict
from tests.doubles.verdicts import NUMBER_TEXTS, NUMBERS, SEEDS, Verdicts


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@dataclasses.dataclass
class Line:
    count: int
    at: datetime


class Stamped(msgspec.Struct, tag="stamped"):
    count: int
    at: datetime


class Plain(pydantic.BaseModel):
    count: int
    until: date | None = None


# --- one field of each type in each library


def _open(kind: Any) -> Any:
    return pydantic.create_model("Open", __config__=pydantic.ConfigDict(extra="allow"), x=(kind, ...))


LIBRARIES = {
    "pydantic": pydantic_model,
    "open": _open,
    "struct": struct,
    "dataclass": dataclass,
    "typed_dict": typed_dict,
    "pydantic_dataclass": pydantic_dataclass,
}
_PYDANTIC = ("pydantic", "open", "pydantic_dataclass")

EVERYWHERE: dict[str, Any] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "None": None,
    "Any": Any,
    "Decimal": Decimal,
    "date": date,
    "datetime": datetime,
    "time": time,
    "timedelta": timedelta,
    "UUID": UUID,
    "an enum": Color,
    "an enum of numbers": Size,
    "a Literal": Literal["a", 1],
    "a Literal of numbers": Literal[0, 1],
    "a Literal of true": Literal[True],
    "list[int]": list[int],
    "list[datetime]": list[datetime],
    "set[int]": set[int],
    "frozenset[str]": frozenset[str],
    "tuple[int, date]": tuple[int, date],
    "tuple[int, ...]": tuple[int, ...],
    "dict[str, int]": dict[str, int],
    "dict[str, timedelta]": dict[str, timedelta],
    "dict[date, int]": dict[date, int],
    "dict[datetime, int]": dict[datetime, int],
    "dict[UUID, int]": dict[UUID, int],
    "dict[Decimal, int]": dict[Decimal, int],
    "dict[int, str]": dict[int, str],
    "dict[Literal, int]": dict[Literal["a", "b"], int],
    "dict[Color, int]": dict[Color, int],
    "int | None": int | None,
    "int | str": int | str,
    "int | float": int | float,
    "datetime | None": datetime | None,
    "date | int": date | int,
    "Decimal | None": Decimal | None,
    "Color | int": Color | int,
    "list[int] | int": list[int] | int,
    "list[date | None]": list[date | None],
    "a dataclass": Line,
    "list of dataclasses": list[Line],
}
OF_PYDANTIC: dict[str, Any] = {
    "AwareDatetime": pydantic.AwareDatetime,
    "NaiveDatetime": pydantic.NaiveDatetime,
    "UUID4": pydantic.UUID4,
    "Base64Bytes": pydantic.Base64Bytes,
    "Base64UrlBytes": pydantic.Base64UrlBytes,
    "IPv4": ipaddress.IPv4Address,
    "IPv6": ipaddress.IPv6Address,
    "bytes, a text": bytes,
    "PositiveInt": pydantic.PositiveInt,
    "a constrained Decimal of numbers": Annotated[Decimal, pydantic.Field(gt=-1000)] | None,
    "a str with a pattern": Annotated[str, pydantic.Field(pattern="^[a-z]+$", max_length=3)],
    "dict of a pattern": dict[Annotated[str, pydantic.Field(pattern="^[a-z]+$")], int],
    "a model": Plain,
    "Plain | int": Plain | int,
    "pydantic date lists": Annotated[list[date], pydantic.Field(min_length=1)],
    "timedelta | None": timedelta | None,
}
OF_MSGSPEC: dict[str, Any] = {
    "aware": Annotated[datetime, msgspec.Meta(tz=True)],
    "naive": Annotated[datetime, msgspec.Meta(tz=False)],
    "aware time": Annotated[time, msgspec.Meta(tz=True)],
    "naive time": Annotated[time, msgspec.Meta(tz=False)],
    "bytes": bytes,
    "a bound": Annotated[int, msgspec.Meta(ge=0)],
    "a tagged struct": Stamped,
    "a tagged struct or a number": Stamped | int,
}
OF_RECORDS: dict[str, Any] = {"bytes": bytes, "set": set, "tuple[()]": tuple[()]}

CASES = [
    *((library, name, kind) for library in LIBRARIES for name, kind in EVERYWHERE.items()),
    *((library, name, kind) for library in _PYDANTIC for name, kind in OF_PYDANTIC.items()),
    *(("struct", name, kind) for name, kind in OF_MSGSPEC.items()),
    *((library, name, kind) for library in ("dataclass", "typed_dict") for name, kind in OF_RECORDS.items()),
]

OF_TYPES = [[case for case in CASES if case[1] == name] for name in dict.fromkeys(name for _, name, _ in CASES)]
# Each type with one library, by turns. Generated values are held against all of them.
SHOWN = CASES if os.environ.get("ASYA_FULL_SIZE") else [of[n % len(of)] for n, of in enumerate(OF_TYPES)]

# --- values that are near to those

_two = st.integers(0, 61).map("{:02d}".format)
_dates = st.builds("{:04d}-{}-{}".format, st.integers(0, 9999), st.integers(0, 13).map("{:02d}".format), _two)
_times = st.builds(
    "{}:{}{}{}".format, _two, _two, _two.map(":{}".format) | st.just(""), st.sampled_from(["", ".1", ".123456789"])
)
_offsets = st.sampled_from(["", "Z", "z", "+00:00", "-00:00", "+01:00", "+0130", "-23:59", "+24:00", "+1:00", " "])
_stamps = st.builds("{}{}{}{}".format, _dates, st.sampled_from(["T", "t", " ", ""]), _times, _offsets)
_seeds = st.sampled_from(SEEDS)
# A seed with one character replaced, inserted or left out.
_near = st.builds(
    lambda text, at, new, size: text[: (at := at % (len(text) + 1))] + new + text[at + size :],
    _seeds,
    st.integers(0, 40),
    st.sampled_from(["", "0", "9", "-", "+", ".", ":", "T", "Z", " ", "\n", "a", "٣"]),
    st.integers(0, 1),
)
TEXTS = _seeds | _near | _dates | _stamps | st.builds("{}{}".format, _times, _offsets)
_numbers = st.sampled_from(NUMBERS) | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
_leaves = TEXTS | _numbers
_lines = st.fixed_dictionaries(
    {"count": _leaves, "at": _leaves}, optional={"type": _leaves | st.just("stamped"), "until": _leaves}
)
VALUES = (
    _leaves
    | st.lists(_leaves | _lines, max_size=3)
    | st.tuples(_numbers, _dates | _seeds).map(list)
    | st.dictionaries(TEXTS, _leaves, max_size=2)
    | _lines
)


def _of_field(library: str, kind: Any) -> Verdicts:
    model = LIBRARIES[library](kind)

    def handler(order: Any) -> Any: ...

    handler.__annotations__ = {"order": model, "return": model}
    return Verdicts(contract_of(handler))


@pytest.mark.slow
@pytest.mark.rule("6.typed.schema")
@pytest.mark.parametrize(("library", "name", "kind"), SHOWN, ids=[f"{library}-{name}" for library, name, _ in SHOWN])
def test_the_published_schema_the_gateway_and_the_actor_agree(library: str, name: str, kind: Any) -> None:
    verdicts = _of_field(library, kind)
    for seed in (*SEEDS, *NUMBERS):
        for value in (
            seed,
            [seed],
            [1, seed],
            {str(seed): 1},
            {str(seed): "a"},
            {"a": seed},
            {"count": seed, "at": "2026-11-24T08:30:00Z"},
        ):
            verdicts.check({"x": value})
    verdicts.check({})
    for text in NUMBER_TEXTS:
        for value in (text, f"[{text}]", f"[1, {text}]", f'{{"a": {text}}}'):
            verdicts.check_text(f'{{"x": {value}}}')


@pytest.mark.slow
@pytest.mark.rule("6.typed.schema")
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_three_agree_on_generated_values(library: str) -> None:
    """Each value is held against all types of a library, because making it takes longer than a verdict."""
    verdicts = {name: _of_field(library, kind) for each, name, kind in CASES if each == library}

    @settings(max_examples=50)
    @given(VALUES)
    def check(value: Any) -> None:
        for name, each in verdicts.items():
            note(name)
            each.check({"x": value})

    check()
