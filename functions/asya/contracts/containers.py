"""Codecs of arrays, objects with any keys, and unions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asya.contracts.codec import AnyCodec, Codec, Schema, SchemaContext, plain_key
from asya.contracts.errors import ContractError, mismatch
from asya.contracts.scalars import NULL


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
            return value
        return self.make([self.item.load(item, f"{path}[{index}]") for index, item in enumerate(value)])

    def dump(self, value: Any, path: str) -> Any:
        """The array of a collection. A set has no order, so its items are sorted."""
        if not isinstance(value, list | tuple | set | frozenset):
            raise mismatch(path, "an array", value)
        items = [self.item.dump(item, f"{path}[{index}]") for index, item in enumerate(value)]
        return sorted(items, key=repr) if isinstance(value, set | frozenset) else items

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of the array."""
        return {"type": "array", "items": self.item.schema(context)}


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

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of the array."""
        items = [codec.schema(context) for codec in self.items]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}

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
            return value
        return {self._key(key, path): self.value.load(item, f"{path}.{key}") for key, item in value.items()}

    def dump(self, value: Any, path: str) -> Any:
        """The object of a dict."""
        if not isinstance(value, Mapping):
            raise mismatch(path, "an object", value)
        if isinstance(self.value, AnyCodec) and self.key is None:
            return value
        keyed = ((key if self.key is None else plain_key(key), item) for key, item in value.items())
        return {key: self.value.dump(item, f"{path}.{key}") for key, item in keyed}

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of the object."""
        return {"type": "object", "additionalProperties": self.value.schema(context) or True}

    def _key(self, key: str, path: str) -> Any:
        return key if self.key is None else self.key.load(key, f"{path} (a key)")


@dataclass(frozen=True, slots=True)
class UnionCodec:
    """One of several types: the first that fits."""

    options: tuple[Codec, ...]

    def load(self, value: Any, path: str) -> Any:
        """The value of the first type that fits."""
        return self._first(value, path, lambda codec: codec.load(value, path))

    def dump(self, value: Any, path: str) -> Any:
        """The JSON value by the first type that fits."""
        return self._first(value, path, lambda codec: codec.dump(value, path))

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of the union."""
        options = [codec.schema(context) for codec in self.options]
        return {} if {} in options else {"anyOf": options}

    def _first(self, value: Any, path: str, convert: Callable[[Codec], Any]) -> Any:
        reasons: list[str] = []
        for codec in self.options:
            try:
                return convert(codec)
            except ContractError as error:
                if codec is not NULL or value is None:
                    reasons.append(str(error))
        if len(reasons) == 1:
            raise ContractError(reasons[0])
        raise ContractError(f"{path}: fits none of its types: {'; '.join(reasons)}")
