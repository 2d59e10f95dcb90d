"""Lists the tools: those of the mesh file, and three that wait for, resume or cancel a task (`protocol §13`, `POST /mcp`)."""

import base64
from bisect import bisect_right

import msgspec
from msgspec import UNSET

from asya.capabilities.mcp.listed_schemas import listed
from asya.capabilities.mcp.types import CANCEL_TOOL, RESUME_TOOL, WAIT_TOOL, ToolDefinition, ToolList
from asya.gateway.json_rpc import INVALID_PARAMS, RpcError
from asya.protocol.ids import ID_LIMIT
from asya.protocol.mesh_table import MeshTable

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


def _schema(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


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
