"""Validates the plain values of a mesh file against the model, and reports each problem at its line."""

import copy
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from asya_infra.mesh_file.capabilities import NamedCapabilities, named_capabilities
from asya_infra.mesh_file.capability_model import mesh_model, settings_model
from asya_infra.mesh_file.forms import format_duration
from asya_infra.mesh_file.legacy import upgrade
from asya_infra.mesh_file.mesh_model import SOURCES, MeshFile
from asya_infra.mesh_file.sections import keys_of, read_section
from asya_infra.mesh_file.source import Location, Problem, Source, did_you_mean, places
from asya_infra.mesh_file.written_text import WrittenText, keys_at

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
