"""Codecs of the types of pydantic and msgspec, which validate and serialize them. They come with the user's packages."""

import json
import re
import typing
from decimal import Decimal
from functools import cached_property
from typing import Any

from asya.contracts.codec import Schema, SchemaContext, plain
from asya.contracts.common_values import CommonValues
from asya.contracts.errors import ContractError
from asya.contracts.fit import distance
from asya.contracts.pydantic_numbers import check_numbers, holds_decimals, may_hide_numbers, with_text_decimals
from asya.protocol.numbers import has_exact

_SHOWN_ERRORS = 5
# The message of msgspec names no place for a field that is not there.
_MISSING = re.compile("Object missing required field `(.+)`")


class PydanticCodec:
    """A type that pydantic knows how to validate: a model, its dataclasses, or a type with its constraints.

    Payloads are JSON, so they are validated as JSON in strict mode: a date comes as a string, and no string becomes a number.
    """

    def __init__(self, kind: Any) -> None:
        from pydantic import TypeAdapter

        self._kind = kind
        self._class = typing.get_origin(kind) or kind
        self.is_class = isinstance(self._class, type)
        self._adapter: Any = TypeAdapter(kind)
        self._has_decimals = holds_decimals(self._adapter.core_schema)

    @cached_property
    def _common(self) -> CommonValues:
        return _common(self, output=False)

    @cached_property
    def _results(self) -> CommonValues:
        """Results, which have what a serializer of the user's code makes of them."""
        return _common(self, output=True)

    def load(self, value: Any, path: str) -> Any:
        """The value of a JSON value, by pydantic. It reads numbers as floats, so decimals come as texts."""
        from pydantic import ValidationError

        if self._has_decimals:
            value = with_text_decimals(self._adapter.core_schema, value, path)
        try:
            return self._adapter.validate_json(json.dumps(self._common.of(value, path)), strict=True)
        except ValidationError as error:
            raise ContractError(_problems(error, path)) from None

    def dump(self, value: Any, path: str) -> Any:
        """The JSON value by pydantic, with the aliases of fields."""
        if not self.is_class or not isinstance(value, self._class):
            value = self.load(plain(value, path), path)
        try:
            written = self._adapter.dump_python(value, mode="json", by_alias=True, warnings="error")
            kept = self._adapter.dump_python(value, by_alias=True) if may_hide_numbers(written) else None
        except ValueError as error:  # PydanticSerializationError: a field was set to another type
            raise ContractError(f"{path}: {' '.join(str(error).split())}") from None
        check_numbers(kept, path)
        return self._results.of(written, path)

    def has_decimals(self) -> bool:
        """Whether the schema of pydantic has any."""
        return self._has_decimals

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of pydantic, with decimals as they travel."""
        from asya.contracts.library_schemas import pydantic_schema

        return pydantic_schema(self._adapter, self._kind, context)

    def distance(self, value: Any) -> float | None:
        """The distance of the class; a type with constraints has none."""
        return distance(value, self._class) if self.is_class else None


class MsgspecCodec:
    """A struct, or a type with constraints of msgspec."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._class = typing.get_origin(kind) or kind
        self.is_class = hasattr(self._class, "__struct_fields__")

    @cached_property
    def _common(self) -> CommonValues:
        return _common(self, output=False)

    def load(self, value: Any, path: str) -> Any:
        """The value of a JSON value, by msgspec, which takes the digits of decimals from JSON alone."""
        import msgspec

        try:
            value = self._common.of(value, path)
            if has_exact(value):
                text = msgspec.json.encode(value, enc_hook=lambda number: msgspec.Raw(number.text.encode()))
                return msgspec.json.decode(text, type=self._kind)
            return msgspec.convert(value, self._kind, str_keys=True)
        except msgspec.ValidationError as error:
            problem, _, place = str(error).partition(" - at `$")
            missing = _MISSING.fullmatch(problem)
            field = f".{missing[1]}: missing" if missing else f": {problem}"
            raise ContractError(f"{path}{place.rstrip('`')}{field}") from None

    def dump(self, value: Any, path: str) -> Any:
        """The JSON value by msgspec, which does not validate structs when they are made."""
        import msgspec

        kept = None
        try:
            if has_exact(value):
                dumped = plain(value, path)
            else:
                dumped = plain(msgspec.to_builtins(value, str_keys=True), path)
                if may_hide_numbers(dumped):  # msgspec writes a decimal that is no number as a text
                    kept = msgspec.to_builtins(value, builtin_types=(Decimal,))
        except TypeError as error:
            raise ContractError(f"{path}: {error}") from None
        check_numbers(kept, path)
        return plain(msgspec.to_builtins(self.load(dumped, path), str_keys=True), path)

    def distance(self, value: Any) -> float | None:
        """The distance of the class; a type with constraints has none."""
        return distance(value, self._class) if self.is_class else None

    def has_decimals(self) -> bool:
        """Any of them may; msgspec itself finds where."""
        return True

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of msgspec, with decimals as they travel."""
        from asya.contracts.library_schemas import msgspec_schema

        return msgspec_schema(self._kind, context)


def _common(codec: PydanticCodec | MsgspecCodec, *, output: bool) -> CommonValues:
    context = SchemaContext(output=output)
    schema = codec.schema(context)
    return CommonValues({**schema, "$defs": context.definitions}, asserted=not output)


def _problems(error: Any, path: str) -> str:
    problems = error.errors(include_url=False, include_context=False)
    texts = [
        f"{path}{_place(item['loc'])}: {'missing' if item['type'] == 'missing' else item['msg']}"
        for item in problems[:_SHOWN_ERRORS]
    ]
    if len(problems) > _SHOWN_ERRORS:
        texts.append(f"and {len(problems) - _SHOWN_ERRORS} more")
    return "; ".join(texts)


def _place(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
