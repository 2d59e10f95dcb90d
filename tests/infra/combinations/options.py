"""The options of the mesh file with values of each, derived from its model: a new key is an option without an edit here.

A type gives the values that are not the default: the other ones of a flag or a `Literal`, and both ends of a number, a duration or
a size. Where a bound is missing, the values are the least and the largest that the loader accepts. `samples` has texts and lists.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta, Struct
from msgspec.structs import FieldInfo
from pydantic import WithJsonSchema

from asya.protocol.mesh_keys import Form
from asya.registry import PRODUCT
from asya_infra.mesh_file.capability_model import mesh_model
from asya_infra.mesh_file.forms import DURATION_SCHEMA, SIZE_SCHEMA, format_duration
from asya_infra.mesh_file.sections import keys_of
from tests.infra.combinations.samples import ENTRIES, SAMPLES, SKELETON

Path = tuple[str, ...]
"""The keys that lead to an option; `*` stands for each entry of a mapping, such as each actor."""
ANY = "*"

_DURATIONS = ("1ms", "1s", "2s", "1m", "1h", "1d", "7d", "30d", "90d", "366d", "3650d")
_SIZES = ("1k", "1m", "5m", "10m", "128m", "512m", "1g", "10g", "20g", "200g", "1000g")
_NUMBERS = (0, 1, 2, 10, 100, 1000, 10_000, 1_000_000)


@dataclass(frozen=True)
class Option:
    """A key of the mesh file.

    Attributes:
        levels: its values, none of them the default.
        is_ladder: whether the type has no bounds, so that the loader decides which of the levels are the ends.
        is_amount: whether the last level is the largest one.
    """

    path: Path
    levels: tuple[Any, ...]
    is_ladder: bool = False
    is_amount: bool = False

    @property
    def name(self) -> str:
        """The key as messages have it."""
        return ".".join(self.path)


def declared() -> list[Option]:
    """Return the options of the mesh file, each after the section that it is in."""
    return list(_options(mesh_model(PRODUCT), ()))


def _options(section: type[Struct], place: Path) -> Iterator[Option]:
    for key, field in keys_of(section).items():
        path = (*place, key)
        if path not in SKELETON:
            yield from _option(path, field)
        else:
            for kind in _sections(_unwrapped(field.type)[0]):
                yield from _options(kind, path)


def _option(path: Path, field: FieldInfo) -> Iterator[Option]:
    kinds, marks = _unwrapped(field.type)
    sections = _sections(kinds)
    entry = next((_entry(kind) for kind in kinds if _entry(kind) is not None), None)
    if path in SAMPLES:
        yield Option(path, SAMPLES[path])
        for section in sections:
            yield from _options(section, path)
    elif entry is not None:
        for name, value in ENTRIES[path].items():
            yield Option((*path, name), (value,))
        yield from _options(entry, (*path, ANY))
    elif sections:
        if field.default is None:
            # Without required keys, an empty section is one that is there.
            yield Option(path, ({},))
        yield from _options(sections[0], path)
    else:
        levels, is_ladder = _levels(kinds, marks, field.default)
        yield Option(path, levels, is_ladder, is_amount=is_ladder or kinds[0] in (int, float))


def _sections(kinds: list[Any]) -> list[type[Struct]]:
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Struct)]


def _entry(kind: Any) -> type[Struct] | None:
    """Return the section of the entries of a mapping with free keys."""
    if get_origin(kind) is not dict:
        return None
    value = get_args(kind)[1]
    return value if isinstance(value, type) and issubclass(value, Struct) else None


def _unwrapped(kind: Any) -> tuple[list[Any], list[Any]]:
    """Return the kinds of a type without None, and its marks."""
    if get_origin(kind) is Annotated:
        kinds, marks = _unwrapped(get_args(kind)[0])
        return kinds, [*marks, *get_args(kind)[1:]]
    if get_origin(kind) in (Union, UnionType):
        parts = [_unwrapped(each) for each in get_args(kind) if each is not type(None)]
        return [kind for kinds, _ in parts for kind in kinds], [mark for _, marks in parts for mark in marks]
    return [kind], []


def _levels(kinds: list[Any], marks: list[Any], default: Any) -> tuple[tuple[Any, ...], bool]:
    """Return values of a type, and whether they are a ladder without bounds."""
    if kinds == [bool]:
        return tuple(each for each in (True, False) if each is not default), False
    if get_origin(kinds[0]) is Literal:
        return tuple(each for each in get_args(kinds[0]) if each != default), False
    if (shares := _shares(marks)) is not None:
        return shares, False
    none = ("none",) if _has_none(marks) else ()
    low, high = _bounds(marks)
    is_duration, is_size = _has(marks, "duration", DURATION_SCHEMA), _has(marks, "bytes", SIZE_SCHEMA)
    is_number = kinds[0] in (int, float)
    if low is not None and high is not None and is_number and not is_size:
        form = format_duration if is_duration else int
        return tuple(dict.fromkeys((form(low), form(high)))), False
    if is_duration or _has(marks, "lifetime", None):
        return (*none, *_DURATIONS), True
    if is_size:
        return _SIZES, True
    if is_number:
        return (*none, *_NUMBERS), True
    return ("text",), False


def _has_none(marks: list[Any]) -> bool:
    """Whether `none` is a value: no alarm."""
    return any(isinstance(mark, WithJsonSchema) and "'none'" in str(mark.json_schema) for mark in marks)


def _shares(marks: list[Any]) -> tuple[str, ...] | None:
    """Return values of an alarm's threshold or a share, which have schemas of their own; None for other types."""
    for mark in marks:
        if isinstance(mark, WithJsonSchema) and "%" in str(mark.json_schema):
            return ("1%", "50%", "none") if _has_none(marks) else ("1%",)
    return None


def _has(marks: list[Any], form: str, schema: Mapping[str, Any] | None) -> bool:
    return any(
        (isinstance(mark, Form) and mark.name == form)
        or (schema is not None and isinstance(mark, WithJsonSchema) and str(schema["pattern"]) in str(mark.json_schema))
        for mark in marks
    )


def _bounds(marks: list[Any]) -> tuple[float | None, float | None]:
    found = [mark for mark in marks if isinstance(mark, Meta)]
    low = next((mark.ge for mark in found if mark.ge is not None), None)
    high = next((mark.le for mark in found if mark.le is not None), None)
    return low, high
