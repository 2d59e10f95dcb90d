"""Codecs of arrays, unions, and objects with known fields (dataclasses, TypedDicts) or with any keys."""

import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asya.contracts.codec import AnyCodec, Codec, Schema, SchemaContext, class_name, distance, farthest, misfit, plain
from asya.contracts.errors import ContractError, mismatch
from asya.contracts.forms import INTEGER_KEY
from asya.contracts.scalars import INTEGER, NULL
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


_INTEGER_KEY = re.compile(INTEGER_KEY)
_HASHABLE = ("string", "number", "boolean", "null")


@dataclass(frozen=True, slots=True)
class IntegerKey:
    """A whole number as a key of an object, which is a string in JSON."""

    def load(self, value: Any, path: str) -> Any:
        """The number of a key."""
        if not isinstance(value, str) or not _INTEGER_KEY.fullmatch(value):
            raise mismatch(path, "a whole number", value)
        return int(value)

    def dump(self, value: Any, path: str) -> Any:
        """The key of a number."""
        return str(self.load(str(value), path))

    def distance(self, value: Any) -> float | None:
        """The distance of the class."""
        return distance(value, int)

    def has_decimals(self) -> bool:
        """Whole numbers are none."""
        return False

    def schema(self, context: SchemaContext) -> Schema:  # noqa: ARG002
        """The schema of the keys."""
        return {"pattern": f"^{INTEGER_KEY}$"}


@dataclass(frozen=True, slots=True)
class ArrayCodec:
    """An array of items of one type.

    Attributes:
        make: makes the collection of a list of items.
    """

    item: Codec
    make: Callable[[list[Any]], Any] = list

    def load(self, value: Any, path: str) -> Any:
        """The collection of an array."""
        if not isinstance(value, list):
            raise mismatch(path, "an array", value)
        if isinstance(self.item, AnyCodec) and self.make is list:
            return rounded(value)
        items = [self.item.load(item, f"{path}[{index}]") for index, item in enumerate(value)]
        try:
            return self.make(items)
        except TypeError:
            raise ContractError(f"{path}: the items of a set cannot be objects or arrays") from None

    def dump(self, value: Any, path: str) -> Any:
        """The array of a collection. A set has no order, so its items are sorted."""
        if not isinstance(value, list | tuple | set | frozenset):
            raise mismatch(path, "an array", value)
        items = [self.item.dump(item, f"{path}[{index}]") for index, item in enumerate(value)]
        return sorted(items, key=repr) if isinstance(value, set | frozenset) else items

    def distance(self, value: Any) -> float | None:
        """The distance of the collection, or that of its farthest item."""
        own = distance(value, list, tuple) if self.make in (list, tuple) else distance(value, set, frozenset)
        return None if own is None else farthest([own, *(self.item.distance(item) for item in value)])

    def has_decimals(self) -> bool:
        """Whether its items may."""
        return self.item.has_decimals()

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of the array."""
        items = self.item.schema(context)
        is_set = self.make in (set, frozenset)
        return {"type": "array", "items": {"type": list(_HASHABLE)} if is_set and not items else items}


@dataclass(frozen=True, slots=True)
class TupleCodec:
    """An array with a type for each place."""

    items: tuple[Codec, ...]

    def load(self, value: Any, path: str) -> Any:
        """The tuple of an array."""
        self._check(value, path, (list,))
        return tuple(codec.load(item, f"{path}[{index}]") for index, codec, item in self._pairs(value))

    def dump(self, value: Any, path: str) -> Any:
        """The array of a tuple."""
        self._check(value, path, (list, tuple))
        return [codec.dump(item, f"{path}[{index}]") for index, codec, item in self._pairs(value)]

    def distance(self, value: Any) -> float | None:
        """The distance of the farthest item."""
        own = distance(value, list, tuple)
        if own is None or len(value) != len(self.items):
            return None
        return farthest([own, *(codec.distance(item) for _, codec, item in self._pairs(value))])

    def has_decimals(self) -> bool:
        """Whether an item may."""
        return any(each.has_decimals() for each in self.items)

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of the array."""
        items = [codec.schema(context) for codec in self.items]
        places = {"prefixItems": items} if items else {}
        return {"type": "array", **places, "minItems": len(items), "maxItems": len(items)}

    def _check(self, value: Any, path: str, kinds: tuple[type[list[Any]] | type[tuple[Any, ...]], ...]) -> None:
        if not isinstance(value, kinds) or len(value) != len(self.items):
            raise mismatch(path, f"an array of {len(self.items)} items", value)

    def _pairs(self, value: Any) -> list[tuple[int, Codec, Any]]:
        return [(index, codec, item) for index, (codec, item) in enumerate(zip(self.items, value, strict=True))]


@dataclass(frozen=True, slots=True)
class ObjectCodec:
    """An object with any keys and values of one type.

    Attributes:
        key: makes the keys of strings; None for strings.
    """

    value: Codec
    key: Codec | None = None

    def load(self, value: Any, path: str) -> Any:
        """The dict of an object."""
        if not isinstance(value, dict):
            raise mismatch(path, "an object", value)
        if isinstance(self.value, AnyCodec) and self.key is None:
            return rounded(value)
        return {self._key(key, path): self.value.load(item, f"{path}.{key}") for key, item in value.items()}

    def dump(self, value: Any, path: str) -> Any:
        """The object of a dict."""
        if not isinstance(value, Mapping):
            raise mismatch(path, "an object", value)
        if isinstance(self.value, AnyCodec) and self.key is None:
            return value
        keyed = ((self._written(key, path), item) for key, item in value.items())
        return {key: self.value.dump(item, f"{path}.{key}") for key, item in keyed}

    def distance(self, value: Any) -> float | None:
        """The distance of the farthest value."""
        if not isinstance(value, Mapping):
            return None
        return farthest([0.0 if isinstance(value, dict) else 1.0, *map(self.value.distance, value.values())])

    def has_decimals(self) -> bool:
        """Whether its values may; keys are strings."""
        return self.value.has_decimals()

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of the object."""
        keys = {"propertyNames": _of_keys(self.key.schema(context))} if self.key is not None else {}
        return {"type": "object", "additionalProperties": self.value.schema(context) or True, **keys}

    def _key(self, key: str, path: str) -> Any:
        return key if self.key is None else self.key.load(key, f"{path} (a key)")

    def _written(self, key: Any, path: str) -> Any:
        return key if self.key is None else str(self.key.dump(key, f"{path} (a key)"))


@dataclass(frozen=True, slots=True)
class UnionCodec:
    """One of several types: on the way out that of the value's class, on the way in the one that fits best."""

    options: tuple[Codec, ...]

    def load(self, value: Any, path: str) -> Any:
        """The value of the type that drops the fewest keys, and of these the one that takes the fewest fields from defaults."""
        if value is None or not isinstance(value, dict | list):
            return self._fitting(value, path, only_first=True)[0][1]
        fitting = self._fitting(value, path)
        return min((loaded for _, loaded in fitting), key=lambda loaded: misfit(loaded, value))

    def dump(self, value: Any, path: str) -> Any:
        """The JSON value by the type of the value's class; a dict in place of an instance by the type that it fits best."""
        distances = [(each, codec) for codec in self.options if (each := codec.distance(value)) is not None]
        if distances:
            return min(distances, key=lambda each: each[0])[1].dump(value, path)
        written = plain(value, path)
        fitting = self._fitting(written, path)
        return min(fitting, key=lambda each: misfit(each[1], written))[0].dump(value, path)

    def distance(self, value: Any) -> float | None:
        """The distance of the nearest type."""
        return min((each for codec in self.options if (each := codec.distance(value)) is not None), default=None)

    def has_decimals(self) -> bool:
        """Whether an option may."""
        return any(each.has_decimals() for each in self.options)

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of the union."""
        options = [codec.schema(context) for codec in self.options]
        context.unions.append([schema for codec, schema in zip(self.options, options, strict=True) if is_class(codec)])
        return {} if {} in options else {"anyOf": options}

    def _fitting(self, value: Any, path: str, *, only_first: bool = False) -> list[tuple[Codec, Any]]:
        """The types that read a JSON value, each with what it has read."""
        reasons: list[str] = []
        fitting: list[tuple[Codec, Any]] = []
        # Of 5.0 for `int | float` the float is meant.
        options = sorted(self.options, key=lambda each: each is INTEGER) if isinstance(value, float) else self.options
        for codec in options:
            if codec is NULL and value is not None:
                continue
            try:
                fitting.append((codec, codec.load(value, path)))
            except ContractError as error:
                reasons.append(str(error))
            if fitting and only_first:
                return fitting
        if fitting:
            return fitting
        if len(reasons) == 1:
            raise ContractError(reasons[0])
        raise ContractError(f"{path}: fits none of its types: {'; '.join(reasons)}")


def _of_keys(schema: Schema) -> Schema:
    """The schema of keys, which are strings whatever else values may be."""
    return {key: each for key, each in schema.items() if key != "type"}


def is_class(codec: Codec) -> bool:
    """Whether values of a type have a class of their own, and fields."""
    return bool(getattr(codec, "is_class", False))
