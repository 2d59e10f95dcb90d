"""From the file's plain values to the typed model, with every mistake at its line."""

import copy
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from asya_infra.mesh_file.actor_model import ActorSettings
from asya_infra.mesh_file.base import Section
from asya_infra.mesh_file.legacy import upgrade
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.problems import Problem, did_you_mean
from asya_infra.mesh_file.source import Location, Source
from asya_infra.mesh_file.units import format_duration

_SETTINGS = {field.alias or name for name, field in ActorSettings.model_fields.items()}
_KIND_KEYS = {"handler", "spark", "kind"}
_ROUNDS = 10
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


class ValidationResult:
    """A typed mesh and what was wrong with the values it was made from.

    `mesh` is there even if some values were wrong (they are left out), so that other checks can go on; it is None only
    if nothing sensible is left.
    """

    def __init__(self, mesh: MeshFile | None, problems: list[Problem], dropped: set[Location]) -> None:
        self.mesh = mesh
        self.problems = problems
        self._dropped = dropped

    def explains(self, place: Location) -> bool:
        """Whether a finding at this place may only be the consequence of a value that was left out.

        That is so at the value itself, at the key it was probably meant to be, and, if it would have said what kind of
        actor this is, at the actor.
        """
        for gone in self._dropped:
            meant = {gone[-1], _nearest(gone)}
            if place[: len(gone)] == gone or (place and place[:-1] == gone[:-1] and place[-1] in meant):
                return True
            if place == gone[:-1] and meant & _KIND_KEYS:
                return True
        return False


def validate(source: Source) -> ValidationResult:
    """Put older forms into today's keys, merge the defaults into the actors and check every value against the model."""
    upgraded = upgrade(source)
    values = _with_defaults(source, upgraded.values)
    problems = list(upgraded.problems)
    dropped: set[Location] = set()
    for _ in range(_ROUNDS):
        try:
            return ValidationResult(MeshFile.model_validate(values), problems, dropped)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                location = tuple(detail["loc"])
                if location not in dropped:
                    problems.append(source.problem(location, _message(detail, location, values)))
                elif len(location) > 1:
                    location = location[:-1]  # it cannot be done without, and has been told of: the whole goes
                dropped.add(location)
            if not all(_drop(values, location) for location in dropped):
                break
    return ValidationResult(None, problems, dropped)


def _with_defaults(source: Source, values: dict[str, Any]) -> dict[str, Any]:
    defaults, actors = values.get("defaults"), values.get("actors")
    if isinstance(defaults, dict) and isinstance(actors, dict):
        known = {key: value for key, value in defaults.items() if key in _SETTINGS}
        for name, actor in actors.items():
            if isinstance(actor, dict):
                _inherit(source, actor, known, ("actors", name), ("defaults",))
    return values


def _inherit(source: Source, own: dict[str, Any], defaults: Mapping[str, Any], at: Location, origin: Location) -> None:
    """Fill in what `own` does not say; mappings are merged key by key, anything else is taken or left whole."""
    for key, value in defaults.items():
        if isinstance(own.get(key), dict) and isinstance(value, dict):
            _inherit(source, own[key], value, (*at, key), (*origin, key))
        elif key not in own:
            own[key] = copy.deepcopy(value)
            for inner in _places(value):
                source.inherit((*at, key, *inner), (*origin, key, *inner))


def _places(value: Any) -> list[Location]:
    """Every place within a value, itself first."""
    places: list[Location] = [()]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        places += [(key, *inner) for inner in _places(item)]
    return places


def _drop(values: Any, location: Location) -> bool:
    """Leave out the value at a place; True if it is gone."""
    holder = value_at(values, location[:-1])
    if isinstance(holder, dict):
        holder.pop(location[-1], None)
        return True
    if isinstance(holder, list) and location:
        # Lists keep their numbering; the whole list goes instead.
        return _drop(values, location[:-1])
    return holder is None and bool(location)


def value_at(values: Any, location: Sequence[str | int]) -> Any:
    """What stands at a place, None if nothing does."""
    for part in location:
        if isinstance(values, dict):
            values = values.get(part)
        elif isinstance(values, list) and isinstance(part, int) and part < len(values):
            values = values[part]
        else:
            return None
    return values


def _message(detail: ErrorDetails, location: Location, values: dict[str, Any]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    written = value_at(values, location)
    shown = "nothing" if written is None else _TYPE_NAMES.get(type(written)) or repr(written)
    if kind == "extra_forbidden":
        message = f"unknown key{did_you_mean(str(location[-1]), _keys_at(location[:-1]))}"
    elif kind == "literal_error":
        suggestion = did_you_mean(written, context["expected"].split("'")) if isinstance(written, str) else ""
        message = f"should be {context['expected']}; got {shown}{suggestion}"
    elif kind == "value_error":
        message = str(context["error"])
    elif kind in _BOUNDS:
        bound = context.get("ge", context.get("le", context.get("gt")))
        message = f"should be {_BOUNDS[kind]} {_shown_bound(bound, written)}; got {shown}"
    elif kind in _WHOLE_MESSAGES:
        message = _WHOLE_MESSAGES[kind]
    else:
        expected = f"should be {_TYPE_WORDS[kind]}" if kind in _TYPE_WORDS else detail["msg"].removeprefix("Input ")
        message = f"{expected}; got {shown}"
    return message


def _shown_bound(bound: Any, written: Any) -> str:
    """A bound in the unit the value was written in; durations are the only floats that are written as text."""
    return format_duration(bound) if isinstance(bound, float) and isinstance(written, str) else f"{bound:g}"


def _nearest(location: Location) -> str | None:
    near = get_close_matches(str(location[-1]), _keys_at(location[:-1]), n=1)
    return near[0] if near else None


def _keys_at(location: Location) -> list[str]:
    """The keys that the model knows at a place."""
    annotation: Any = MeshFile
    for part in location:
        annotation = _inner(annotation, part)
    section = _section(annotation)
    return [field.alias or name for name, field in section.model_fields.items()] if section else []


def _inner(annotation: Any, part: str | int) -> Any:
    section = _section(annotation)
    if section is not None:
        named = [field for name, field in section.model_fields.items() if part in (name, field.alias)]
        return named[0].annotation if named else None
    for option in _options(annotation):
        if get_origin(option) is dict:
            return get_args(option)[1]
        if get_origin(option) is tuple:
            return get_args(option)[0]
    return None


def _section(annotation: Any) -> type[Section] | None:
    for option in _options(annotation):
        if isinstance(option, type) and issubclass(option, Section):
            return option
    return None


def _options(annotation: Any) -> list[Any]:
    """What an annotation allows: the members of a union, without `Annotated`."""
    if get_origin(annotation) is Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (dict, tuple) or not get_args(annotation):
        return [annotation]
    return [option for argument in get_args(annotation) for option in _options(argument)]
