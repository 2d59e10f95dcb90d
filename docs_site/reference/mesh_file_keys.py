"""The page of all keys of the mesh file: type, default, limits and meaning, from its JSON Schema."""

import json
from collections.abc import Iterator

from asya_infra.mesh_file.schema import schema_text
from docs_site.reference.tables import Schema, code, default_of, limits_of, reference, table, type_of

INTRODUCTION = """\
# Keys of the mesh file

Every key of `mesh.yaml` with its type, default and limits, from the models that read the file. [The mesh file](../mesh-file.md)
explains what the keys do together. A key without a default may be left out, unless it is required.
"""


def schema() -> Schema:
    """Return the JSON Schema of the mesh file."""
    result: Schema = json.loads(schema_text())
    return result


def keys(definition: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the keys of a section, and those of its patterns."""
    yield from definition.get("properties", {}).items()
    yield from definition.get("patternProperties", {}).items()


def page() -> str:
    """Write the page."""
    document = schema()
    lines = [INTRODUCTION, *_section("MeshFile", document, document["$defs"])]
    for name, definition in sorted(document["$defs"].items()):
        lines += _section(name, definition, document["$defs"])
    return "\n".join(lines)


def _meaning(value: Schema, definitions: Schema) -> str:
    """The description of a key; without one, that of its section."""
    for each in (value, *value.get("anyOf", ()), value.get("additionalProperties")):
        target = reference(each) if isinstance(each, dict) else None
        if text := value.get("description") or (definitions[target].get("description") if target else ""):
            return str(text)
    return ""


def _section(name: str, definition: Schema, definitions: Schema) -> list[str]:
    lines = [f"## {name}", "", definition.get("description", ""), ""]
    required = definition.get("required", [])
    rows = [
        (
            code(key),
            type_of(value),
            default_of(value, required=key in required),
            limits_of(value),
            _meaning(value, definitions),
        )
        for key, value in keys(definition)
    ]
    if rows:
        return lines + table(("key", "type", "default", "limits", "meaning"), rows)
    if definition.get("type") or definition.get("anyOf") or reference(definition):
        lines += [f"A value: {type_of(definition)}.", ""]
    return lines
