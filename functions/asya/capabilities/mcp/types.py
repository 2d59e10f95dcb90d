"""The messages of Model Context Protocol in the revisions that the gateway speaks (`protocol §13`, `POST /mcp`).

Up to 2025-11-25 a client does a handshake (`initialize`) and may use a session. From 2026-07-28 on each request is
self-contained: `_meta` and headers replace the handshake.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from asya.gateway.json_rpc import MessageId

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
REVISIONS = (MODERN, HANDSHAKE)

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
SESSION_HEADER = "mcp-session-id"

LIST_TTL_MS = 300_000
"""Milliseconds for which a client may cache a list; only a deployment changes lists."""
TASK_KEY = "asya/taskId"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SERVER_VERSION = "1"

CANCEL_TOOL = "cancel_task"
RESUME_TOOL = "resume_task"
WAIT_TOOL = "wait_for_task"
OWN_TOOL_NAMES = frozenset({CANCEL_TOOL, RESUME_TOOL, WAIT_TOOL})
"""The gateway's own tools; the mesh file refuses these names."""

ProgressToken = int | str


# --- requests


class RequestMeta(msgspec.Struct, frozen=True):
    """The `_meta` of a request."""

    progress_token: ProgressToken | None = field(name="progressToken", default=None)
    version: str | None = field(name="io.modelcontextprotocol/protocolVersion", default=None)
    capabilities: dict[str, object] | None = field(name="io.modelcontextprotocol/clientCapabilities", default=None)


class RequestParams(msgspec.Struct, frozen=True):
    """The parameters that all requests share."""

    meta: RequestMeta = field(name="_meta", default=RequestMeta())


class InitializeParams(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of `initialize`."""

    protocol_version: str


class ListToolsParams(msgspec.Struct, frozen=True):
    """The parameters of `tools/list`."""

    cursor: str | None = None


class InputResponse(msgspec.Struct, frozen=True):
    """The user's response to an input request."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Raw] | None = None


class CallToolParams(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of `tools/call`."""

    name: str
    arguments: Raw = Raw(b"{}")
    input_responses: dict[str, InputResponse] | None = None
    request_state: str | None = None


class CanceledParams(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of `notifications/cancelled`."""

    request_id: MessageId


# --- results


class McpResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The members of all results; earlier revisions than 2026-07-28 leave them out."""

    meta: dict[str, object] | UnsetType = field(name="_meta", default=UNSET)
    result_type: str | UnsetType = UNSET


class Implementation(msgspec.Struct, frozen=True):
    """The name and version of the server."""

    name: str
    version: str = SERVER_VERSION


class Capabilities(msgspec.Struct, frozen=True):
    """The capabilities of the server: tools, without change notifications."""

    tools: dict[str, bool] = {}


class InitializeResult(McpResult, frozen=True, kw_only=True):
    """The result of `initialize`."""

    protocol_version: str
    capabilities: Capabilities
    server_info: Implementation
    instructions: str


class CacheableResult(McpResult, frozen=True, kw_only=True):
    """A result that a client may cache."""

    ttl_ms: int | UnsetType = UNSET
    cache_scope: Literal["private", "public"] | UnsetType = UNSET


class DiscoverResult(CacheableResult, frozen=True, kw_only=True):
    """The result of `server/discover`."""

    supported_versions: tuple[str, ...]
    capabilities: Capabilities
    instructions: str


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A tool in `tools/list`."""

    name: str
    description: str
    input_schema: dict[str, object]
    annotations: dict[str, bool] | UnsetType = UNSET


class ToolList(CacheableResult, frozen=True, kw_only=True):
    """The result of `tools/list`: a page of tools."""

    tools: tuple[ToolDefinition, ...]
    next_cursor: str | UnsetType = UNSET


class TextContent(msgspec.Struct, frozen=True, tag="text"):
    """A text in a tool result."""

    text: str


class ResourceLink(msgspec.Struct, frozen=True, kw_only=True, tag="resource_link", rename="camel"):
    """A link to a result in S3."""

    uri: str
    name: str
    description: str
    mime_type: str


class ToolResult(McpResult, frozen=True, kw_only=True):
    """The result of `tools/call`: the task's result or its status."""

    content: tuple[TextContent | ResourceLink, ...]
    structured_content: object = UNSET
    is_error: bool = False


class InputRequired(McpResult, frozen=True, kw_only=True):
    """A result that requests input; the client repeats the call with the answers and `request_state`."""

    input_requests: dict[str, object]
    request_state: str
