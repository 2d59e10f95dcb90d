"""The options of the mesh file with values of each, derived from its model: a new key is an option without an edit here.

A type gives the values that are not the default: the other ones of a flag or a `Literal`, and both ends of a number, a duration or
a size. Where a bound is missing, the values are the least and the largest that the loader accepts. `samples` has texts and lists.
An actor also has the default of a flag or a `Literal` that `defaults` may change, because it takes that change back.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Ladder:
    """Amounts whose bounds the loader alone knows.

    Attributes:
        rungs: amounts from small to large, as multiples of the least step.
        write: returns a multiple of the step as the mesh file has it.
        is_bounded: whether the first and the last rung are the next ones beyond the bounds of the type.
    """

    rungs: tuple[int, ...]
    write: Callable[[int], Any]
    is_bounded: bool = False


def _size(kilobytes: int) -> str:
    for factor, unit in ((1024**2, "g"), (1024, "m")):
        if kilobytes % factor == 0:
            return f"{kilobytes // factor}{unit}"
    return f"{kilobytes}k"


_SECOND, _DAY = 1000, 86_400_000
_DURATIONS = Ladder(
    (*(1, _SECOND, 2 * _SECOND, 60 * _SECOND, 3600 * _SECOND), *(days * _DAY for days in (1, 7, 30, 90, 366, 3650))),
    lambda step: format_duration(step / _SECOND),
)
_MEGABYTES = Ladder((1, 5, 10, 128, 512, 1024, 10_240, 20_480, 204_800, 1_024_000), lambda step: _size(step * 1024))
_KILOBYTES = Ladder((1, *(rung * 1024 for rung in _MEGABYTES.rungs)), _size)
_NUMBERS = Ladder((0, 1, 2, 10, 100, 1000, 10_000, 1_000_000), int)


@dataclass(frozen=True)
class Option:
    """A key of the mesh file.

    Attributes:
        levels: its values, none of them the default.
        ladder: further values, of which the loader decides the ends, because the type has no bounds.
        is_amount: whether the last level is the largest one.
        default: the value that the levels leave out of a flag or a `Literal`.
        beyond: the next values below the least one and above the largest one, where the loader has such bounds.
    """

    path: Path
    levels: tuple[Any, ...]
    ladder: Ladder | None = None
    is_amount: bool = False
    default: Any = None
    beyond: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """The key as messages have it."""
        return ".".join(self.path)


def declared() -> list[Option]:
    """Return the options of the mesh file, each after the section that it is in."""
    found = list(_options(mesh_model(PRODUCT), ()))
    shared = {("actors", ANY, *option.path[1:]) for option in found if option.path[0] == "defaults"}
    return [
        replace(option, levels=(*option.levels, option.default))
        if option.path in shared and option.default is not None
        else option
        for option in found
    ]


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
        yield _plain(path, kinds, marks, field.default)


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


def _plain(path: Path, kinds: list[Any], marks: list[Any], default: Any) -> Option:
    """Return an option whose type gives its values."""
    choices = (True, False) if kinds == [bool] else get_args(kinds[0]) if get_origin(kinds[0]) is Literal else ()
    if choices:
        return Option(path, tuple(each for each in choices if each != default), default=default)
    if (shares := _shares(marks)) is not None:
        return Option(path, shares)
    none = ("none",) if _has_none(marks) else ()
    low, high = _bounds(marks)
    is_duration, is_number = _has(marks, "duration", DURATION_SCHEMA), kinds[0] in (int, float)
    is_bytes, is_size = _has(marks, "bytes", None), _has(marks, "", SIZE_SCHEMA)
    ladder, steps = (
        (_DURATIONS, _SECOND)
        if is_duration or _has(marks, "lifetime", None)
        else (_KILOBYTES, 1 / 1024)
        if is_bytes
        else (_MEGABYTES if is_size else _NUMBERS, 1)
    )
    if not is_number and ladder is _NUMBERS:
        return Option(path, ("text",))
    if low is not None and high is not None:
        least, most = round(low * steps), round(high * steps)
        ladder = replace(ladder, rungs=(least - 1, least, most, most + 1), is_bounded=True)
    return Option(path, none, ladder, is_amount=True)


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
