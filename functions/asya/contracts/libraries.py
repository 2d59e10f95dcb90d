"""Codecs of the types of pydantic and msgspec, which come with the user's packages and validate by themselves.

pydantic reads each number of JSON as a float, so those for decimals are given as texts. The core schema of a type
says where they are. It writes a float that is no number as null, and such a decimal as a text, so these are found
before.
"""

import json
import math
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any

from asya.contracts.codec import Schema, SchemaContext, decimal_text, distance, plain
from asya.contracts.common_values import CommonValues, have_numbers
from asya.contracts.errors import ContractError
from asya.protocol.numbers import ExactNumber, has_exact

CoreSchema = Mapping[str, Any]

_NO_NUMBERS = frozenset({"NaN", "Infinity"})
# What the types that take numbers or texts make of a value.
_KINDS = {"decimal": "decimal", "float": "number", "any": "number", "str": "text"}


def holds_decimals(schema: Any) -> bool:
    """Whether a core schema has a decimal anywhere, a whole number, which JSON may write with a point, or one of a choice."""
    if isinstance(schema, Mapping):
        kind = schema.get("type")
        if kind in ("literal", "enum"):
            values = schema["expected"] if kind == "literal" else [each.value for each in schema["members"]]
            return have_numbers(values)
        return kind in ("decimal", "int") or any(holds_decimals(each) for each in schema.values())
    return isinstance(schema, list | tuple) and any(holds_decimals(each) for each in schema)


def with_text_decimals(schema: CoreSchema, value: Any, path: str) -> Any:
    """A JSON value with the text of each number that is a decimal only.

    A number for a union with `float` stays a number. So does one for a union of a text and a decimal, in this order.

    Raises:
        ContractError: a number for a union of a text and a decimal has more digits than a float gives back.
    """
    if not has_exact(value):
        return value
    kinds = _Kinds()
    kinds.note(schema, value)
    return _with_texts(value, kinds.known, path)


def may_hide_numbers(dumped: Any) -> bool:
    """Whether a dumped value has what pydantic writes in the place of a float or a decimal that is no number: null or a text."""
    match dumped:
        case dict():
            return any(map(may_hide_numbers, dumped.values()))
        case list():
            return any(map(may_hide_numbers, dumped))
        case _:
            return dumped is None or (isinstance(dumped, str) and dumped.strip("-+s") in _NO_NUMBERS)


def check_numbers(value: Any, path: str) -> None:
    """Check that each float and each decimal of a value, dumped for Python, is a number.

    Raises:
        ContractError: one is none.
    """
    match value:
        case Decimal():
            decimal_text(value, path)
        case float() if not math.isfinite(value):
            raise ContractError(f"{path}: {value} has no form in JSON")
        case dict():
            for key, item in value.items():
                check_numbers(item, f"{path}.{key}")
        case list() | tuple() | set() | frozenset():
            for index, item in enumerate(value):
                check_numbers(item, f"{path}[{index}]")


def _with_texts(value: Any, kinds: Mapping[int, list[str]], path: str) -> Any:
    match value:
        case ExactNumber():
            return _text(value, kinds.get(id(value), []), path)
        case dict():
            return {key: _with_texts(item, kinds, f"{path}.{key}") for key, item in value.items()}
        case list():
            return [_with_texts(item, kinds, f"{path}[{index}]") for index, item in enumerate(value)]
        case _:
            return value


def _text(number: ExactNumber, kinds: list[str], path: str) -> Any:
    if "decimal" not in kinds or "number" in kinds:
        return number
    if kinds[0] == "decimal":
        return number.text  # of a union pydantic takes the first type that fits
    if number.decimal() == Decimal(repr(float(number))):
        return number  # as a text it would be the text of the union
    raise ContractError(
        f"{path}: {number} has more digits than a float, and its type takes a text before a decimal; send it as a text"
    )


class _Kinds:
    """What the types of a schema make of each number of a value."""

    def __init__(self) -> None:
        self.known: dict[int, list[str]] = {}
        self._definitions: dict[str, CoreSchema] = {}

    def note(self, schema: CoreSchema, value: Any) -> None:
        """Note the kinds of the numbers in a value."""
        kind = schema.get("type", "")
        if isinstance(value, ExactNumber) and kind in _KINDS:
            self.known.setdefault(id(value), []).append(_KINDS[kind])
        match kind:
            case "definitions":
                self._definitions |= {each["ref"]: each for each in schema["definitions"]}
                self.note(schema["schema"], value)
            case "definition-ref":
                self.note(self._definitions.get(schema["schema_ref"], {}), value)
            case "union" | "tagged-union":
                for option in _options(schema, value):
                    self.note(option, value)
            case "chain":
                self.note(schema["steps"][0], value)
            case "lax-or-strict" | "json-or-python":
                self.note(schema["strict_schema" if kind == "lax-or-strict" else "json_schema"], value)
            case "dict":
                self._note_items(schema.get("values_schema"), value.values() if isinstance(value, dict) else ())
            case "tuple":
                self._note_tuple(schema, value)
            case "model-fields" | "typed-dict" | "dataclass-args":
                self._note_fields(schema, value)
            case _ if "items_schema" in schema:
                self._note_items(schema["items_schema"], value if isinstance(value, list) else ())
            case _ if "schema" in schema:
                self.note(schema["schema"], value)

    def _note_items(self, schema: CoreSchema | None, items: Iterable[Any]) -> None:
        for item in items:
            if schema is not None:
                self.note(schema, item)

    def _note_tuple(self, schema: CoreSchema, value: Any) -> None:
        kinds, variadic = schema["items_schema"], schema.get("variadic_item_index")
        if not isinstance(value, list):
            return
        if variadic is not None:
            more = max(0, len(value) - len(kinds) + 1)
            kinds = [*kinds[:variadic], *[kinds[variadic]] * more, *kinds[variadic + 1 :]]
        for kind, item in zip(kinds, value, strict=False):
            self.note(kind, item)

    def _note_fields(self, schema: CoreSchema, value: Any) -> None:
        if not isinstance(value, dict):
            return
        fields = schema["fields"]
        named = fields.items() if isinstance(fields, Mapping) else [(each["name"], each) for each in fields]
        for name, field in named:
            for item in _given(name, field, value):
                self.note(field["schema"], item)
        extras = schema.get("extras_schema")
        self._note_items(extras, [item for key, item in value.items() if key not in dict(named)])


def _options(schema: CoreSchema, value: Any) -> list[CoreSchema]:
    choices = schema["choices"]
    if isinstance(choices, Mapping):
        discriminator = schema["discriminator"]
        tag = value.get(discriminator) if isinstance(value, dict) and isinstance(discriminator, str) else None
        return [choices[tag]] if isinstance(tag, str) and tag in choices else list(choices.values())
    return [each[0] if isinstance(each, tuple) else each for each in choices]


def _given(name: str, field: CoreSchema, value: dict[str, Any]) -> Iterator[Any]:
    """What a value has for a field, by its name and by each of its aliases."""
    alias = field.get("validation_alias")
    paths: list[Any] = [[name]]
    if isinstance(alias, str):
        paths.append([alias])
    elif alias:
        paths += alias if isinstance(alias[0], list) else [alias]
    for path in paths:
        found: Any = value
        for part in path:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError):
                break
        else:
            yield found


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
