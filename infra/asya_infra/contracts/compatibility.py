"""Decides whether a schema accepts each value that another one allows.

What is not understood counts as accepted.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asya_infra.contracts.schemas import FORMATS, Typed, name_of, typed

_LEAST = ("minLength", "minItems", "minProperties")
_MOST = ("maxLength", "maxItems", "maxProperties")
_NUMERIC_LEAST = ("minimum", "exclusiveMinimum")
_NUMERIC_MOST = ("maximum", "exclusiveMaximum")
_FORMS = ("format", "contentEncoding")

_Bound = tuple[float, bool]


def limits_refused(given: Typed, needed: Typed) -> tuple[str, ...]:
    """Return the keywords of the limits that some given value exceeds.

    Args:
        given: the schema of the values; one type of JSON.
        needed: the schema with the limits; it allows this type.
    """
    return tuple(_bounds_refused(given, needed))


def _bounds_refused(given: Typed, needed: Typed) -> Iterator[str]:
    one, other = given.schema, needed.schema
    if given.types == {"string"}:
        yield from (key for key in _FORMS if other.get(key) is not None and _form(one, key) != _form(other, key))
        # Whether a pattern accepts what another pattern or a form allows is not known. That of a form says nothing more.
        if "pattern" in other and not other.keys() & set(_FORMS) and not one.keys() & {"pattern", *_FORMS}:
            yield "pattern"
    yield from (key for key in _LEAST if _number(other, key, 0) > _number(one, key, 0))
    yield from (key for key in _MOST if _number(other, key, math.inf) < _number(one, key, math.inf))
    if given.types <= {"integer", "number"}:
        is_whole = given.types == {"integer"}
        if _least(other, is_whole=is_whole) > _least(one, is_whole=is_whole):
            yield from _NUMERIC_LEAST
        if _most(other, is_whole=is_whole) < _most(one, is_whole=is_whole):
            yield from _NUMERIC_MOST
        if not _is_multiple(one, _number(other, "multipleOf", 0), is_whole=is_whole):
            yield "multipleOf"
    if other.get("uniqueItems") is True and one.get("uniqueItems") is not True:
        yield "uniqueItems"


def _form(schema: dict[str, Any], key: str) -> str | None:
    """The form of strings. Whether a time has an offset is not compared."""
    value = schema.get(key)
    return FORMATS.get(value, value) if isinstance(value, str) else None


def _number(schema: dict[str, Any], key: str, otherwise: float) -> float:
    value = schema.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


def _least(schema: dict[str, Any], *, is_whole: bool) -> _Bound:
    """The lower bound, and whether it is excluded. An excluded bound of whole numbers is the next one."""
    excluded = _number(schema, "exclusiveMinimum", -math.inf)
    lowest = _number(schema, "minimum", -math.inf)
    if is_whole:
        lowest = math.ceil(lowest) if math.isfinite(lowest) else lowest
        return max(lowest, math.floor(excluded) + 1 if math.isfinite(excluded) else excluded), False
    return max((lowest, False), (excluded, math.isfinite(excluded)))


def _most(schema: dict[str, Any], *, is_whole: bool) -> _Bound:
    """The upper bound, and whether it is included, so that bounds are compared as pairs."""
    excluded = _number(schema, "exclusiveMaximum", math.inf)
    highest = _number(schema, "maximum", math.inf)
    if is_whole:
        highest = math.floor(highest) if math.isfinite(highest) else highest
        return min(highest, math.ceil(excluded) - 1 if math.isfinite(excluded) else excluded), True
    return min((highest, True), (excluded, not math.isfinite(excluded)))


def _is_multiple(given: dict[str, Any], needed: float, *, is_whole: bool) -> bool:
    """Whether all given numbers are multiples of one."""
    if not needed:
        return True
    lowest, step = _number(given, "minimum", -math.inf), _number(given, "multipleOf", 1 if is_whole else 0)
    if lowest == _number(given, "maximum", math.inf):
        return _is_whole(lowest / needed)
    return bool(step) and _is_whole(step / needed)


def _is_whole(value: float) -> bool:
    return math.isclose(value, round(value), abs_tol=1e-9)


_Pairs = frozenset[tuple[int, int]]
OTHERS = "*"
"""The name of all fields that a schema does not declare."""


@dataclass(frozen=True)
class Refusal:
    """A field with a value that is allowed on one side and refused on the other.

    Attributes:
        field: the path of the field; empty for the whole payload, and ending in `*` for all that are not declared.
        needs: the type that is accepted; None if no value of the field is.
        gives: the type that has refused values; None if the field may be missing.
    """

    field: str
    needs: str | None
    gives: str | None


def refusals(given: dict[str, Any], needed: dict[str, Any]) -> list[Refusal]:
    """Return the fields with values that one schema allows and the other one refuses, each once.

    Args:
        given: the schema of the values.
        needed: the schema that should accept all of them.
    """
    first: dict[str, Refusal] = {}
    for refusal in _refused(typed(given), typed(needed), "", frozenset()):
        first.setdefault(refusal.field, refusal)
    return list(first.values())


def _refused(given: Typed, needed: Typed, path: str, above: _Pairs) -> Iterator[Refusal]:
    """Yield the refusals of two schemas; those `above` them are being compared, because a type may contain itself."""
    pair = (id(given.schema), id(needed.schema))
    if pair in above or not given.is_known or not needed.is_known:
        return
    above |= {pair}
    options = [part for option in needed.options() for part in _parts(option)]
    for option in given.options():
        for part in _parts(option):
            yield from _of_part(part, options, needed, path, above)


def _parts(one: Typed) -> list[Typed]:
    """The schema for each of its types of JSON, such as a decimal as a string and as a number."""
    if not one.is_known or one.values is not None or len(one.types) < 2:
        return [one]
    return [Typed({**one.schema, "type": each}, one.root) for each in sorted(one.types)]


def _of_part(given: Typed, options: list[Typed], needed: Typed, path: str, above: _Pairs) -> Iterator[Refusal]:
    """Yield the refusals of a type that is no union; it fits if one of the options accepts all of its values."""
    values = _values(given)
    if values is not None:
        refused = [value for value in values if not any(_accepts(option, value) for option in options)]
        if refused:
            yield Refusal(path, name_of(needed), name_of(Typed({"enum": refused}, {})))
        return
    found = [list(_of_one(given, option, path, above)) for option in options]
    if not all(found):
        return
    likely = [each for option, each in zip(options, found, strict=True) if _is_likely(given, option)]
    if len(options) == 1 or len(likely) == 1:
        yield from likely[0] if likely else found[0]
    else:
        yield Refusal(path, name_of(needed), name_of(given))


def _values(one: Typed) -> list[Any] | None:
    """All values of a type; None if there are too many."""
    if one.values is not None:
        return one.values
    kinds: dict[str, list[Any]] = {"null": [None], "boolean": [True, False]}
    return kinds.get(next(iter(_types(one)), "")) if len(_types(one)) == 1 else None


def _is_likely(given: Typed, option: Typed) -> bool:
    """Whether an option of a union is what has become of a type: of the same name, or else of the same type of JSON."""
    titles = (given.schema.get("title"), option.schema.get("title"))
    if all(titles) and _types(given) == {"object"}:
        return bool(titles[0] == titles[1])
    return bool(_types(given) & _types(option))


def _types(one: Typed) -> set[str]:
    """The types of JSON. A schema with fields and without a type is one of objects here."""
    is_object = "properties" in one.schema or "required" in one.schema
    return one.types or ({"object"} if is_object else set())


def _of_one(given: Typed, needed: Typed, path: str, above: _Pairs) -> Iterator[Refusal]:
    """Yield the refusals of two types, each without alternatives."""
    if not given.is_known or not needed.is_known:
        return
    types, accepted = _types(given), _types(needed)
    if not types or not accepted:
        return
    if "number" in accepted:
        accepted = accepted | {"integer"}
    if not types <= accepted or needed.values is not None:
        yield Refusal(path, name_of(needed), name_of(given))
        return
    refused = limits_refused(given, needed)
    if refused:
        yield Refusal(path, _with_limits(needed, refused), _with_limits(given, refused))
    if types == {"object"}:
        yield from _of_objects(given, needed, path, above)
    elif types == {"array"}:
        yield from _of_arrays(given, needed, path, above)


def _accepts(needed: Typed, value: Any) -> bool:
    """Whether a schema accepts a single value. Its format is not looked at."""
    if not needed.is_known:
        return True
    if needed.values is not None:
        return any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in needed.values)
    point = _point(value)
    return not any(True for _ in _of_one(Typed(point, point), _without_form(needed), "", frozenset()))


def _point(value: Any) -> dict[str, Any]:
    """A schema that has the limits of one value."""
    match value:
        case bool():
            return {"type": "boolean"}
        case None:
            return {"type": "null"}
        case int() | float():
            return {"type": "integer" if value == int(value) else "number", "minimum": value, "maximum": value}
        case str():
            return {"type": "string", "minLength": len(value), "maxLength": len(value)}
    return {"type": "array" if isinstance(value, list) else "object"}


def _without_form(one: Typed) -> Typed:
    schema = {key: value for key, value in one.schema.items() if key not in ("format", "contentEncoding", "pattern")}
    return Typed(schema, one.root)


def _of_objects(given: Typed, needed: Typed, path: str, above: _Pairs) -> Iterator[Refusal]:
    fields, accepted = given.properties, needed.properties
    if not fields and not given.required and given.others in (True, {}):
        return  # nothing is known of them
    for name in needed.required:
        if name not in given.required:
            yield Refusal(_at(path, name), name_of(needed.within(accepted.get(name, {}))), None)
    for name, field in fields.items():
        if name in accepted:
            yield from _refused(given.within(field), needed.within(accepted[name]), _at(path, name), above)
        elif needed.others is False:
            yield Refusal(_at(path, name), None, name_of(given.within(field)))
        elif isinstance(needed.others, dict):
            yield from _refused(given.within(field), needed.within(needed.others), _at(path, name), above)
    yield from _of_others(given, needed, path, above)


def _of_others(given: Typed, needed: Typed, path: str, above: _Pairs) -> Iterator[Refusal]:
    """Yield the refusals of the fields that the given objects have beside the declared ones."""
    if given.others is False:
        return
    if needed.others is False:
        yield Refusal(_at(path, OTHERS), None, "Any")
    if not isinstance(given.others, dict):
        return  # nothing is known of them
    others = given.within(given.others)
    for name, field in needed.properties.items():
        if name not in given.properties:
            yield from _refused(others, needed.within(field), _at(path, name), above)
    if isinstance(needed.others, dict):
        yield from _refused(others, needed.within(needed.others), f"{path}[]", above)


def _of_arrays(given: Typed, needed: Typed, path: str, above: _Pairs) -> Iterator[Refusal]:
    places, accepted = given.schema.get("prefixItems", []), needed.schema.get("prefixItems", [])
    count = max(len(places), len(accepted))
    largest = given.schema.get("maxItems", count + 1)
    rest, accepted_rest = given.schema.get("items", {}), needed.schema.get("items", {})
    for index in range(min(count, largest)):
        one = places[index] if index < len(places) else rest
        other = accepted[index] if index < len(accepted) else accepted_rest
        yield from _refused(given.within(one), needed.within(other), f"{path}[{index}]", above)
    if largest > count:
        yield from _refused(given.within(rest), needed.within(accepted_rest), f"{path}[]", above)


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _with_limits(one: Typed, keywords: tuple[str, ...]) -> str:
    """The name of a type with these of its limits, such as `int with minimum 3`."""
    limits = [f"{key} {one.schema[key]}" for key in keywords if key in one.schema]
    shown = [each for each in limits if not each.startswith("format ") or name_of(one) in ("str", "Any")]
    return f"{name_of(one)} with {' and '.join(shown)}" if shown else name_of(one)
