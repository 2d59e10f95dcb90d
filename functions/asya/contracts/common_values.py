"""Brings JSON values to what each library reads alike, by the JSON Schema of their type (`protocol §6.typed.strict`).

pydantic and msgspec differ at the edges, and from the schema that they publish: pydantic takes `"5"` for a `datetime`, msgspec
`"NaN"` for a `Decimal`, and both refuse `5.0` for an `int`. This module asserts the forms of strings and the values of enums,
and makes whole numbers ints. The library checks everything else.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from asya.contracts.codec import Schema
from asya.contracts.errors import ContractError, mismatch, shown
from asya.contracts.forms import FORMS, INTEGER_KEY, Form
from asya.protocol.numbers import is_same, whole

_TYPES: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
    type(None): ("null",),
}
_INTEGER_KEYS = f"^{INTEGER_KEY}$"


class CommonValues:
    """The values of one schema."""

    def __init__(self, schema: Schema, *, asserted: bool = True) -> None:
        """Take the schema with its definitions, and whether values that do not fit are refused or kept."""
        self._schema = schema
        self._asserted = asserted
        self._definitions: dict[str, Schema] = schema.get("$defs", {})

    def of(self, value: Any, path: str) -> Any:
        """The value that the library reads.

        Raises:
            ContractError: a string does not have its form, or a value is none of an enum; the message names the field.
        """
        return self._value(self._schema, value, path)

    def _value(self, schema: Any, value: Any, path: str) -> Any:  # noqa: PLR0911 - as below
        schema = self._resolved(schema)
        for part in schema.get("allOf", ()):
            value = self._value(part, value, path)
        if (options := schema.get("anyOf") or schema.get("oneOf")) is not None:
            return self._of_options(options, value, path)
        if "enum" in schema or "const" in schema:
            return self._member(schema.get("enum") or [schema.get("const")], value, path)
        match value:
            case float() if _allows(schema, "integer") and not _allows(schema, "number"):
                return whole(value)
            case int() if not isinstance(value, bool) and schema.get("type") == "number" and self._is_too_large(value):
                raise mismatch(path, "a number that a double can hold", value)
            case str() if (form := FORMS.get(schema.get("format", ""))) is not None:
                return self._read(form, value, path)
            case list():
                return self._array(schema, value, path)
            case dict():
                return self._object(schema, value, path)
        return value

    def _array(self, schema: Schema, value: list[Any], path: str) -> list[Any]:
        places, rest = schema.get("prefixItems", ()), schema.get("items", True)
        return [
            self._value(places[index] if index < len(places) else rest, item, f"{path}[{index}]")
            for index, item in enumerate(value)
        ]

    def _object(self, schema: Schema, value: dict[str, Any], path: str) -> dict[str, Any]:
        fields, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        keys = schema.get("propertyNames", True)
        for name in schema.get("required", ()) if self._asserted else ():
            # msgspec does without the tag of a struct that is alone.
            if name not in value and "enum" in self._resolved(fields.get(name)):
                raise ContractError(f"{path}.{name}: missing")
        return {
            key if key in fields else self._key(keys, key, f"{path} (a key)"): self._value(
                fields.get(key, rest), item, f"{path}.{key}"
            )
            for key, item in value.items()
        }

    def _key(self, schema: Any, key: str, path: str) -> Any:
        # pydantic takes "5.0" for the key of a whole number.
        is_whole = self._asserted and self._resolved(schema).get("pattern") == _INTEGER_KEYS
        if is_whole and not re.fullmatch(INTEGER_KEY, key):
            raise mismatch(path, "a whole number as a string", key)
        return self._value(schema, key, path)

    def _of_options(self, options: Sequence[Any], value: Any, path: str) -> Any:
        """The value for the option of a union that takes it, if possible as it is."""
        found, problems = [], []
        for option in options:
            if not self._has_type(option, value):
                continue
            try:
                common = self._value(option, value, path)
            except ContractError as error:
                problems.append(str(error))
                continue
            if self._fits(option, common):
                found.append(common)
        if not found and not problems and isinstance(value, bool) and self._asserted:
            raise mismatch(path, "of one of its types", value)  # pydantic takes true for 1
        if not found and problems:
            raise ContractError(
                problems[0] if len(problems) == 1 else f"{path}: fits none of its types: {'; '.join(problems)}"
            )
        # Of 5.0 for `int | float` the float is meant.
        unchanged = (each for each in found if type(each) is type(value) and each == value)
        return next(unchanged, found[0] if found else value)

    def _fits(self, schema: Any, value: Any) -> bool:  # noqa: PLR0911 - one for each kind of value
        """Whether a value has the types of JSON that a schema names, at each level, and the fields that it requires."""
        schema = self._resolved(schema)
        if (options := schema.get("anyOf") or schema.get("oneOf")) is not None:
            return any(self._fits(option, value) for option in options)
        if not self._has_type(schema, value):
            return False
        if "enum" in schema or "const" in schema:
            return any(is_same(each, value) for each in schema.get("enum") or [schema.get("const")])
        if isinstance(value, list):
            places, rest = schema.get("prefixItems", ()), schema.get("items", True)
            if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
                return False
            return all(
                self._fits(places[index] if index < len(places) else rest, item) for index, item in enumerate(value)
            )
        if isinstance(value, dict):
            fields, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
            has_required = all(name in value for name in schema.get("required", ()))
            return has_required and all(self._fits(fields.get(key, rest), item) for key, item in value.items())
        return True

    def _has_type(self, schema: Any, value: Any) -> bool:
        if schema is False:
            return False
        schema = self._resolved(schema)
        if "anyOf" in schema or "oneOf" in schema:
            return any(self._has_type(option, value) for option in schema.get("anyOf") or schema["oneOf"])
        if "type" not in schema:
            return True
        names = next((names for kind, names in _TYPES.items() if type(value) is kind), ())
        if isinstance(value, float):
            names = ("number", "integer") if value.is_integer() else ("number",)
        return any(_allows(schema, name) for name in names)

    def _is_too_large(self, value: int) -> bool:
        """Whether pydantic would make an infinity of a number."""
        try:
            return not math.isfinite(value) and self._asserted
        except OverflowError:
            return self._asserted

    def _member(self, values: Sequence[Any], value: Any, path: str) -> Any:
        for each in values:
            if is_same(each, value):
                return each
        if self._asserted:
            raise mismatch(path, " or ".join(map(shown, values)), value)
        return value

    def _read(self, form: Form, value: str, path: str) -> str:
        try:
            return form.read(value) if self._asserted else form.common(value)
        except (ValueError, ArithmeticError):
            if self._asserted:
                raise mismatch(path, form.title, value) from None
            return value

    def _resolved(self, schema: Any) -> Schema:
        while isinstance(schema, dict) and "$ref" in schema:
            schema = self._definitions.get(schema["$ref"].rpartition("/")[2], True)
        return schema if isinstance(schema, dict) else {}


def have_numbers(values: Iterable[Any]) -> bool:
    """Whether values of an enum have a number among them, which only the text of another number tells from it."""
    return any(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def _allows(schema: Schema, name: str) -> bool:
    declared = schema.get("type", ())
    return name == declared or (not isinstance(declared, str) and name in declared)
