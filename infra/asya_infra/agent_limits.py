"""Notes on tools that some clients of the Model Context Protocol refuse, often with all other tools of the mesh.

`docs/reference/gateway.md` has the limits with their sources.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from asya.capabilities.mcp.listed_schemas import REFUSED_AT_TOP, listed, wrapper_of
from asya_infra.mesh_file import LoadedMesh

NAME_LENGTH = 64
"""Characters that Claude Desktop, Amazon Bedrock, Gemini and OpenAI take; the protocol allows 128."""
NAME_WITH_SERVER = 60
"""Characters that Cursor takes, with the name of the server."""
DESCRIPTION_LENGTH = 1024
"""Characters that OpenAI takes."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_FIRST = re.compile(r"[A-Za-z_]")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def agent_notes(loaded: LoadedMesh) -> Iterator[str]:
    """Yield a note for each limit that a tool exceeds."""
    server = f"asya-{loaded.mesh.namespace}"
    for name, tool in loaded.mesh.tools.items():
        for problem in (
            *_of_name(name, server),
            *_of_description(tool.description),
            *_of_schema(dict(tool.json_schema)),
        ):
            yield f"{loaded.path}: tools.{name}: {problem}"


def _of_name(name: str, server: str) -> Iterator[str]:
    if len(name) > NAME_LENGTH:
        yield (
            f"its name has {len(name)} characters; Claude Desktop, Amazon Bedrock, Gemini and OpenAI take {NAME_LENGTH}, and "
            "refuse all tools of the mesh; shorten it"
        )
    elif len(server) + len(name) > NAME_WITH_SERVER:
        yield (
            f"its name and that of the server, {server}, have {len(server) + len(name)} characters; Cursor leaves out tools "
            f"with more than {NAME_WITH_SERVER}; shorten it, or give the server a short name in the client"
        )
    if not _NAME.fullmatch(name):
        yield (
            "its name has a '.'; Claude, Amazon Bedrock and OpenAI take letters, digits, '_' and '-', and refuse all tools of the "
            "mesh; rename it"
        )
    if not _FIRST.match(name):
        yield "its name should begin with a letter or '_'; Gemini refuses all tools of the mesh otherwise; rename it"


def _of_description(text: str) -> Iterator[str]:
    if len(text) > DESCRIPTION_LENGTH:
        yield (
            f"its description has {len(text)} characters; OpenAI takes {DESCRIPTION_LENGTH}, and refuses all tools of the mesh; "
            "shorten it"
        )


def _of_schema(schema: dict[str, Any]) -> Iterator[str]:
    shown, wrapper = listed(schema), wrapper_of(schema)
    if wrapper is not None:
        top = next((key for key in REFUSED_AT_TOP if key in schema), "type")
        yield (
            f"its input_schema has {top!r} at the top level, which Claude and OpenAI refuse; /mcp lists it with all arguments "
            f"in the field {wrapper!r}; a model with fields of its own is shown as it is"
        )
        return
    wrong = [field for field in _fields(shown) if not _PROPERTY.fullmatch(field)]
    if wrong:
        yield (
            f"its argument {wrong[0]!r} is refused by Claude with all tools of the mesh: the name should have 1 to 64 letters, "
            "digits, '_', '-' or '.'; rename it"
        )
    if "$ref" in _keys(shown):
        yield (
            "its input_schema refers to itself; clients with Gemini, such as Google's ADK, read no schema without an end; limit "
            "the depth, or take a dict"
        )


def _fields(schema: Mapping[str, Any]) -> list[str]:
    return list(schema.get("properties", {}))


def _keys(schema: Any) -> Iterator[str]:
    """The keys at all levels."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            yield key
            yield from _keys(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _keys(each)
