"""Lists the tools, with input schemas in the form that clients of models take (`protocol §13`, `POST /mcp`).

Many models' services refuse all tools of a server for one schema with `anyOf` at its top level, and some know no `$ref`
(`docs/reference/gateway.md`, Model Context Protocol). So a schema that is no plain object is listed as the one argument of an
object, and references are replaced by what they refer to.
"""

import base64
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from asya.capabilities.mcp.types import CANCEL_TOOL, RESUME_TOOL, WAIT_TOOL, ToolDefinition, ToolList
from asya.gateway.json_rpc import INVALID_PARAMS, RpcError
from asya.protocol.ids import ID_LIMIT
from asya.protocol.mesh_table import MeshTable

Schema = Mapping[str, object]

REFUSED_AT_TOP = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else", "dependentSchemas", "$ref")
"""The keywords that clients refuse at the top level of a schema."""

_DEFINITIONS = ("$defs", "definitions")
_KEPT_AT_TOP = (*_DEFINITIONS, "$schema")
# These beside a reference take the place of those of the definition.
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated", "type", "$schema"})
_VALUES = frozenset({"enum", "const", "default", "examples"})
# Below these, each key is a name, also if a keyword has the same.
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "dependentRequired", *_DEFINITIONS})
_WRAPPERS = ("arguments", "input", "payload")
# A schema that would become larger keeps its references.
_LARGEST = 5_000  # parts


def listed(schema: Schema) -> dict[str, object]:
    """Return the schema of a tool as the list shows it."""
    shown = _without_headers(_inlined(schema))
    wrapper = _wrapper(shown)
    if wrapper is None:
        # Clients require the type, which a schema in the mesh file may leave out.
        return {"type": "object", **shown}
    inner = {key: value for key, value in shown.items() if key not in _KEPT_AT_TOP}
    top = {key: value for key, value in shown.items() if key in _KEPT_AT_TOP}
    return {
        "type": "object",
        "properties": {wrapper: _moved(inner, wrapper)},
        "required": [wrapper],
        "additionalProperties": False,
        **top,
    }


def unwrapped(schema: Schema, arguments: Raw) -> Raw:
    """Return the arguments of a call as the tool's schema has them. A client may also send them without the wrapper."""
    wrapper = wrapper_of(schema)
    if wrapper is None:
        return arguments
    try:
        members = msgspec.json.decode(arguments, type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return arguments  # the start of the task names the problem
    is_wrapped = members.keys() == {wrapper} and bytes(members[wrapper]).lstrip().startswith(b"{")
    return members[wrapper] if is_wrapped else arguments


def wrapper_of(schema: Schema) -> str | None:
    """Return the name of the argument that holds all arguments; None if the schema is listed as it is."""
    return _wrapper(_without_headers(_inlined(schema)))


def _wrapper(schema: Schema) -> str | None:
    """The name of the argument that holds all arguments; None if clients take the schema as it is."""
    # Beside a reference to the whole schema, the type that clients require would hold for what refers to it, too.
    is_object = schema.get("type") == "object" or ("type" not in schema and not _refers_to_itself(schema))
    if (is_object and not any(key in schema for key in REFUSED_AT_TOP)) or "$id" in schema:
        return None
    known = set(_property_names(schema))
    numbered = (f"arguments_{number}" for number in range(2, len(known) + 3))
    return next(name for name in (*_WRAPPERS, *numbered) if name not in known)


def _refers_to_itself(schema: Any) -> bool:
    """Whether a part of a schema refers to the whole one."""
    if isinstance(schema, list):
        return any(map(_refers_to_itself, schema))
    if not isinstance(schema, Mapping):
        return False
    found: list[bool] = []
    _with_parts(schema, lambda part: found.append(_refers_to_itself(part)))
    return schema.get("$ref") == "#" or any(found)


def _with_parts(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """A schema with its parts changed. Values, such as those of `const`, are no parts, and names of properties no keywords."""
    return {
        key: value
        if key in _VALUES
        else {name: change(each) for name, each in value.items()}
        if key in _NAMED and isinstance(value, Mapping)
        else change(value)
        for key, value in schema.items()
    }


def _property_names(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "properties" and isinstance(value, Mapping):
                yield from value
            if key == "required" and isinstance(value, list):
                yield from value
            yield from _property_names(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _property_names(each)


def _moved(schema: Any, wrapper: str) -> Any:
    """A schema below the top, with its references to parts of itself."""
    if isinstance(schema, list):
        return [_moved(each, wrapper) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    moved = _with_parts(schema, lambda part: _moved(part, wrapper))
    target = moved.get("$ref")
    if isinstance(target, str) and target.startswith("#") and not _is_definition(target):
        moved["$ref"] = f"#/properties/{wrapper}{target[1:]}"
    return moved


def _is_definition(target: str) -> bool:
    return any(target.startswith(f"#/{key}/") for key in _DEFINITIONS)


def _inlined(schema: Schema) -> dict[str, object]:
    """A schema with its definitions in the place of references, unless it refers to itself, or becomes too large."""
    definitions = {
        f"#/{key}/{name}": each
        for key in _DEFINITIONS
        if isinstance(found := schema.get(key), Mapping)
        for name, each in found.items()
    }
    if not definitions or "$id" in schema:
        return dict(schema)
    top = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    try:
        return dict(_References(definitions).replaced(top, ()))
    except _KeptError:
        return dict(schema)


class _KeptError(Exception):
    """A reference has to stay."""


class _References:
    """The references of one schema."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._parts = 0

    def replaced(self, schema: Any, above: tuple[str, ...]) -> Any:
        """A part of the schema with definitions in the place of references; those `above` it are being replaced."""
        self._parts += 1
        if self._parts > _LARGEST:
            raise _KeptError
        if isinstance(schema, list):
            return [self.replaced(each, above) for each in schema]
        if not isinstance(schema, Mapping):
            return schema
        if isinstance(target := schema.get("$ref"), str):
            return self._definition(target, {key: value for key, value in schema.items() if key != "$ref"}, above)
        return _with_parts(schema, lambda part: self.replaced(part, above))

    def _definition(self, target: str, beside: dict[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
        if target not in self._definitions or target in above or not beside.keys() <= _ANNOTATIONS:
            raise _KeptError
        replaced = self.replaced(self._definitions[target], (*above, target))
        if not isinstance(replaced, dict) or replaced.get("type") != beside.get("type", replaced.get("type")):
            raise _KeptError
        return replaced | beside


def _without_headers(schema: Schema) -> dict[str, object]:
    """Return a schema without `x-mcp-header`, which asks clients to repeat arguments in headers: no proxy reads them."""
    copy = {key: value for key, value in schema.items() if key != "x-mcp-header"}
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        copy["properties"] = {
            name: _without_headers(value) if isinstance(value, Mapping) else value for name, value in properties.items()
        }
    return copy


PAGE = 100
INSTRUCTIONS = (
    "Each tool starts a task on a pipeline and waits a while for its result. If the task takes longer, the answer contains "
    f"its id: call {WAIT_TOOL} with it until the task has ended. A paused task waits for a person's answer: ask for it and "
    f"call {RESUME_TOOL}."
)

_ID: dict[str, object] = {
    "type": "string",
    "minLength": 1,
    "maxLength": ID_LIMIT,
    "description": "The id of the task, from the answer of the call that started it",
}


def _schema(optional: Mapping[str, object] | None = None, **properties: object) -> dict[str, object]:
    every = {**properties, **(optional or {})}
    return {"type": "object", "properties": every, "required": list(properties), "additionalProperties": False}


OWN_TOOLS = (
    ToolDefinition(
        name=CANCEL_TOOL,
        description="Cancel a task that another tool has started. A task that has ended does not change.",
        input_schema=_schema(id=_ID),
        annotations={"destructiveHint": True, "idempotentHint": True, "openWorldHint": False},
    ),
    ToolDefinition(
        name=RESUME_TOOL,
        description="Resume a paused task with a person's answers, then wait for its result. "
        "Ask the person for the answers.",
        input_schema=_schema(
            id=_ID,
            input={"type": "object", "description": "The answers, by the names of the pause's fields"},
            optional={
                "since": {
                    "type": "string",
                    "description": "The start of the pause whose question the person has read, from the answer that shows it. In a "
                    "later pause the call is refused",
                }
            },
        ),
        annotations={"destructiveHint": False, "openWorldHint": False},
    ),
    ToolDefinition(
        name=WAIT_TOOL,
        description="Wait up to half a minute for a task that another tool has started. Returns its result, or its progress. "
        "Repeat the call until the task has ended.",
        input_schema=_schema(id=_ID),
        annotations={"readOnlyHint": True, "openWorldHint": False},
    ),
)


def tool_list(mesh: MeshTable, cursor: str | None, page: int = PAGE) -> ToolList:
    """Return a page of tools, sorted by name; the gateway's own come last, and only if the mesh file has tools.

    Raises:
        RpcError: -32602 for an invalid cursor.
    """
    names = sorted(mesh.tools)
    start = bisect_right(names, _last_name(cursor)) if cursor is not None else 0
    page_names = names[start : start + page]
    is_last = start + page >= len(names)
    tools = tuple(_definition(mesh, name) for name in page_names)
    return ToolList(
        tools=tools + (OWN_TOOLS if is_last and names else ()),
        next_cursor=UNSET if is_last else _cursor(page_names[-1]),
    )


def _definition(mesh: MeshTable, name: str) -> ToolDefinition:
    tool = mesh.tools[name]
    return ToolDefinition(name=name, description=tool.description, input_schema=listed(tool.input_schema))


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(name)).decode("ascii")


def _last_name(cursor: str) -> str:
    try:
        return msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=str)
    except (msgspec.MsgspecError, ValueError):
        raise RpcError(INVALID_PARAMS, "params.cursor is not the nextCursor of a page of tools") from None
