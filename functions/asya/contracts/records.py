"""Codecs of dataclasses and TypedDicts: objects with known fields."""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asya.contracts.codec import Codec, Schema, SchemaContext, class_name
from asya.contracts.errors import ContractError, mismatch
from asya.contracts.fit import distance
from asya.protocol.numbers import rounded


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record.

    Attributes:
        required: whether a payload must have it.
        given: whether each result has it.
    """

    name: str
    codec: Codec
    required: bool
    given: bool


class RecordCodec:
    """An object with known fields. Other keys are dropped, unless the type is open."""

    def __init__(self, kind: Any, make: Callable[[dict[str, Any]], Any], *, is_open: bool = False) -> None:
        """Take the class, what makes an instance of its fields, and whether it keeps other keys."""
        self._kind = kind
        self._class = typing.get_origin(kind) or kind
        self._name = class_name(kind)
        self._make = make
        self._open = is_open
        self.is_dict = make is dict
        self.is_class = not self.is_dict
        self._is_asked = False
        # Filled after the creation, because a type may contain itself.
        self.fields: tuple[Field, ...] = ()

    def load(self, value: Any, path: str) -> Any:
        """The instance of an object."""
        if not isinstance(value, dict):
            raise mismatch(path, f"an object ({self._name})", value)
        loaded = {key: rounded(item) for key, item in self._others(value).items()}
        for field in self.fields:
            if field.name in value:
                loaded[field.name] = field.codec.load(value[field.name], f"{path}.{field.name}")
            elif field.required:
                raise ContractError(f"{path}.{field.name}: missing")
        try:
            return self._make(loaded)
        except (TypeError, ValueError) as error:  # `__post_init__` may refuse the values together
            raise ContractError(f"{path}: {error}") from error

    def dump(self, value: Any, path: str) -> Any:
        """The object of an instance, or of a mapping with the same keys."""
        if isinstance(value, Mapping):
            values = dict(value)
        elif not self.is_dict and isinstance(value, self._class):
            values = {field.name: getattr(value, field.name) for field in self.fields if hasattr(value, field.name)}
        else:
            raise mismatch(path, self._name, value)
        dumped = self._others(values)
        for field in self.fields:
            if field.name in values:
                dumped[field.name] = field.codec.dump(values[field.name], f"{path}.{field.name}")
            elif field.required:
                raise ContractError(f"{path}.{field.name}: missing")
        return dumped

    def distance(self, value: Any) -> float | None:
        """The distance of the class; a dict has none. Of two forms of a generic class, the one that the fields fit is nearer."""
        own = None if self.is_dict else distance(value, self._class)
        if own is None:
            return None
        fits = all(each.codec.distance(getattr(value, each.name, None)) is not None for each in self.fields)
        return own if fits else own + 0.5

    def has_decimals(self) -> bool:
        """Whether a field may; a record within itself adds nothing."""
        if self._is_asked:
            return False
        self._is_asked = True
        try:
            return any(field.codec.has_decimals() for field in self.fields)
        finally:
            self._is_asked = False

    def schema(self, context: SchemaContext) -> Schema:
        """A reference to the schema of the record, which is among the definitions."""
        name = context.name_of(self._kind)
        if name not in context.definitions:
            definition: Schema = {"type": "object", "title": self._name}
            context.definitions[name] = definition
            definition["properties"] = {field.name: field.codec.schema(context) for field in self.fields}
            required = [field.name for field in self.fields if (field.given if context.output else field.required)]
            if required:
                definition["required"] = required
            if context.output:
                definition["additionalProperties"] = self._open
        return {"$ref": f"#/$defs/{name}"}

    def _others(self, value: dict[str, Any]) -> dict[str, Any]:
        if not self._open:
            return {}
        known = {field.name for field in self.fields}
        return {key: item for key, item in value.items() if key not in known}
