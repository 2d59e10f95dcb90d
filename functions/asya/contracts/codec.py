"""What a codec is, the JSON form of values by their types, and how well a type fits (`protocol §6.typed.union`)."""

import dataclasses
import datetime
import decimal
import enum
import re
import typing
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

from asya.contracts.errors import ContractError
from asya.contracts.forms import duration_text, iso_text
from asya.protocol.numbers import rounded

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


Schema = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class SchemaContext:
    """What the schemas of one type share.

    Attributes:
        output: whether the schema is of results, which have what a type gives, or of payloads, which have what it accepts.
        definitions: the `$defs`.
        names: the names of classes among them. Classes of two modules may have the same name of their own.
        unions: the options of each union that are classes, of which each value has to be told from those of the others.
    """

    output: bool
    definitions: dict[str, Schema] = dataclasses.field(default_factory=dict)
    names: dict[Any, str] = dataclasses.field(default_factory=dict)
    unions: list[list[Schema]] = dataclasses.field(default_factory=list)

    def name_of(self, kind: Any) -> str:
        """The name of a class among the definitions: its own, with its module if another one has it, and with its arguments."""
        if kind not in self.names:
            own = class_name(kind, qualified=True)
            candidates = (own, f"{kind.__module__}.{own}", f"{kind.__module__}.{own}.{len(self.definitions)}")
            self.names[kind] = next(name for name in candidates if name not in self.definitions)
        return self.names[kind]


class Codec(Protocol):
    """Converts the values of one type."""

    def load(self, value: Any, path: str) -> Any:
        """The value of a JSON value. A `ContractError` names the field at `path`."""

    def dump(self, value: Any, path: str) -> Any:
        """The JSON value of a value. A `ContractError` names the field at `path`."""

    def distance(self, value: Any) -> float | None:
        """How far the class of a value is from this type; 0 for its own, None if the value is no instance of it."""

    def has_decimals(self) -> bool:
        """Whether values of this type may hold decimals, which keep all digits of a number."""

    def schema(self, context: SchemaContext) -> Schema:
        """The JSON Schema of the JSON values."""


@dataclasses.dataclass(frozen=True, slots=True)
class AnyCodec:
    """Any value: `Any`, `object`, and annotations that are no contract.

    Attributes:
        known: whether the annotation says so itself. A parameter with a default and another type is none of the payload.
    """

    known: bool = True

    def load(self, value: Any, path: str) -> Any:  # noqa: ARG002
        """The value itself, with plain floats."""
        return rounded(value)

    def dump(self, value: Any, path: str) -> Any:  # noqa: ARG002
        """The value itself; the encoder converts models within it (`plain`)."""
        return value

    def distance(self, value: Any) -> float | None:  # noqa: ARG002
        """The same for each value, and farther than that of any other type."""
        return 1000.0

    def has_decimals(self) -> bool:
        """Nothing says so."""
        return False

    def schema(self, context: SchemaContext) -> Schema:  # noqa: ARG002
        """The schema of anything."""
        return {}


def class_name(kind: Any, *, qualified: bool = False) -> str:
    """The name of a class, with its arguments if it has any: `Box_int_`."""
    arguments = typing.get_args(kind)
    if not arguments:
        name = getattr(kind, "__qualname__" if qualified else "__name__", str(kind))
        return str(name).replace(".<locals>", "")
    named = "_".join(class_name(each) for each in arguments)
    return f"{class_name(typing.get_origin(kind), qualified=qualified)}_{re.sub(r'[^A-Za-z0-9_.]+', '_', named)}_"


def plain(value: Any, path: str = "result") -> Any:  # noqa: PLR0911 - one for each type
    """A value with models, dates, decimals, UUIDs and enums in their JSON form, by the type that each value has.

    Values of other types stay as they are.

    Raises:
        ContractError: a model is not valid.
    """
    kind = type(value)
    if kind in (str, int, float, bool, type(None)):
        return value
    match value:
        case enum.Enum():
            return plain(value.value, path)
        case dict():
            return {plain_key(key): plain(item, f"{path}.{key}") for key, item in value.items()}
        case list() | tuple():
            return [plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
        case datetime.datetime() | datetime.time():
            return iso_text(value)
        case datetime.date():
            return value.isoformat()
        case datetime.timedelta():
            return duration_text(value)
        case decimal.Decimal():
            return decimal_text(value, path)
        case uuid.UUID():
            return str(value)
    if hasattr(kind, "__pydantic_serializer__") or hasattr(kind, "__struct_fields__"):
        from asya.contracts.annotations import codec_of

        return codec_of(kind).dump(value, path)
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name), f"{path}.{field.name}") for field in dataclasses.fields(value)
        }
    return dict(value) if isinstance(value, Mapping) else value


def plain_key(key: Any) -> Any:
    """The key of an object for the key of a dict."""
    return str(plain(key)) if isinstance(key, datetime.date | uuid.UUID | enum.Enum | decimal.Decimal) else key


def decimal_text(value: decimal.Decimal, path: str) -> str:
    """A decimal as a string; a float would round it."""
    if not value.is_finite():
        raise ContractError(f"{path}: {value} has no form in JSON")
    return str(value)
