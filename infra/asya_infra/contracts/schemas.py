"""Views of a JSON Schema: what it refers to, and what people call it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asya.contracts.forms import DATE_TIMES, DURATION, TIMES

Schema = dict[str, Any]

FORMATS = {
    "decimal": "Decimal",
    "uuid": "UUID",
    "date": "date",
    **dict.fromkeys((form.format for form in DATE_TIMES), "datetime"),
    **dict.fromkeys((form.format for form in TIMES), "time"),
    **dict.fromkeys((DURATION.format, "duration"), "timedelta"),
}
"""The types of Python by the formats of their strings."""
_NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}
# What these say of a value is not understood here, so a schema with one of them is not known.
_NOT_UNDERSTOOD = ("not", "if", "dependentSchemas", "patternProperties", "$dynamicRef")
_KINDS: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


@dataclass(frozen=True)
class Typed:
    """A schema within its document."""

    schema: Any
    root: Schema

    @property
    def is_known(self) -> bool:
        """Whether the schema says something that is understood."""
        return isinstance(self.schema, dict) and bool(self.schema) and not self.schema.keys() & set(_NOT_UNDERSTOOD)

    def within(self, schema: Any) -> "Typed":
        """Another schema of the document, with its reference resolved."""
        for _ in range(20):
            if not isinstance(schema, dict):
                break
            if "$ref" in schema:
                schema = self._referred(schema["$ref"])
            elif len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            else:
                break
        if isinstance(schema, dict) and ("$ref" in schema or "allOf" in schema):
            schema = {}
        return Typed(schema, self.root)

    def _referred(self, reference: str) -> Any:
        value: Any = self.root
        for part in reference.removeprefix("#/").split("/") if reference != "#" else ():
            value = value.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
        return value if value is not None else {}

    def options(self) -> list["Typed"]:
        """The members of a union; the schema itself if it is none."""
        for keyword in ("anyOf", "oneOf"):
            if keyword in self.schema:
                return [option for each in self.schema[keyword] for option in _own_options(self.within(each))]
        return [self]

    @property
    def types(self) -> set[str]:
        """The types of JSON that values may have; empty if not known."""
        declared = self.schema.get("type", ())
        if declared:
            return {declared} if isinstance(declared, str) else set(declared)
        values = self.values
        return {_KINDS.get(type(value), "object") for value in values} if values is not None else set()

    @property
    def values(self) -> list[Any] | None:
        """The values of an enum; None without one."""
        if "const" in self.schema:
            return [self.schema["const"]]
        found = self.schema.get("enum")
        return list(found) if found is not None else None

    @property
    def properties(self) -> dict[str, Any]:
        """The fields of an object."""
        return dict(self.schema.get("properties", {}))

    @property
    def required(self) -> list[str]:
        """The fields that each object has."""
        return list(self.schema.get("required", ()))

    @property
    def others(self) -> Any:
        """The schema of other fields: False for none."""
        return self.schema.get("additionalProperties", True)


def typed(schema: Schema) -> Typed:
    """The whole of a document. A type that contains itself is one of the definitions too, and is taken from there."""
    whole = {key: value for key, value in schema.items() if key != "$defs"}
    return Typed(schema, schema).within(
        next((each for each in schema.get("$defs", {}).values() if each == whole), schema)
    )


def closed(schema: Any) -> Any:
    """A schema whose objects have the declared fields alone, unless they say otherwise."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: value if key in ("enum", "const", "default") else closed(value) for key, value in schema.items()}
    if isinstance(inner.get("properties"), dict) and inner["properties"] and "type" in inner:
        inner.setdefault("additionalProperties", False)
    return inner


def name_of(one: Typed) -> str:  # noqa: PLR0911 - one for each form of a schema
    """The type as Python calls it."""
    if not one.is_known:
        return "Any"
    options = one.options()
    if len(options) > 1:
        return " | ".join(dict.fromkeys(name_of(each) for each in options))
    if one.values is not None:
        return " or ".join(repr(value) for value in one.values)
    if one.schema.get("format") in FORMATS:
        return FORMATS[one.schema["format"]]
    if one.types == {"array"} and "items" in one.schema:
        return f"list[{name_of(one.within(one.schema['items']))}]"
    if one.types == {"object"} and "title" in one.schema:
        return str(one.schema["title"])
    return " | ".join(_names(one.types)) or "Any"


def _names(types: set[str]) -> Iterator[str]:
    return (_NAMES.get(each, each) for each in sorted(types))


def _own_options(one: Typed) -> list[Typed]:
    return one.options() if one.is_known else [one]
