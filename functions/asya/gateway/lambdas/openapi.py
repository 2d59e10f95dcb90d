"""The OpenAPI document, made of the calls and of the types that they read and answer with (`GET /openapi.json`)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from asya.dead_letters.redrive import Reopened, Reopening
from asya.dead_letters.replay import Replayed, ReplayRequest
from asya.gateway.calls import CALLS, ApiCall
from asya.gateway.http.router import KEY_LIMIT
from asya.gateway.json_rpc import Failure, MessageId, Success
from asya.gateway.routes.lists import HOPS_LIMIT
from asya.gateway.routes.resume import Resumed
from asya.gateway.routes.tools import ToolAnswer
from asya.gateway.streams import sse
from asya.gateway.streams.routes import StreamToken
from asya.gateway.submission import LONGEST_TIMEOUT, SHORTEST_TIMEOUT
from asya.legacy.tasks import LegacyEnvelope, LegacyFinal, LegacyJob, LegacyProgress
from asya.protocol.events import EventResults, PartialEvent, StateQuery, TaskEvent, TaskStates
from asya.protocol.ids import ID_LIMIT
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import TaskStatus
from asya.tasks.event_batch import BATCH_LIMIT
from asya.tasks.listing import DEFAULT_LIMIT, LARGEST_LIMIT, TaskList, Timeline
from asya.tasks.view import TaskView

Schema = dict[str, Any]
_REFERENCE = "#/components/schemas/{name}"


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was wrong: a word for programs, a sentence for people, the field at fault."""

    code: str
    message: str
    field: str | None = None
    fields: list[dict[str, str]] = msgspec.field(default_factory=list)


class Error(msgspec.Struct, frozen=True, kw_only=True):
    """Every refusal of the mesh's own."""

    error: Problem


class GatewayMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal of API Gateway itself, which the mesh never saw: unsigned, throttled, no such route."""

    message: str | None


class StartRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to start a task with; `timeout` in seconds."""

    payload: object = None
    headers: dict[str, object] | None = None
    timeout: Annotated[float, Meta(ge=SHORTEST_TIMEOUT, le=LONGEST_TIMEOUT)] | None = None


class Started(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The new task; untracked ones have no record."""

    id: str
    tracked: bool = True


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool of the mesh file, and arguments that fit its schema."""

    name: str
    arguments: dict[str, object] = msgspec.field(default_factory=dict)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A request or notification of JSON-RPC 2.0."""

    jsonrpc: Literal["2.0"]
    method: str
    id: MessageId | UnsetType = UNSET
    params: dict[str, object] = msgspec.field(default_factory=dict)


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to what the pause asks for, by the names of its fields."""

    input: dict[str, object] = msgspec.field(default_factory=dict)


class SingleEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A report on one task: of its status, or a message to those who look on."""

    type: Literal["status", "fly"] = "status"
    status: str | None = None
    data: dict[str, object] = msgspec.field(default_factory=dict)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """That the gateway answers."""

    status: Literal["ok"]


@dataclass(frozen=True)
class CallDescription:
    """What the document says of a call.

    Attributes:
        body: what it reads.
        answers: what it answers with, by status; None for nothing, a media type for text of that type.
        refusals: the statuses of errors beside 403, 429 and 5xx.
        query, headers: parameters by name.
        streamed: of the answers, those that may come as Server-Sent Events as well.
    """

    summary: str
    answers: Mapping[int, Any]
    body: Any = None
    is_body_required: bool = True
    refusals: tuple[int, ...] = ()
    query: Mapping[str, Schema] = field(default_factory=dict)
    headers: Mapping[str, Schema] = field(default_factory=dict)
    streamed: tuple[int, ...] = ()


_LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT}
_CURSOR: Schema = {"type": "string", "description": "next_cursor of the page before"}
_STATUS: Schema = {"type": "string", "enum": list(get_args(TaskStatus))}
_PARENT: Schema = {"type": "string", "minLength": 1, "maxLength": ID_LIMIT}
_KEY: Schema = {"type": "string", "minLength": 1, "maxLength": KEY_LIMIT, "pattern": "^[ -~]+$"}
_EVENTS = {"type": "array", "maxItems": BATCH_LIMIT, "items": {"anyOf": [TaskEvent, PartialEvent]}}
_STATES = {"type": "array", "maxItems": BATCH_LIMIT, "items": StateQuery}

# Some read this as the schema of the whole text, others as that of each event.
_EVENTS_OF_A_STREAM: Schema = {"description": "Server-Sent Events"}
_EVENT_STREAM: Mapping[int, Any] = {200: sse.MEDIA_TYPE, 204: None}
_FROM: Schema = {"type": "string", "description": "id of the last event that was seen"}
_FROM_HEADER, _FROM_QUERY = {"Last-Event-ID": _FROM}, {"last_event_id": _FROM}

CALL_DESCRIPTIONS: dict[str, CallDescription] = {
    "POST /api/v1/mesh": CallDescription(
        "Start a task at an actor", {201: Started}, StartRequest, False, (400, 404, 409, 413),
        query={"actor": {"type": "string", "required": True}}, headers={"Idempotency-Key": _KEY},
    ),
    "GET /api/v1/mesh": CallDescription(
        "The caller's tasks, newest first; everybody's for operators", {200: TaskList}, refusals=(400,),
        query={"status": _STATUS, "parent": _PARENT, "limit": _LIMIT, "cursor": _CURSOR},
    ),
    "GET /api/v1/mesh/{id}": CallDescription("A task as it is now", {200: TaskView}, refusals=(404,)),
    "GET /api/v1/mesh/{id}/children": CallDescription(
        "What a task has fanned out into, newest first", {200: TaskList}, refusals=(400, 404),
        query={"status": _STATUS, "limit": _LIMIT, "cursor": _CURSOR},
    ),
    "GET /api/v1/mesh/{id}/timeline": CallDescription(
        "A task's hops with their times, first to last", {200: Timeline}, refusals=(400, 404),
        query={"limit": _LIMIT | {"maximum": HOPS_LIMIT, "default": HOPS_LIMIT}, "cursor": _CURSOR},
    ),
    "DELETE /api/v1/mesh/{id}": CallDescription(
        "Cancel a task, and what came of it; one that has ended stays as it is", {204: None}, refusals=(404,)
    ),
    "POST /api/v1/mesh/{id}/resume": CallDescription(
        "End a task's pause", {202: Resumed}, ResumeRequest, False, (400, 404, 409, 413, 422)
    ),
    "POST /api/v1/mesh/{id}/reopen": CallDescription(
        "Operators: begin a task's next generation, for a redrive", {200: Reopened}, Reopening, False, (400, 404, 409, 413)
    ),
    "POST /api/v1/mesh/{id}/replay": CallDescription(
        "Start a new task from what is kept of an envelope", {201: Replayed}, ReplayRequest, False, (400, 404, 409, 413)
    ),
    "POST /tools/call": CallDescription(
        "Call a tool, and wait a while for what it comes to", {200: ToolAnswer, 202: ToolAnswer}, ToolRequest, True,
        (400, 404, 409, 413), headers={"Idempotency-Key": _KEY},
    ),
    "POST /mcp": CallDescription(
        "Model Context Protocol, streamable HTTP: a message to the tools", {200: Success, 202: None, 400: Failure, 404: Failure},
        Message, True, (406, 413), streamed=(200,),
        headers={"MCP-Protocol-Version": {"type": "string"}, "Prefer": {"type": "string"}},
    ),
    "GET /mcp": CallDescription("Of older clients, which are told that no stream is held open", {}, refusals=(405,)),
    "DELETE /mcp": CallDescription("Of older clients, which are told that no session is kept", {}, refusals=(405,)),
    "GET /api/v1/mesh/{id}/events": CallDescription(
        "Follow a task: Server-Sent Events `status`, `partial`, `final`", _EVENT_STREAM, refusals=(404,),
        query=_FROM_QUERY, headers=_FROM_HEADER,
    ),
    "GET /api/v1/mesh/{id}/stream": CallDescription(
        "The same without a signature, for who has a token", _EVENT_STREAM, refusals=(403, 404),
        query={"token": {"type": "string", "required": True}} | _FROM_QUERY, headers=_FROM_HEADER,
    ),
    "POST /api/v1/mesh/{id}/stream-token": CallDescription(
        "A token that opens one task's stream for an hour", {201: StreamToken}, refusals=(404,)
    ),
    "POST /a2a": CallDescription(
        "Agent2Agent, JSON-RPC of the versions 1.0 and 0.3: messages to the tools, and their tasks",
        {200: {"anyOf": [Success, Failure]}}, Message, True, (400, 413), streamed=(200,),
        headers={"A2A-Version": {"type": "string"}},
    ),
    "POST /a2a/tasks/{id}": CallDescription(
        "Agent2Agent: cancel a task; its id is followed by `:cancel`", {200: {"type": "object"}}, refusals=(404, 409)
    ),
    "GET /.well-known/agent-card.json": CallDescription("What this mesh offers to other agents", {200: {"type": "object"}}),
    "POST /api/v1/mesh/events": CallDescription(
        "The mesh's functions and operators: reports, each answered for itself", {200: EventResults}, _EVENTS, True,
        (400, 413),
    ),
    "POST /api/v1/mesh/{id}/events": CallDescription(
        "The mesh's functions and operators: one report", {204: None}, SingleEvent, True, (400, 404, 413)
    ),
    "POST /api/v1/mesh/states": CallDescription(
        "The mesh's functions: how tasks and their roots stand", {200: TaskStates}, _STATES, True, (400, 413)
    ),
    "GET /envelopes/{id}": CallDescription("A task in the first generation's words", {200: LegacyEnvelope}, refusals=(404,)),
    "GET /envelopes/{id}/stream": CallDescription(
        "Follow a task in the first generation's words", _EVENT_STREAM, refusals=(404,), query=_FROM_QUERY,
        headers=_FROM_HEADER,
    ),
    "POST /envelopes/{id}/progress": CallDescription(
        "Progress in the first generation's words", {204: None}, LegacyProgress, True, (400, 404, 413)
    ),
    "POST /envelopes/{id}/final": CallDescription(
        "An end in the first generation's words", {204: None}, LegacyFinal, True, (400, 404, 413)
    ),
    "GET /jobs/{id}": CallDescription("A task in the second generation's words", {200: LegacyJob}, refusals=(404,)),
    "GET /jobs/{id}/stream": CallDescription(
        "Follow a task in the second generation's words", _EVENT_STREAM, refusals=(404,), query=_FROM_QUERY,
        headers=_FROM_HEADER,
    ),
    "GET /openapi.json": CallDescription("This document", {200: {"type": "object"}}),
    "GET /health": CallDescription("Whether the gateway answers", {200: Health}),
}  # fmt: skip


# How calls say who makes them, at each of the two APIs.
_SIGNED: Schema = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "description": "AWS Signature Version 4 of the service execute-api",
}
_BEARER: Schema = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


def document(mesh: MeshTable, url: str, *, takes_tokens: bool = False) -> Schema:
    """The document of one API of a mesh's gateway.

    Args:
        url: where it is.
        takes_tokens: whether it is the one for people with a token; calls of the other are signed.
    """
    scheme = "jwt" if takes_tokens else "sigv4"
    calls = [call for call in CALLS if call.is_public or call.takes_tokens(mesh.gateway.token_calls)]
    types = [Error, GatewayMessage, *_types()]
    _, schemas = msgspec.json.schema_components(types, schema_hook=_anything, ref_template=_REFERENCE)
    paths: dict[str, Schema] = {}
    for call in calls if takes_tokens else CALLS:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, CALL_DESCRIPTIONS[call.route], scheme)
    return {
        "openapi": "3.1.0",
        "info": {"title": f"The gateway of the mesh {mesh.namespace}", "version": "1"},
        "servers": [{"url": url}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {scheme: _BEARER if takes_tokens else _SIGNED},
        },
    }


def _operation(call: ApiCall, described: CallDescription, scheme: str) -> Schema:
    unknown = {403} | ({401} if scheme == "jwt" else set())
    errors = {*described.refusals, 500, 503} | (set() if call.is_public else unknown)
    parameters = [
        *(
            {"name": name, "in": "path", "required": True, "schema": _PARENT}
            for name in re.findall(r"{(\w+)}", call.path)
        ),
        *(_parameter(name, "query", schema) for name, schema in described.query.items()),
        *(_parameter(name, "header", schema) for name, schema in described.headers.items()),
    ]
    operation: Schema = {
        "operationId": re.sub(r"\W+", "_", call.route).strip("_"),
        "summary": described.summary,
        "parameters": parameters,
        "responses": {
            **{
                str(status): _answer(answer, is_streamed=status in described.streamed)
                for status, answer in described.answers.items()
            },
            **{str(status): _answer({"anyOf": [Error, GatewayMessage]}) for status in sorted(errors)},
            "429": _answer(GatewayMessage),
        },
        "security": [] if call.is_public else [{scheme: []}],
    }
    if described.body is not None:
        content = {"application/json": {"schema": _schema(described.body)}}
        operation["requestBody"] = {"required": described.is_body_required, "content": content}
    return operation


def _parameter(name: str, where: str, schema: Schema) -> Schema:
    shown = {key: value for key, value in schema.items() if key != "required"}
    return {"name": name, "in": where, "required": schema.get("required", False), "schema": shown}


def _answer(answer: Any, *, is_streamed: bool = False) -> Schema:
    if answer is None:
        return {"description": "done"}
    if isinstance(answer, str):
        return {"description": "as described", "content": {answer: {"schema": _EVENTS_OF_A_STREAM}}}
    content: Schema = {"application/json": {"schema": _schema(answer)}}
    if is_streamed:
        content[sse.MEDIA_TYPE] = {"schema": _EVENTS_OF_A_STREAM}
    return {"description": "as described", "content": content}


def _schema(described: Any) -> Any:
    """A schema in which types stand for themselves, with references in their place."""
    if isinstance(described, type):
        return {"$ref": _REFERENCE.format(name=described.__name__)}
    if isinstance(described, dict):
        return {key: _schema(value) for key, value in described.items()}
    return [_schema(each) for each in described] if isinstance(described, list) else described


def _types() -> list[type]:
    found: list[type] = []
    waiting: list[Any] = [part for each in CALL_DESCRIPTIONS.values() for part in (each.body, *each.answers.values())]
    while waiting:
        part = waiting.pop()
        if isinstance(part, type):
            found.append(part)
        elif isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return sorted(set(found), key=lambda kind: kind.__name__)


def _anything(kind: type) -> Schema:
    """Values that may be any JSON; and the absence of one, which no JSON shows."""
    return {"not": {}} if kind is UnsetType else {"description": "any JSON"}
