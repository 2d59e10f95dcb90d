"""Gives each key of the mesh file the type that it has in the model, and the keys that take text the text of the file.

`3.10` stays `3.10`, and not the number 3.1 that YAML makes of it. JSON, such as the payload of a trigger, has the number of
the file with all its digits (`protocol §1.numbers`).
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, get_args, get_origin

from msgspec import Struct

from asya.protocol.mesh_keys import Form
from asya.protocol.numbers import read_number
from asya.protocol.pause import PauseField
from asya_infra.mesh_file.forms import OneOrMore
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.sections import keys_of
from asya_infra.mesh_file.source import Location, Source

_NO_VALUES: Mapping[str, Any] = {}
# What a question for text offers is text.
_OFFERED = {"default": str | None, "options": tuple[str, ...] | None}


def type_below(kind: Any, part: str | int, values: Mapping[str, Any] = _NO_VALUES) -> Any:
    """Return the type of a key or an item in a value of a type; None for an unknown key, and in an input schema.

    Args:
        kind: the type of the mapping or the list.
        part: the key or the index.
        values: the mapping, because a key may decide on the type of another.
    """
    section = _section(kind)
    if section is not None:
        if section is PauseField and values.get("type") == "string" and part in _OFFERED:
            return _OFFERED[str(part)]
        if issubclass(section, MeshFile) and part == "stages":
            return dict[str, section]  # type: ignore[valid-type]  # a stage has the keys of the mesh file
        key = keys_of(section).get(str(part))
        return None if key is None else key.type
    for option in _options(kind):
        if get_origin(option) in (dict, tuple):
            return get_args(option)[get_origin(option) is dict]
        if option is object:
            return kind  # JSON at any depth
    return None


def keys_at(location: Location, model: type[MeshFile] = MeshFile) -> list[str]:
    """Return the keys that a model has at a location."""
    kind: Any = model
    for part in location:
        kind = type_below(kind, part)
    section = _section(kind)
    return list(keys_of(section)) if section else []


def takes_text(kind: Any, value: bool | float | None) -> bool:
    """Return whether a value that YAML takes for no text is text to this type, such as 3.10 for an environment variable.

    No value at all (`null`) is no text.
    """
    if value is None:
        return False
    if isinstance(value, bool) and OneOrMore(or_flag=True) in _metadata(kind):
        return False
    return any(_is_text(option) for option in _options(kind))


def keeps_digits(kind: Any) -> bool:
    """Return whether a value of this type is JSON whose numbers keep the digits that they have in the file."""
    return object in _options(kind) and Form("floats") not in _metadata(kind)


def _is_text(option: Any) -> bool:
    """Whether an option is text, one of some texts, or a list of them, whose only value needs no brackets."""
    if get_origin(option) is tuple:
        return any(_is_text(item) for item in _options(get_args(option)[0]))
    return option is str or isinstance(option, str)


def _section(kind: Any) -> type[Struct] | None:
    for option in _options(kind):
        if isinstance(option, type) and issubclass(option, Struct):
            return option
    return None


def _metadata(kind: Any) -> tuple[Any, ...]:
    return get_args(kind)[1:] if get_origin(kind) is Annotated else ()


def _options(kind: Any) -> list[Any]:
    """Return the types that an annotation allows: the members of a union, without `Annotated`."""
    if get_origin(kind) is Annotated:
        return _options(get_args(kind)[0])
    if get_origin(kind) in (dict, tuple) or not get_args(kind):
        return [kind]
    return [option for argument in get_args(kind) for option in _options(argument)]


_DECIMAL = re.compile(r"([-+]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?([eE][-+]?[0-9]+)?", re.ASCII)
_TOO_LARGE = "is too large for a number; put it in quotes if it is text"
_TOO_LONG = "has more digits than a number keeps, which would make it {}; write it so, or in quotes if it is text"


class WrittenText:
    """Replaces values by what is written, and finds the numbers whose value is not what is written.

    Attributes:
        problems: the locations of these numbers, each with what is wrong.
    """

    def __init__(self, source: Source, model: type[MeshFile] = MeshFile) -> None:
        self._source, self._model = source, model
        self.problems: dict[Location, str] = {}

    def restore(self, values: dict[str, Any]) -> None:
        """Replace the values of all keys that take text, in place."""
        self._restore(values, self._model, ())

    def _restore(self, value: Any, kind: Any, location: Location) -> Any:
        if isinstance(value, dict):
            for key, inner in value.items():
                value[key] = self._restore(inner, type_below(kind, key, value), (*location, key))
        elif isinstance(value, list):
            value[:] = [
                self._restore(inner, type_below(kind, index), (*location, index)) for index, inner in enumerate(value)
            ]
        elif isinstance(value, bool | int | float) and takes_text(kind, value):
            return self._source.written(location) or value
        elif isinstance(value, float):
            return self._number(value, kind, location)
        return value

    def _number(self, value: float, kind: Any, location: Location) -> float:
        written = self._source.written(location)
        if math.isfinite(value) and keeps_digits(kind) and (text := _json_text(written or "")) is not None:
            return read_number(text)
        self._check(value, location)
        return value

    def _check(self, value: float, location: Location) -> None:
        if not math.isfinite(value):
            self.problems[location] = _TOO_LARGE
        elif (written := self._source.written(location)) is not None and not _is_kept(value, written):
            self.problems[location] = _TOO_LONG.format(value)


def _json_text(written: str) -> str | None:
    """Return a number of YAML as JSON has it: `+.50` is 0.50. None for a form that is none of YAML 1.2's core schema."""
    found = _DECIMAL.fullmatch(written)
    if found is None:
        return None
    sign, whole, fraction, exponent = found.groups(default="")
    point = f".{fraction}" if fraction else "" if exponent else ".0"
    return f"{sign.strip('+')}{whole.lstrip('0') or '0'}{point}{exponent}"


def _is_kept(value: float, written: str) -> bool:
    """Return whether the shortest text of a number has the value of the written one."""
    try:
        return Decimal(written) == Decimal(repr(value))
    except InvalidOperation:
        return False  # an exponent beyond those of decimals
