"""What a codec is, and the JSON form of values by their own types."""

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
