"""JSON Schemas of the types of pydantic and msgspec, with the forms that travel."""

import json
from collections.abc import Iterator
from typing import Any

from asya.contracts import forms
from asya.contracts.codec import Schema, SchemaContext
from asya.contracts.forms import FORMS, Form

_REF = "#/$defs/"
_DATE_TIMES = {None: forms.DATE_TIME, True: forms.AWARE_DATE_TIME, False: forms.LOCAL_DATE_TIME}
_TIMES = {None: forms.TIME, True: forms.AWARE_TIME, False: forms.LOCAL_TIME}
_KEYS: dict[str, Schema] = {"int": {"pattern": f"^{forms.INTEGER_KEY}$"}, "decimal": {"format": "decimal"}}
_KEY_FORMS = {"DateType": forms.DATE, "UUIDType": forms.UUID, "DecimalType": forms.DECIMAL}
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_UNSET = "asya:unset"  # of a field that a result may lack, while its schema is made
_OWN_CHECKS = {"email": "idn-email", "uri": "url"}


def pydantic_schema(adapter: Any, kind: Any, context: SchemaContext) -> Schema:
    """The schema of a pydantic type."""
    from pydantic.json_schema import GenerateJsonSchema

    class _Generator(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> Any:
            return _decimal(context) | _bounds(schema, context)

        def datetime_schema(self, schema: Any) -> Any:
            return {"type": "string", "format": _DATE_TIMES[_zone(schema)].format}

        def time_schema(self, schema: Any) -> Any:
            return {"type": "string", "format": _TIMES[_zone(schema)].format}

        def timedelta_schema(self, schema: Any) -> Any:  # noqa: ARG002
            return {"type": "string", "format": forms.DURATION.format}

        def dict_schema(self, schema: Any) -> Any:
            keys = _KEYS.get(schema.get("keys_schema", {}).get("type"))
            return super().dict_schema(schema) | ({"propertyNames": dict(keys)} if keys is not None else {})

        def field_is_required(self, field: Any, total: bool) -> bool:
            """Results have the fields with defaults too."""
            if self.mode == "serialization" and field["type"] in ("model-field", "dataclass-field"):
                return not field.get("serialization_exclude")
            return bool(super().field_is_required(field, total))

    mode = "serialization" if context.output else "validation"
    schema = adapter.json_schema(by_alias=True, ref_template=_REF + "{model}", schema_generator=_Generator, mode=mode)
    if context.output:
        _close(schema)
    _say_forms(schema, context)
    return _merged(schema, kind, context)


def msgspec_schema(kind: Any, context: SchemaContext) -> Schema:
    """The schema of a msgspec type."""
    import msgspec

    (schema,), definitions = msgspec.json.schema_components((kind,), ref_template=_REF + "{name}")
    schema = {**schema, "$defs": definitions}
    _name_forms(msgspec.inspect.type_info(kind), schema, definitions)
    _replace_decimals(schema, context)
    if context.output:
        _give_all(schema, kind)
        _close(schema)
    for each in _objects(schema):
        each.pop(_UNSET, None)
    _say_forms(schema, context)
    return _merged(schema, kind, context)


def _decimal(context: SchemaContext) -> Schema:
    return {"type": "string" if context.output else ["string", "number"], "format": "decimal"}


def _bounds(schema: Any, context: SchemaContext) -> Schema:
    """The bounds of a decimal that comes as a number. JSON Schema has none for strings."""
    return {} if context.output else {_BOUNDS[key]: float(schema[key]) for key in _BOUNDS if key in schema}


def _zone(schema: Any) -> bool | None:
    """Whether a time of pydantic has an offset; None if it may have one."""
    constraint = schema.get("tz_constraint")
    return None if constraint is None else constraint != "naive"


def _say_forms(schema: Schema, context: SchemaContext) -> None:
    """Say the form of each string by a pattern, and nothing that the library itself does not check."""
    for each in _objects(schema):
        # The checks of pydantic for these are code: they take names of hosts in any script.
        if each.get("format") in _OWN_CHECKS:
            each["format"] = _OWN_CHECKS[each["format"]]
        form = FORMS.get(each.get("format", "")) or (forms.BASE64 if each.get("contentEncoding") == "base64" else None)
        if form is not None and form.pattern is not None:
            each.setdefault("pattern", form.schema()["pattern"])
        # An array with equal items is a set, too.
        if not context.output and each.get("type") == "array":
            each.pop("uniqueItems", None)
        patterns = each.get("patternProperties")
        if isinstance(patterns, dict) and len(patterns) == 1 and each.get("type") == "object":
            ((pattern, values),) = each.pop("patternProperties").items()
            each["additionalProperties"] = values
            each["propertyNames"] = {**each.get("propertyNames", {}), "pattern": pattern}


def _replace_decimals(schema: Any, context: SchemaContext) -> None:
    for each in _objects(schema):
        if each.get("format") == "decimal" and "type" in each:
            each.update(_decimal(context))


def _name_forms(info: Any, schema: Any, definitions: dict[str, Schema], known: frozenset[str] = frozenset()) -> None:
    """Name the format of each time and duration, and that of keys. msgspec names few of them."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        if name not in known:
            _name_forms(info, definitions[name], definitions, known | {name})
        return
    form = _form(info)
    if form is not None:
        schema["format"] = form.format
    if type(info).__name__ == "DictType":
        keys = _keys(info.key_type)
        if keys is not None:
            schema["propertyNames"] = keys
    for field in getattr(info, "fields", ()):
        # Without a default and not required: a field whose default is UNSET, which msgspec shows nowhere.
        has_none = field.default is field.default_factory
        if has_none and not field.required and field.encode_name in schema.get("properties", {}):
            schema["properties"][field.encode_name][_UNSET] = True
    for each, option in _within(info, schema, definitions):
        _name_forms(each, option, definitions, known)


def _form(info: Any) -> Form | None:
    """The form of a type of msgspec that is a time or a duration."""
    match type(info).__name__:
        case "DateTimeType":
            return _DATE_TIMES[info.tz]
        case "TimeType":
            return _TIMES[info.tz]
        case "TimeDeltaType":
            return forms.DURATION
    return None


def _keys(info: Any) -> Schema | None:
    """The schema of the keys of a type of msgspec; None for any string."""
    form = _form(info) or _KEY_FORMS.get(type(info).__name__)
    if form is not None:
        return {"format": form.format}
    match type(info).__name__:
        case "IntType":
            return dict(_KEYS["int"])
        case "LiteralType":
            return {"enum": [str(value) for value in info.values]}
        case "EnumType":
            return {"enum": [str(member.value) for member in info.cls]}
    return None


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
    if _form(info) is not None:
        return option.get("type") == "string"
    return option.get("type") == ("array" if hasattr(info, "item_type") else "object")


def _give_all(schema: Schema, kind: Any) -> None:
    """Require all fields of results: structs give those with defaults too, unless they omit them."""
    config = getattr(kind, "__struct_config__", None)
    if config is None or config.omit_defaults:
        return
    for each in _objects(schema):
        if isinstance(each.get("properties"), dict) and each.get("type") == "object":
            each["required"] = [name for name, field in each["properties"].items() if not field.pop(_UNSET, False)]


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
