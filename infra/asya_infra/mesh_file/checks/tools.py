"""Checks the names of tools and their input schemas (`protocol §13`)."""

import re
from collections.abc import Iterator
from typing import Any

from asya.capabilities.mcp.types import OWN_TOOL_NAMES
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.source import Location

# The form of a name in the Model Context Protocol.
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def check_tools(context: Context) -> Iterator[Finding]:
    """Check the name and the input schema of each tool."""
    for tool, section in context.mesh.tools.items():
        yield from _name(tool)
        place: Location = ("tools", tool, "input_schema")
        yield from _schema(dict(section.json_schema), place)


def _name(tool: str) -> Iterator[Finding]:
    if not _NAME.fullmatch(tool):
        yield ("tools", tool), "a tool name should have 1 to 128 letters, digits, '_', '-' or '.'"
    elif tool in OWN_TOOL_NAMES:
        yield ("tools", tool), f"the gateway has its own tool {tool!r}; rename this one"


def _schema(schema: dict[str, Any], place: Location) -> Iterator[Finding]:
    # A late import: most mesh files have no tools.
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(schema, retriever=_retrieve_nothing)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        path = getattr(error, "instance_path", [])
        yield (*place, *path), f"not a valid JSON Schema: {getattr(error, 'message', error)}"


def _retrieve_nothing(uri: str) -> Any:
    raise ValueError(f"{uri} is an external reference; copy its schema to $defs")
