"""How well a type fits a value: which option of a union a value is (`protocol §6.typed.union`)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

Misfit = tuple[int, int, int]
"""What an option loses and adds, the better one first: the keys that it drops, the fields that it takes from defaults, and 1 for
a plain dict, which says less than a class."""


def distance(value: Any, *kinds: type) -> float | None:
    """How far the class of a value is from the nearest of some classes: 0 for the class itself, None for no instance."""
    ancestors = type(value).__mro__
    return min((ancestors.index(kind) for kind in kinds if kind in ancestors), default=None)


def farthest(distances: "list[float | None]") -> float | None:
    """The distance of a collection: that of the item that is farthest; None if one of them is no instance."""
    known = [each for each in distances if each is not None]
    return max(known, default=0.0) if len(known) == len(distances) else None


def misfit(loaded: Any, value: Any) -> Misfit:
    """What is lost and added where a JSON value was read as an instance."""
    dropped, defaulted = _counts(loaded, value)
    return dropped, defaulted, int(isinstance(loaded, dict))


def _counts(loaded: Any, value: Any) -> tuple[int, int]:
    """The number of keys that were dropped, and of fields that have their defaults, at all levels."""
    if isinstance(value, list) and isinstance(loaded, list | tuple) and len(value) == len(loaded):
        return _sum(zip(loaded, value, strict=True))
    if not isinstance(value, dict):
        return 0, 0
    if isinstance(loaded, Mapping):
        # The keys may have been made of strings, in the same order.
        pairs = zip(loaded.values(), value.values(), strict=True) if len(loaded) == len(value) else ()
        dropped, defaulted = _sum(pairs)
        return dropped + len(value) - len(loaded), defaulted
    fields = _fields(loaded, value)
    if fields is None:
        return 0, 0
    given = {name: key for name, key in fields.items() if key is not None}
    dropped, defaulted = _sum((getattr(loaded, name), value.get(key)) for name, key in given.items())
    return dropped + max(0, len(value) - len(given) - _extra(loaded, value)), defaulted + len(fields) - len(given)


def _fields(loaded: Any, value: dict[str, Any]) -> dict[str, str | None] | None:
    """The fields of an instance, each with its key in the JSON value, or None if it has its default.

    None for an instance that has no fields.
    """
    if hasattr(loaded, "__pydantic_fields_set__"):
        given = loaded.__pydantic_fields_set__
        fields = type(loaded).__pydantic_fields__
        return {name: _key(name, field, value) if name in given else None for name, field in fields.items()}
    if hasattr(loaded, "__struct_encode_fields__"):
        names = zip(loaded.__struct_fields__, loaded.__struct_encode_fields__, strict=True)
        return {name: key if key in value else None for name, key in names}
    if dataclasses.is_dataclass(loaded):
        return {
            each.name: each.name if each.name in value else None for each in dataclasses.fields(loaded) if each.init
        }
    return None


def _key(name: str, field: Any, value: dict[str, Any]) -> str:
    """The key that a field of pydantic was read from. A field with a path as its alias has none, and is compared no further."""
    return next((key for key in (field.validation_alias, field.alias) if isinstance(key, str) and key in value), name)


def _extra(loaded: Any, value: dict[str, Any]) -> int:
    """The number of keys that are no fields and are not lost: those an open model keeps, and the tag of a struct."""
    tag = getattr(getattr(loaded, "__struct_config__", None), "tag_field", None)
    return len(getattr(loaded, "__pydantic_extra__", None) or ()) + (tag is not None and tag in value)


def _sum(pairs: Any) -> tuple[int, int]:
    counts = [_counts(loaded, value) for loaded, value in pairs]
    return sum(each[0] for each in counts), sum(each[1] for each in counts)
