"""JSON Schemas of the types of pydantic and msgspec, with the forms that travel."""

import json
from typing import Any

from asya.contracts.codec import Schema, SchemaContext

_REF = "#/$defs/"


def pydantic_schema(adapter: Any, kind: Any, context: SchemaContext) -> Schema:
    """The schema of a pydantic type."""
    from pydantic.json_schema import GenerateJsonSchema

    class _Generator(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> Any:  # noqa: ARG002
            return _decimal(context)

    mode = "serialization" if context.output else "validation"
    schema = adapter.json_schema(by_alias=True, ref_template=_REF + "{model}", schema_generator=_Generator, mode=mode)
    if context.output:
        _close(schema)
    return _merged(schema, kind, context)


def msgspec_schema(kind: Any, context: SchemaContext) -> Schema:
    """The schema of a msgspec type."""
    import msgspec

    (schema,), definitions = msgspec.json.schema_components((kind,), ref_template=_REF + "{name}")
    schema = {**schema, "$defs": definitions}
    _replace_decimals(schema, context)
    if context.output:
        _give_all(schema, kind)
        _close(schema)
    return _merged(schema, kind, context)


def _decimal(context: SchemaContext) -> Schema:
    return {"type": "string" if context.output else ["string", "number"], "format": "decimal"}


def _replace_decimals(schema: Any, context: SchemaContext) -> None:
    for each in _objects(schema):
        if each.get("format") == "decimal":
            each.update(_decimal(context))


def _give_all(schema: Schema, kind: Any) -> None:
    """Require all fields of results: structs give those with defaults too, unless they omit them."""
    config = getattr(kind, "__struct_config__", None)
    if config is None or config.omit_defaults:
        return
    for each in _objects(schema):
        if isinstance(each.get("properties"), dict) and each.get("type") == "object":
            each["required"] = list(each["properties"])


def _close(schema: Schema) -> None:
    """Say that results have no other keys than those of the schema."""
    for each in _objects(schema):
        if isinstance(each.get("properties"), dict) and each.get("type") == "object":
            each.setdefault("additionalProperties", False)


def _objects(schema: Any) -> list[Schema]:
    if isinstance(schema, dict):
        return [schema, *(inner for value in schema.values() for inner in _objects(value))]
    return [inner for item in schema for inner in _objects(item)] if isinstance(schema, list) else []


def _merged(schema: Schema, kind: Any, context: SchemaContext) -> Schema:
    """The schema without its definitions, which join those of the context, under other names if they clash."""
    definitions = schema.pop("$defs", {})
    if any(context.definitions.get(name, each) != each for name, each in definitions.items()):
        text, prefix = json.dumps([schema, definitions]), f"{getattr(kind, '__module__', 'type')}."
        schema, definitions = json.loads(text.replace(f'"{_REF}', f'"{_REF}{prefix}'))
        definitions = {prefix + name: each for name, each in definitions.items()}
    context.definitions.update(definitions)
    return schema
