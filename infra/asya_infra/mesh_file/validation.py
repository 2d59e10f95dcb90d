"""Validates the plain values of a mesh file against the model, and reports each problem at its line.

Each key has the type of the model, and a key that takes text has the text of the file: `3.10` stays `3.10`, and not the number
3.1 that YAML makes of it. JSON, such as the payload of a trigger, has the number of the file with all its digits
(`protocol §1.numbers`).
"""

import copy
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from msgspec import Struct
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from asya.protocol.mesh_keys import Form
from asya.protocol.numbers import read_number
from asya.protocol.pause import PauseField
from asya_infra.mesh_file.capabilities import NamedCapabilities, named_capabilities
from asya_infra.mesh_file.capability_model import mesh_model, settings_model
from asya_infra.mesh_file.forms import OneOrMore, format_duration
from asya_infra.mesh_file.legacy import upgrade
from asya_infra.mesh_file.mesh_model import SOURCES, MeshFile
from asya_infra.mesh_file.sections import keys_of, read_section
from asya_infra.mesh_file.source import Location, Problem, Source, did_you_mean, places

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


# An actor that sets one of them does not get the other from `defaults`.
_ALTERNATIVES = {"concurrency": "pollers", "pollers": "concurrency"}
_KIND_KEYS = {"handler", "spark", "kind", *SOURCES}
_MAX_PASSES = 10
# A message lists the keys of a section that has no more than these.
_LISTED_KEYS = 20
_TYPE_WORDS = {
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
_TYPE_NAMES: dict[type, str] = {dict: "a mapping", list: "a list"}
_WHOLE_MESSAGES = {"missing": "missing", "too_short": "should not be empty"}
_BOUNDS = {"greater_than_equal": "at least", "less_than_equal": "at most", "greater_than": "more than"}


# Keys that the mesh file had, and what takes their place.
_FORMER_KEYS: dict[Location, str] = {
    (
        "gateway",
        "allowed_hosts",
    ): "is now two keys: foreign_gateways, for gateways of other meshes that reports go to, and "
    "notification_hosts, for private hosts that push notifications go to; write each host under the key that you need",
}


class ValidationResult:
    """The typed mesh, and the problems of the values.

    Attributes:
        mesh: the model without the invalid values, for further checks; None if the rest is not valid either.
        problems: the problems of the invalid values.
        capabilities: those of the mesh.
    """

    def __init__(
        self, mesh: MeshFile | None, problems: list[Problem], removals: set[Location], capabilities: NamedCapabilities
    ) -> None:
        self.mesh = mesh
        self.problems = problems
        self.capabilities = capabilities
        self._removals = removals
        self._model = mesh_model(capabilities.registry)

    def is_consequence(self, place: Location) -> bool:
        """Return whether a finding may be a mere consequence of a removed value.

        It may be at the location of the value, at the key that a misspelled key resembles, and, for a key that sets
        the kind of an actor or the source of a trigger, at the actor or trigger.
        """
        for location in self._removals:
            keys = {location[-1], _nearest(location, self._model)}
            if place[: len(location)] == location or (place and place[:-1] == location[:-1] and place[-1] in keys):
                return True
            if place == location[:-1] and keys & _KIND_KEYS:
                return True
        return False


def validate(source: Source, folder: Path) -> ValidationResult:
    """Upgrade legacy forms, merge `defaults` into the actors, and validate all values against the model.

    Args:
        source: the values.
        folder: the folder of the mesh file, with the code of the capabilities that it names.
    """
    named = named_capabilities(source, folder)
    model = mesh_model(named.registry)
    upgraded = upgrade(source)
    values = _with_defaults(source, upgraded.values, {*keys_of(settings_model(model))})
    text = WrittenText(source, model)
    text.restore(values)
    problems = [*named.problems, *upgraded.problems, *(source.problem(*found) for found in text.problems.items())]
    removals = set(text.problems)
    for location in removals:
        _remove(values, location)
    for _ in range(_MAX_PASSES):
        try:
            return ValidationResult(read_section(model, values), problems, removals, named)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                location = tuple(detail["loc"])
                if location not in removals:
                    problems.append(source.problem(location, _message(detail, location, values, model)))
                elif len(location) > 1:
                    location = location[:-1]  # a required value that is reported already: remove its parent
                removals.add(location)
            if not all(_remove(values, location) for location in removals):
                break
    return ValidationResult(None, problems, removals, named)


def _with_defaults(source: Source, values: dict[str, Any], settings: set[str]) -> dict[str, Any]:
    defaults, actors = values.get("defaults"), values.get("actors")
    if isinstance(defaults, dict) and isinstance(actors, dict):
        known = {key: value for key, value in defaults.items() if key in settings}
        for name, actor in actors.items():
            if isinstance(actor, dict):
                fitting = {key: value for key, value in known.items() if _ALTERNATIVES.get(key) not in actor}
                _inherit(source, actor, fitting, ("actors", name), ("defaults",))
    return values


def _inherit(source: Source, own: dict[str, Any], defaults: Mapping[str, Any], at: Location, origin: Location) -> None:
    """Add missing values from the defaults. Mappings are merged key by key."""
    for key, value in defaults.items():
        if isinstance(own.get(key), dict) and isinstance(value, dict):
            _inherit(source, own[key], value, (*at, key), (*origin, key))
        elif key not in own:
            own[key] = copy.deepcopy(value)
            for inner in places(value):
                source.inherit((*at, key, *inner), (*origin, key, *inner))


def _remove(values: Any, location: Location) -> bool:
    """Remove the value at a location; return whether it is gone."""
    holder = value_at(values, location[:-1])
    if isinstance(holder, dict):
        holder.pop(location[-1], None)
        return True
    if isinstance(holder, list) and location:
        # Remove the whole list, because removing an item would renumber the others.
        return _remove(values, location[:-1])
    return holder is None and bool(location)


def value_at(values: Any, location: Sequence[str | int]) -> Any:
    """Return the value at a location; None without one."""
    for part in location:
        if isinstance(values, dict):
            values = values.get(part)
        elif isinstance(values, list) and isinstance(part, int) and part < len(values):
            values = values[part]
        else:
            return None
    return values


def _message(detail: ErrorDetails, location: Location, values: dict[str, Any], model: type[MeshFile]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    value = value_at(values, location)
    got = "nothing" if value is None else _TYPE_NAMES.get(type(value)) or repr(value)
    if kind == "extra_forbidden":
        message = _FORMER_KEYS.get(location) or _unknown_key(location, model)
    elif kind == "literal_error":
        suggestion = did_you_mean(value, context["expected"].split("'")) if isinstance(value, str) else ""
        message = f"should be {context['expected']}; got {got}{suggestion}"
    elif kind == "value_error":
        message = str(context["error"])
    elif kind in _BOUNDS:
        bound = context.get("ge", context.get("le", context.get("gt")))
        message = f"should be {_BOUNDS[kind]} {_format_bound(bound, value)}; got {got}"
    elif kind in _WHOLE_MESSAGES:
        message = _WHOLE_MESSAGES[kind]
    else:
        expected = f"should be {_TYPE_WORDS[kind]}" if kind in _TYPE_WORDS else detail["msg"].removeprefix("Input ")
        advice = (
            '; write "" for an empty text, or put the word in quotes' if kind == "string_type" and value is None else ""
        )
        message = f"{expected}; got {got}{advice}"
    return message


def _unknown_key(location: Location, model: type[MeshFile]) -> str:
    known = keys_at(location[:-1], model)
    advice = did_you_mean(str(location[-1]), known)
    if not advice and 0 < len(known) <= _LISTED_KEYS:
        advice = f"; the keys are {', '.join(known)}"
    return f"unknown key{advice}"


def _format_bound(bound: Any, value: Any) -> str:
    """Return a bound in the form of the value in the file. Only durations are floats in the model and text there."""
    return format_duration(bound) if isinstance(bound, float) and isinstance(value, str) else f"{bound:g}"


def _nearest(location: Location, model: type[MeshFile]) -> str | None:
    near = get_close_matches(str(location[-1]), keys_at(location[:-1], model), n=1)
    return near[0] if near else None
