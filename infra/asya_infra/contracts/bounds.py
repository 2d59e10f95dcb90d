"""Compares the limits of single values: of numbers, lengths and counts, and the forms of strings."""

import math
from collections.abc import Iterator
from typing import Any

from asya_infra.contracts.schemas import FORMATS, Typed

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
    return tuple(_refused(given, needed))


def _refused(given: Typed, needed: Typed) -> Iterator[str]:
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
