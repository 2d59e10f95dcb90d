"""The Spark type of a contract, in Spark's own JSON form. Spark is not needed, so synthesis finds types without one too.

The type is made from the JSON Schema of the values that a model gives, so it is the same whichever library the model is made
with.
"""

import re
from typing import Any

from asya.contracts.annotations import codec_of
from asya.contracts.codec import Schema, SchemaContext
from asya.contracts.forms import DATE_TIMES

SparkType = str | dict[str, Any]

DECIMAL = "decimal(38,18)"
"""20 digits before the point and 18 after it: the precision that Spark gives a `Decimal` of Python."""

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_SCALARS = {"integer": "long", "number": "double", "boolean": "boolean", "string": "string"}
_FORMATS = {
    "decimal": DECIMAL,
    "date": "date",
    **dict.fromkeys((form.format for form in DATE_TIMES), "timestamp"),
    "base64": "binary",
}
_KINDS: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
_TEXT_BYTES = (
    "bytes that pydantic takes as text have no Spark type; annotate them as pydantic.Base64Bytes, the form that travels"
)


class NoSparkTypeError(TypeError):
    """A type has no Spark type; the message names the field."""


def is_name(declared: str) -> bool:
    """Whether a `payload_schema` is the name of a model: names joined by dots, which no DDL text is."""
    return _NAME.fullmatch(declared) is not None


def spark_type(annotation: Any) -> SparkType:
    """The Spark type of the values of a model, or of any annotation.

    Raises:
        NoSparkTypeError: it, or a type within it, has none.
    """
    context = SchemaContext(output=True)
    schema = codec_of(annotation).schema(context)
    return _Types(context.definitions).of(schema, "payload")[0]


class _Types:
    """The Spark types of the schemas of one document."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions
        self._open: list[str] = []

    def of(self, schema: Schema, path: str) -> tuple[SparkType, bool]:
        """The Spark type of a schema, and whether a value may be null."""
        if "$ref" in schema:
            return self._of_definition(schema["$ref"].rpartition("/")[2], path)
        if len(schema.get("allOf", ())) == 1:
            return self.of(schema["allOf"][0], path)
        if options := schema.get("anyOf") or schema.get("oneOf"):
            return self._of_options(options, path)
        if "enum" in schema or "const" in schema:
            return self._of_values(schema.get("enum") or [schema["const"]], path)
        return self._of_type(schema, path), False

    def _of_definition(self, name: str, path: str) -> tuple[SparkType, bool]:
        if name in self._open:
            raise NoSparkTypeError(f"{path}: {name} contains itself, which no Spark type does")
        self._open.append(name)
        try:
            return self.of(self._definitions[name], path)
        finally:
            self._open.pop()

    def _of_options(self, options: list[Schema], path: str) -> tuple[SparkType, bool]:
        others = [each for each in options if each.get("type") != "null"]
        if len(others) != 1:
            raise NoSparkTypeError(f"{path}: a union of {len(others)} types has no Spark type; declare one of them")
        return self.of(others[0], path)[0], True

    def _of_values(self, values: list[Any], path: str) -> tuple[SparkType, bool]:
        kinds = {_KINDS.get(type(value), "") for value in values if value is not None}
        if len(kinds) != 1 or "" in kinds:
            raise NoSparkTypeError(f"{path}: values of several types have no Spark type; declare values of one type")
        return _SCALARS[kinds.pop()], None in values

    def _of_type(self, schema: Schema, path: str) -> SparkType:
        kind = schema.get("type")
        if kind == "string":
            if schema.get("format") in ("binary", "base64url"):
                raise NoSparkTypeError(f"{path}: {_TEXT_BYTES}")
            form = schema.get("contentEncoding") or schema.get("format", "")
            return _FORMATS.get(form, "string")
        if kind == "object" and (schema.get("properties") or isinstance(schema.get("additionalProperties"), dict)):
            return self._struct(schema, path) if schema.get("properties") else self._map(schema, path)
        if kind == "array" and isinstance(schema.get("items"), dict) and "prefixItems" not in schema:
            item, has_nulls = self.of(schema["items"], f"{path}[]")
            return {"type": "array", "elementType": item, "containsNull": has_nulls}
        if isinstance(kind, str) and kind in _SCALARS:
            return _SCALARS[kind]
        raise NoSparkTypeError(f"{path}: {_described(schema)} has no Spark type; declare what it holds")

    def _struct(self, schema: Schema, path: str) -> SparkType:
        fields = []
        for name, each in schema["properties"].items():
            kind, has_nulls = self.of(each, f"{path}.{name}")
            nullable = has_nulls or name not in schema.get("required", ())
            fields.append({"name": name, "type": kind, "nullable": nullable, "metadata": {}})
        return {"type": "struct", "fields": fields}

    def _map(self, schema: Schema, path: str) -> SparkType:
        value, has_nulls = self.of(schema["additionalProperties"], f"{path}.*")
        return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": has_nulls}


def _described(schema: Schema) -> str:
    names = {"null": "null alone", "array": "a tuple or a list of anything", "object": "an object of anything"}
    return names.get(str(schema.get("type")), "a value of any type")
