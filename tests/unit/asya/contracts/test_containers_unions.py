"""protocol §6, typed contracts: the class of a value decides on the way out, and the best fit on the way in."""

import dataclasses
import itertools
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypedDict, Union

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.contracts.annotations import codec_of
from asya.contracts.errors import ContractError
from asya.contracts.function import contract_of

Fields = dict[str, Any]


def _annotations(fields: Fields) -> dict[str, Any]:
    return {name: each[0] if isinstance(each, tuple) else each for name, each in fields.items()}


def _defaults(fields: Fields) -> dict[str, Any]:
    return {name: each[1] for name, each in fields.items() if isinstance(each, tuple)}


def _pydantic(name: str, fields: Fields) -> Any:
    return pydantic.create_model(
        name, **{key: each if isinstance(each, tuple) else (each, ...) for key, each in fields.items()}
    )


def _struct(name: str, fields: Fields) -> Any:
    return msgspec.defstruct(
        name, [(key, *(each if isinstance(each, tuple) else (each,))) for key, each in fields.items()]
    )


def _dataclass(name: str, fields: Fields) -> Any:
    return dataclasses.make_dataclass(
        name,
        [
            (key, each[0], dataclasses.field(default=each[1])) if isinstance(each, tuple) else (key, each)
            for key, each in fields.items()
        ],
    )


LIBRARIES = [_pydantic, _struct, _dataclass]
Library = Callable[[str, Fields], Any]


class Options(NamedTuple):
    """Options of a union, and the fields of an instance of the last one."""

    options: tuple[Fields, ...]
    values: dict[str, Any]


OPTIONS = [
    Options(({"order": str}, {"order": str, "why": str}), {"order": "7", "why": "no stock"}),
    Options(({"order": str}, {"order": str, "why": (str, "")}), {"order": "7", "why": ""}),
    Options(({"order": str, "why": (str, "")}, {"order": str}), {"order": "7"}),
    Options(
        ({"order": str, "note": (str | None, None)}, {"order": str, "why": (str | None, None)}),
        {"order": "7", "why": "x"},
    ),
    Options(({}, {"a": (int, 0)}), {"a": 5}),
    Options(({"a": (int, 0)}, {"b": (int, 0)}, {"c": (int, 0)}), {"c": 5}),
    Options(({"kind": (Literal["a"], "a")}, {"kind": (Literal["b"], "b")}), {"kind": "b"}),
    Options(({"total": int}, {"total": Decimal}), {"total": Decimal("1.50")}),
    Options(({"at": str}, {"at": str, "day": date}), {"at": "x", "day": date(2026, 2, 28)}),
]


@pytest.mark.rule("6.typed.union")
@pytest.mark.parametrize("places", [(0, 1, 2), (2, 1, 0)])
@pytest.mark.parametrize("libraries", [*itertools.product(LIBRARIES, LIBRARIES)])
@pytest.mark.parametrize("case", OPTIONS)
def test_an_instance_leaves_whole_and_arrives_as_its_class(
    case: Options, libraries: tuple[Library, Library], places: tuple[int, ...]
) -> None:
    first, last = libraries
    kinds = [first(f"Option{number}", fields) for number, fields in enumerate(case.options[:-1])]
    kinds.append(last("Last", case.options[-1]))
    order = [kinds[place] for place in places if place < len(kinds)]
    codec = codec_of(Union[tuple(order)])  # noqa: UP007 - the options are not known here
    instance = kinds[-1](**case.values)
    dumped = codec.dump(instance, "result")
    assert dumped == codec_of(kinds[-1]).dump(instance, "result")
    assert dumped.keys() == case.values.keys()
    loaded = codec.load(dumped, "payload")
    assert type(loaded) is kinds[-1]
    assert loaded == instance


@pytest.mark.rule("6.typed.union")
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_dict_in_place_of_an_instance_keeps_all_its_keys(library: Library) -> None:
    accepted, rejected = library("Accepted", {"order": str}), library("Rejected", {"order": str, "why": str})
    codec = codec_of(accepted | rejected)
    assert codec.dump({"order": "7", "why": "no stock"}, "result") == {"order": "7", "why": "no stock"}
    assert codec.dump({"order": "7"}, "result") == {"order": "7"}
    with pytest.raises(ContractError, match="fits none of its types"):
        codec.dump({"why": "no stock"}, "result")


@pytest.mark.rule("6.typed.union")
def test_typed_dicts_keep_all_their_keys() -> None:
    class Accepted(TypedDict):
        order: str

    class Rejected(TypedDict):
        order: str
        why: str

    codec = codec_of(Accepted | Rejected)
    for value in ({"order": "7", "why": "no stock"}, {"order": "7"}):
        assert codec.load(value, "payload") == codec.dump(value, "result") == value


@pytest.mark.rule("6.typed.union")
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "container", [lambda kind: list[kind], lambda kind: dict[str, kind], lambda kind: tuple[kind, ...]]
)
def test_options_within_collections_and_fields_are_told_apart(library: Library, container: Any) -> None:
    accepted, rejected = library("Accepted", {"order": str}), library("Rejected", {"order": str, "why": str})
    made = {"list": lambda each: [each], "dict": lambda each: {"a": each}, "tuple": lambda each: (each,)}
    kind = container(accepted | rejected)
    value = made[kind.__origin__.__name__](rejected(order="7", why="no stock"))
    assert codec_of(kind).load(codec_of(kind).dump(value, "result"), "payload") == value
    either = container(accepted) | container(rejected)
    assert codec_of(either).load(codec_of(either).dump(value, "result"), "payload") == value
    owner = dataclasses.make_dataclass("Owner", [("inner", kind)])(value)
    codec = codec_of(type(owner))
    assert codec.load(codec.dump(owner, "result"), "payload") == owner


@dataclasses.dataclass
class Base:
    order: str


@dataclasses.dataclass
class Extended(Base):
    why: str


@dataclasses.dataclass
class Unlisted(Extended):
    more: str = ""


@pytest.mark.rule("6.typed.union")
@pytest.mark.parametrize("kind", [Base | Extended, Extended | Base])
def test_the_nearest_class_decides(kind: Any) -> None:
    codec = codec_of(kind)
    assert codec.dump(Base("7"), "result") == {"order": "7"}
    assert codec.dump(Extended("7", "x"), "result") == {"order": "7", "why": "x"}
    assert codec.dump(Unlisted("7", "x", "y"), "result") == {"order": "7", "why": "x"}


@pytest.mark.rule("6.typed.union")
def test_an_instance_that_does_not_fit_its_class_is_refused_and_not_taken_for_another() -> None:
    with pytest.raises(ContractError, match=r"^result\.why: should be a string; got 5"):
        codec_of(Base | Extended).dump(Extended("7", 5), "result")  # type: ignore[arg-type]


@pytest.mark.rule("6.typed.union")
@given(
    st.sampled_from(
        [
            int | float,
            float | int,
            int | str | None,
            str | date,
            date | str,
            Decimal | float,
            Decimal | str,
            bool | int,
            bytes | str,
        ]
    ),
    st.one_of(
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
        st.booleans(),
        st.none(),
        st.dates(),
        st.binary(),
    ),
)
def test_a_scalar_leaves_as_its_own_class_says(kind: Any, value: Any) -> None:
    if type(value) not in kind.__args__:
        return
    assert codec_of(kind).dump(value, "result") == codec_of(type(value)).dump(value, "result")


@pytest.mark.rule("6.typed.union")
def test_contracts_name_the_options_that_are_classes() -> None:
    def handler(payload: Base | None) -> Base | Extended | int: ...  # type: ignore[empty-body]

    assert [[each["title"] for each in options] for options in contract_of(handler).unions()] == [["Base", "Extended"]]
