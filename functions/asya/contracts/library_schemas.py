"""JSON Schemas of the types of pydantic and msgspec, with the forms that travel."""

import json
from collections.abc import Iterator
from typing import Any

from asya.contracts.codec import Schema, SchemaContext

_REF = "#/$defs/"
_TIMES = {"DateTimeType": "date-time", "TimeType": "time"}


def pydantic_schema(adapter: Any, kind: Any, context: SchemaContext) -> Schema:
    """The schema of a pydantic type."""
    from pydantic.json_schema import GenerateJsonSchema

    class _Generator(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> Any:  # noqa: ARG002
            return _decimal(context)

        def field_is_required(self, field: Any, total: bool) -> bool:
            """Results have the fields with defaults too."""
            if self.mode == "serialization" and field["type"] in ("model-field", "dataclass-field"):
                return not field.get("serialization_exclude")
            return bool(super().field_is_required(field, total))

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
    _name_times(msgspec.inspect.type_info(kind), schema, definitions)
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


def _name_times(info: Any, schema: Any, definitions: dict[str, Schema], known: frozenset[str] = frozenset()) -> None:
    """Name the format of each `datetime` and `time`: msgspec names only that of types with a constraint on the time zone."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        if name not in known:
            _name_times(info, definitions[name], definitions, known | {name})
        return
    if type(info).__name__ in _TIMES:
        schema["format"] = _TIMES[type(info).__name__]
    for each, option in _within(info, schema, definitions):
        _name_times(each, option, definitions, known)


def _within(info: Any, schema: Schema, definitions: dict[str, Schema]) -> Iterator[tuple[Any, Any]]:
    """The types within a type of msgspec, each with its schema."""
    for field in getattr(info, "fields", ()):
        yield field.type, schema.get("properties", {}).get(field.encode_name)
    for each in getattr(info, "types", ()):
        for option in schema.get("anyOf", ()):
            if _is_of(each, option, definitions):
                yield each, option
    for part, key in (("item_type", "items"), ("value_type", "additionalProperties")):
        if hasattr(info, part):
            yield getattr(info, part), schema.get(key)
    if type(info).__name__ == "Metadata":
        yield info.type, schema


def _is_of(info: Any, option: Schema, definitions: dict[str, Schema]) -> bool:
    """Whether an option of a union is the schema of a type. A union has one type at most whose values are strings."""
    if "$ref" in option:
        title = definitions[option["$ref"].removeprefix(_REF)].get("title")
        return title == getattr(getattr(info, "cls", None), "__name__", None)
    if type(info).__name__ in _TIMES:
        return option.get("type") == "string"
    return option.get("type") == ("array" if hasattr(info, "item_type") else "object")


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
