"""The tools that models are told of: the mesh file's, and three to go on with a task (`protocol §13`, `POST /mcp`)."""

import base64
from bisect import bisect_right
from typing import cast

import msgspec
from msgspec import UNSET

from asya.gateway.json_rpc import INVALID_PARAMS, RpcError
from asya.gateway.mcp.types import CANCEL_TOOL, RESUME_TOOL, WAIT_TOOL, ToolDefinition, ToolList
from asya.protocol.ids import ID_LIMIT
from asya.protocol.mesh_table import MeshTable

PAGE = 100
INSTRUCTIONS = (
    "Each tool starts a task on a pipeline and waits for it a while. If the task takes longer, the answer says so and names it: "
    f"call {WAIT_TOOL} with its id until it has ended. A task that is paused waits for a person's answer: {RESUME_TOOL} gives it."
)

_ID: dict[str, object] = {
    "type": "string",
    "minLength": 1,
    "maxLength": ID_LIMIT,
    "description": "The task's id, as the answer of the call that started it says",
}


def _takes(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


OWN_TOOLS = (
    ToolDefinition(
        name=CANCEL_TOOL,
        description="Cancel a task that one of the other tools has started. What has ended stays as it ended.",
        input_schema=_takes(id=_ID),
        annotations={"destructiveHint": True, "idempotentHint": True, "openWorldHint": False},
    ),
    ToolDefinition(
        name=RESUME_TOOL,
        description="Answer what a paused task asks for, so that it goes on; then wait for it as its own tool would. "
        "The answers are a person's to give: ask for them.",
        input_schema=_takes(
            id=_ID,
            input={"type": "object", "description": "The answers, by the names of the fields that the pause asks for"},
        ),
        annotations={"destructiveHint": False, "openWorldHint": False},
    ),
    ToolDefinition(
        name=WAIT_TOOL,
        description="Wait for a task that one of the other tools has started: its result, if it ends within half a minute, "
        "else how far it is. Call it again until the task has ended.",
        input_schema=_takes(id=_ID),
        annotations={"readOnlyHint": True, "openWorldHint": False},
    ),
)


def tool_list(mesh: MeshTable, cursor: str | None, page: int = PAGE) -> ToolList:
    """A page of the tools, by name; those of the gateway itself come last, where there are others.

    Raises:
        RpcError: for a cursor that no page ended with.
    """
    names = sorted(mesh.tools)
    start = bisect_right(names, _last_name(cursor)) if cursor is not None else 0
    shown = names[start : start + page]
    is_last = start + page >= len(names)
    found = tuple(_definition(mesh, name) for name in shown)
    return ToolList(
        tools=found + (OWN_TOOLS if is_last and names else ()), next_cursor=UNSET if is_last else _cursor(shown[-1])
    )


def _definition(mesh: MeshTable, name: str) -> ToolDefinition:
    tool = mesh.tools[name]
    # Arguments are an object, whether the schema says so or not; clients want it said.
    schema = {"type": "object", **_without_headers(tool.input_schema)}
    return ToolDefinition(name=name, description=tool.description, input_schema=schema)


def _without_headers(schema: dict[str, object]) -> dict[str, object]:
    """A schema that asks nobody to repeat arguments in HTTP headers: nothing between here and there would read them."""
    kept = {key: value for key, value in schema.items() if key != "x-mcp-header"}
    properties = schema.get("properties")
    if isinstance(properties, dict):
        kept["properties"] = {
            name: _without_headers(cast("dict[str, object]", each)) if isinstance(each, dict) else each
            for name, each in properties.items()
        }
    return kept


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(name)).decode("ascii")


def _last_name(cursor: str) -> str:
    try:
        return msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=str)
    except (msgspec.MsgspecError, ValueError):
        raise RpcError(INVALID_PARAMS, "params.cursor is not the nextCursor of a page of tools") from None
