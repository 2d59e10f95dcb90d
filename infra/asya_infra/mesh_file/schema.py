"""The JSON Schema of the mesh file, for editors. `python -m asya_infra.mesh_file.schema` writes it to `docs/reference/`."""

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import StringSchema

from asya.registry import PRODUCT
from asya_infra.mesh_file.capability_model import mesh_model
from asya_infra.mesh_file.forms import DURATION_SCHEMA, SIZE_SCHEMA, format_duration
from asya_infra.mesh_file.mesh_model import GatewaySection, MeshFile
from asya_infra.mesh_file.sections import json_schema
from asya_infra.mesh_file.source import FIXED_KEYS, KEY
from asya_infra.product.places import FILES

PATH = FILES / "docs" / "reference" / "mesh.schema.json"
_REFERENCE = "#/$defs/"


class _SchemaOfTheFile(GenerateJsonSchema):
    """Accepts any scalar for text, because the mesh file reads it as it is written: `3.10` needs no quotes."""

    def str_schema(self, schema: StringSchema) -> JsonSchemaValue:
        """Return the schema of a key that takes text."""
        return {**super().str_schema(schema), "type": ["string", "number", "boolean"]}


def schema_text(model: type[MeshFile] | None = None) -> str:
    """Return the schema as JSON text.

    Args:
        model: the model of a mesh with capabilities of its own; None for the product's.
    """
    schema = json_schema(model or mesh_model(PRODUCT), _SchemaOfTheFile)
    _restore_file_units(schema)
    _describe_stages(schema)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _restore_file_units(schema: Any) -> None:
    """Describe values in the form of the file (`30s`, `256k`), not in the model's seconds and bytes."""
    if isinstance(schema, list):
        for value in schema:
            _restore_file_units(value)
    elif isinstance(schema, dict):
        pattern, default = schema.get("pattern"), schema.get("default")
        if pattern in {DURATION_SCHEMA["pattern"], SIZE_SCHEMA["pattern"]}:
            for bound in ("minimum", "maximum", "exclusiveMinimum"):
                schema.pop(bound, None)
        if pattern == DURATION_SCHEMA["pattern"] and isinstance(default, float):
            schema["default"] = format_duration(default)
        if schema.get("default") == GatewaySection().max_body:
            schema["default"] = f"{GatewaySection().max_body // 1024}k"
        if "$ref" in schema:
            schema.pop("default", None)  # each key of the section has its own default
        for value in schema.values():
            _restore_file_units(value)


def _describe_stages(schema: dict[str, Any]) -> None:
    """Describe a stage: the keys of the mesh file, none of them required, because the base may have them."""
    sections: dict[str, Any] = schema["$defs"]
    keys = {key: value for key, value in schema["properties"].items() if key not in FIXED_KEYS}
    stage = {"additionalProperties": False, "properties": keys, "title": "Stage", "type": "object"}
    with_required = _with_required_keys(sections)
    added = {"Stage": _without_required(stage, with_required)}
    while missing := sorted(_references(added) - sections.keys() - added.keys()):
        for name in missing:
            added[name] = _without_required(sections[name.removeprefix("Stage")], with_required)
    sections |= added
    schema["properties"][KEY]["additionalProperties"] = {"$ref": f"{_REFERENCE}Stage"}


def _with_required_keys(sections: dict[str, Any]) -> set[str]:
    """Return the sections that have required keys, or contain a section that has."""
    found = {name for name, section in sections.items() if "required" in section}
    while more := {name for name, section in sections.items() if _references(section) & found} - found:
        found |= more
    return found


def _references(schema: Any) -> set[str]:
    """Return the sections that a schema refers to, without those in lists: a stage replaces a whole list."""
    if isinstance(schema, list):
        return {name for value in schema for name in _references(value)}
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"].removeprefix(_REFERENCE)} if "$ref" in schema else set()
    return own.union(*(_references(value) for key, value in schema.items() if key != "items"))


def _without_required(schema: dict[str, Any], with_required: set[str]) -> dict[str, Any]:
    """Return the schema of a value that a stage overrides: without required keys at any depth, and without defaults."""
    kept = {key: value for key, value in schema.items() if key not in ("required", "minProperties", "default")}
    if (name := kept.get("$ref", "").removeprefix(_REFERENCE)) in with_required:
        kept["$ref"] = f"{_REFERENCE}Stage{name}"
    if "properties" in kept:
        kept["properties"] = {key: _without_required(value, with_required) for key, value in kept["properties"].items()}
    if isinstance(kept.get("additionalProperties"), dict):
        kept["additionalProperties"] = _without_required(kept["additionalProperties"], with_required)
    if "anyOf" in kept:
        kept["anyOf"] = [_without_required(option, with_required) for option in kept["anyOf"]]
    return kept


if __name__ == "__main__":
    PATH.write_text(schema_text(), encoding="utf-8")
