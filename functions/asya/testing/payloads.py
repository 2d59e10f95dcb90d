"""Builds payloads from the models of handlers."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from asya.contracts.annotations import codec_of
from asya.contracts.codec import plain
from asya.contracts.errors import ContractError
from asya.contracts.forms import (
    AWARE_DATE_TIME,
    AWARE_TIME,
    DATE_TIME,
    DURATION,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    TIME,
)
from asya.contracts.function import input_schema
from asya.testing.errors import TestKitError

_TEXTS = {
    "uuid": "00000000-0000-4000-8000-000000000001",
    "decimal": "1.00",
    "date": "2026-01-02",
    **{form.format: "2026-01-02T03:04:05Z" for form in (DATE_TIME, AWARE_DATE_TIME)},
    LOCAL_DATE_TIME.format: "2026-01-02T03:04:05",
    **{form.format: "03:04:05" for form in (TIME, LOCAL_TIME)},
    AWARE_TIME.format: "03:04:05Z",
    **dict.fromkeys(("duration", DURATION.format), "PT1S"),
    **dict.fromkeys(("email", "idn-email"), "someone@example.com"),
    **dict.fromkeys(("uri", "url"), "https://example.com/"),
}


def payload_of(model: Any, **fields: Any) -> Any:
    """A payload that fits a model: its required fields have plausible values, and the others keep their defaults.

        payload_of(Order, total=Decimal("9.50"))  # {"id": "text", "total": "9.50", "lines": []}

    Args:
        model: a pydantic model, a dataclass, a TypedDict, a msgspec struct, or any annotation of a handler.
        fields: the values that matter to the test.

    Raises:
        TestKitError: the payload does not fit, because of a given field or because the model asks for more than its schema can
            say, such as a pattern; the message names the field to give.
    """
    schema = input_schema(model)
    definitions = schema.get("$defs", {})
    # A type within itself is a definition too.
    whole = {key: each for key, each in schema.items() if key != "$defs"}
    try:
        value = _Examples(definitions, [name for name, each in definitions.items() if each == whole]).of(schema)
    except _RecursiveError as error:
        raise TestKitError(f"{_name(model)} contains {error} for ever; write this payload by hand") from None
    if fields:
        value = {**(value if isinstance(value, Mapping) else {}), **plain(fields, "payload")}
    try:
        codec_of(model).load(value, "payload")
    except ContractError as error:
        raise TestKitError(f"{error}; give a value that fits: payload_of({_name(model)}, field=…)") from None
    return value


class _RecursiveError(Exception):
    """A type contains itself without an end."""


class _Examples:
    """Builds examples of schemas; of a type within itself, the first choice that ends."""

    def __init__(self, definitions: Mapping[str, Any], within: Sequence[str]) -> None:
        """Take the definitions of a document, and the names of those that the whole document is."""
        self._definitions = definitions
        self._open = list(within)

    def of(self, schema: Mapping[str, Any]) -> Any:
        """An example of a schema.

        Raises:
            _RecursiveError: no example ends.
        """
        if "$ref" in schema:
            return self._of_definition(schema["$ref"].rpartition("/")[2])
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        if (choices := schema.get("anyOf") or schema.get("oneOf")) is not None:
            return self._of_choices(choices)
        if "allOf" in schema:
            return self.of({key: value for part in schema["allOf"] for key, value in part.items()})
        return self._of_type(schema)

    def _of_definition(self, name: str) -> Any:
        if name in self._open:
            raise _RecursiveError(name)
        self._open.append(name)
        try:
            return self.of(self._definitions[name])
        finally:
            self._open.pop()

    def _of_choices(self, choices: Sequence[Mapping[str, Any]]) -> Any:
        for choice in choices[:-1]:
            with suppress(_RecursiveError):
                return self.of(choice)
        return self.of(choices[-1])

    def _of_type(self, schema: Mapping[str, Any]) -> Any:
        kinds = schema.get("type")
        match kinds[0] if isinstance(kinds, list) else kinds:
            case "object":
                return {name: self.of(schema["properties"][name]) for name in schema.get("required", [])}
            case "array":
                first = [self.of(item) for item in schema.get("prefixItems", [])]
                more = max(0, schema.get("minItems", 0) - len(first))
                return [*first, *(self.of(schema.get("items", {})) for _ in range(more))]
            case "string":
                return _text(schema)
            case "integer" | "number" as kind:
                return _number(schema, 1) if kind == "integer" else float(_number(schema, 1))
            case "boolean":
                return True
            case _:
                return None


def _text(schema: Mapping[str, Any]) -> str:
    if schema.get("contentEncoding") == "base64" or schema.get("format") in ("base64", "base64url"):
        return "dGV4dA=="
    text = _TEXTS.get(schema.get("format", ""), "text")
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]


def _number(schema: Mapping[str, Any], usual: int) -> int | float:
    """A number between the bounds; the usual one if they allow it."""
    step = 1 if schema.get("type") == "integer" else 0.5
    low = max(
        schema.get("minimum", usual), schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else usual
    )
    high = min(schema.get("maximum", low), schema["exclusiveMaximum"] - step if "exclusiveMaximum" in schema else low)
    return int(min(low, high)) if schema.get("type") == "integer" else min(low, high)


def _name(model: Any) -> str:
    return str(getattr(model, "__name__", model))
