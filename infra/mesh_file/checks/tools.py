"""A tool's arguments are checked against its schema: it has to be one, and to hold all it refers to (`protocol §13`)."""

from collections.abc import Iterator
from typing import Any

from infra.mesh_file.checks.context import Context, Finding
from infra.mesh_file.source import Location


def check(context: Context) -> Iterator[Finding]:
    for tool, section in context.mesh.tools.items():
        place: Location = ("tools", tool, "input_schema")
        yield from _schema(dict(section.input_schema), place)


def _schema(schema: dict[str, Any], place: Location) -> Iterator[Finding]:
    # Only here: most of what reads a mesh file has no tools to check.
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(schema, retriever=_retrieve_nothing)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        path = getattr(error, "instance_path", [])
        yield (*place, *path), f"no JSON Schema: {getattr(error, 'message', error)}"


def _retrieve_nothing(uri: str) -> Any:
    raise ValueError(f"{uri} would have to be fetched; put what it says under $defs")
