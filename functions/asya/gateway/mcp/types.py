"""Model Context Protocol: the revisions that the gateway speaks, and what it says in them (`protocol §13`, `POST /mcp`).

Up to 2025-11-25 a client shakes hands (`initialize`) and may keep a session; from 2026-07-28 on every request stands for itself,
and says in `_meta` and in headers what the handshake used to.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from asya.gateway.json_rpc import MessageId

MODERN = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18")
REVISIONS = (MODERN, *HANDSHAKE)

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
SESSION_HEADER = "mcp-session-id"

# What clients may keep of lists: a deployment changes them.
LIST_TTL_MS = 300_000
# The task behind a result, for programs.
TASK_KEY = "asya/taskId"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SERVER_VERSION = "1"

# The gateway's own tools: no tool of a mesh file has such a name.
CANCEL_TOOL = "cancel_task"
RESUME_TOOL = "resume_task"
WAIT_TOOL = "wait_for_task"
OWN_TOOL_NAMES = frozenset({CANCEL_TOOL, RESUME_TOOL, WAIT_TOOL})

ProgressToken = int | str


# --- what clients say


class RequestMeta(msgspec.Struct, frozen=True):
    """What comes with every request."""

    progress_token: ProgressToken | None = field(name="progressToken", default=None)
    version: str | None = field(name="io.modelcontextprotocol/protocolVersion", default=None)
    capabilities: dict[str, object] | None = field(name="io.modelcontextprotocol/clientCapabilities", default=None)


class RequestParams(msgspec.Struct, frozen=True):
    """Parameters of any request."""

    meta: RequestMeta = field(name="_meta", default=RequestMeta())


class InitializeParams(msgspec.Struct, frozen=True, rename="camel"):
    """Of `initialize`."""

    protocol_version: str


class ListToolsParams(msgspec.Struct, frozen=True):
    """Of `tools/list`."""

    cursor: str | None = None


class InputResponse(msgspec.Struct, frozen=True):
    """What a person said to what a tool asked for."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Raw] | None = None


class CallToolParams(msgspec.Struct, frozen=True, rename="camel"):
    """Of `tools/call`."""

    name: str
    arguments: Raw = Raw(b"{}")
    input_responses: dict[str, InputResponse] | None = None
    request_state: str | None = None


class CanceledParams(msgspec.Struct, frozen=True, rename="camel"):
    """Of `notifications/cancelled`."""

    request_id: MessageId


# --- what the gateway says


class McpResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What all results have, from 2026-07-28 on; before it, no more than what is added to it below."""

    meta: dict[str, object] | UnsetType = field(name="_meta", default=UNSET)
    result_type: str | UnsetType = UNSET


class Implementation(msgspec.Struct, frozen=True):
    """Who speaks."""

    name: str
    version: str = SERVER_VERSION


class Capabilities(msgspec.Struct, frozen=True):
    """What there is: tools, which do not change while one looks."""

    tools: dict[str, bool] = {}


class InitializeResult(McpResult, frozen=True, kw_only=True):
    """The end of the handshake."""

    protocol_version: str
    capabilities: Capabilities
    server_info: Implementation
    instructions: str


class CacheableResult(McpResult, frozen=True, kw_only=True):
    """What a client may keep for a while."""

    ttl_ms: int | UnsetType = UNSET
    cache_scope: Literal["private", "public"] | UnsetType = UNSET


class DiscoverResult(CacheableResult, frozen=True, kw_only=True):
    """What the gateway speaks and has."""

    supported_versions: tuple[str, ...]
    capabilities: Capabilities
    instructions: str


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A tool, as models are told of it."""

    name: str
    description: str
    input_schema: dict[str, object]
    annotations: dict[str, bool] | UnsetType = UNSET


class ToolList(CacheableResult, frozen=True, kw_only=True):
    """A page of tools."""

    tools: tuple[ToolDefinition, ...]
    next_cursor: str | UnsetType = UNSET


class TextContent(msgspec.Struct, frozen=True, tag="text"):
    """Something to read."""

    text: str


class ResourceLink(msgspec.Struct, frozen=True, kw_only=True, tag="resource_link", rename="camel"):
    """Something that lies elsewhere."""

    uri: str
    name: str
    description: str
    mime_type: str


class ToolResult(McpResult, frozen=True, kw_only=True):
    """What a call came to, or how it stands."""

    content: tuple[TextContent | ResourceLink, ...]
    structured_content: object = UNSET
    is_error: bool = False


class InputRequired(McpResult, frozen=True, kw_only=True):
    """A call that goes on when a person has answered; `request_state` comes back with the answer."""

    input_requests: dict[str, object]
    request_state: str
