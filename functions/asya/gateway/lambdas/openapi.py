"""Builds the OpenAPI document from the calls (`GET /openapi.json`)."""

import re
from collections.abc import Iterable
from typing import Any, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from asya.api_call import ID, ApiCall, Named, Schema
from asya.gateway.call_table import CALLS, calls_of
from asya.gateway.json_rpc import MessageId
from asya.gateway.streams import sse
from asya.protocol.mesh_keys import TaskTimeout
from asya.protocol.mesh_table import MeshTable, OwnCalls


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem: its code, a message, and the field that has the problem."""

    code: str
    message: str
    field: str | None = None
    fields: list[dict[str, str]] = msgspec.field(default_factory=list)


class Error(msgspec.Struct, frozen=True, kw_only=True):
    """An error response of the mesh."""

    error: Problem


class GatewayMessage(msgspec.Struct, frozen=True, kw_only=True):
    """An error response of API Gateway itself: unsigned, throttled, or an unknown route."""

    message: str | None


class StartRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a new task; `timeout` is in seconds."""

    payload: object = None
    headers: dict[str, object] | None = None
    timeout: TaskTimeout | None = None


class Started(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The new task; an untracked task has no record."""

    id: str
    tracked: bool = True


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool of the mesh file, with arguments that fit its schema."""

    name: str
    arguments: dict[str, object] = msgspec.field(default_factory=dict)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A request or notification of JSON-RPC 2.0."""

    jsonrpc: Literal["2.0"]
    method: str
    id: MessageId | UnsetType = UNSET
    params: dict[str, object] = msgspec.field(default_factory=dict)


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The answers by the names of the pause's fields; `since` names the pause that they are for."""

    input: dict[str, object] = msgspec.field(default_factory=dict)
    since: str | None = None


class CallbackAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answers by the names of the pause's fields."""

    input: dict[str, object] = msgspec.field(default_factory=dict)


class SingleEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A report on one task: its status, or a partial."""

    type: Literal["status", "fly"] = "status"
    status: str | None = None
    data: dict[str, object] = msgspec.field(default_factory=dict)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The health of the gateway."""

    status: Literal["ok"]


_REFERENCE = "#/components/schemas/{name}"
_TYPED = ("body", "answers", "query", "headers")
"""The parts of a call that may have types."""
_BYTES = "application/octet-stream"

# Clients read this either as the schema of the whole text or of each event, so it has no type.
_EVENTS: Schema = {"description": "Server-Sent Events"}
# The security schemes of the two APIs.
_SIGNED: Schema = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "description": "AWS Signature Version 4 of the service execute-api",
}
_BEARER: Schema = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


def document(mesh: MeshTable, url: str, *, takes_tokens: bool = False) -> Schema:
    """Build the document of one API of a mesh's gateway.

    Args:
        mesh: the mesh table.
        url: the base URL of the API.
        takes_tokens: whether the API accepts tokens; calls of the other API are signed.
    """
    scheme = "jwt" if takes_tokens else "sigv4"
    groups = mesh.gateway.token_calls
    calls = [call for call in calls_of(mesh) if call.audience != "other systems"]
    schemas = _schemas([Error, GatewayMessage, *_types(CALLS)])
    if mesh.own_calls is not UNSET:
        schemas |= mesh.own_calls.schemas
    paths: dict[str, Schema] = {}
    for call in calls:
        if not takes_tokens or call.is_for_tokens(groups):
            paths.setdefault(call.path, {})[call.method.lower()] = _entry(call, scheme)
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


def described(calls: Iterable[ApiCall]) -> OwnCalls:
    """Return calls with JSON Schema in place of their types."""
    own = tuple(calls)
    plain = [replace(call, **{name: _schema(getattr(call, name)) for name in _TYPED}) for call in own]
    return OwnCalls(
        calls=tuple(msgspec.to_builtins(call, str_keys=True) for call in plain), schemas=_schemas(_types(own))
    )


def _schemas(types: Iterable[type]) -> Schema:
    """Return the schemas of types by their names."""
    return msgspec.json.schema_components(types, schema_hook=_any_json, ref_template=_REFERENCE)[1]


def _entry(call: ApiCall, scheme: str) -> Schema:
    access_errors = {403} | ({401} if scheme == "jwt" else set())
    errors = {*call.errors, 500, 503} | (set() if call.is_public else access_errors)
    parameters = [
        *(
            {"name": name, "in": "path", "required": True, "schema": _schema(ID)}
            for name in re.findall(r"{(\w+)}", call.path)
        ),
        *(_parameter(name, "query", schema) for name, schema in call.query.items()),
        *(_parameter(name, "header", schema) for name, schema in call.headers.items()),
    ]
    entry: Schema = {
        "operationId": re.sub(r"\W+", "_", call.route).strip("_"),
        "summary": call.summary,
        "parameters": parameters,
        "responses": {
            **{
                str(status): _response(content, is_streamed=status in call.streamed)
                for status, content in call.answers.items()
            },
            **{str(status): _response({"anyOf": [Error, GatewayMessage]}) for status in sorted(errors)},
            "429": _response({"anyOf": [Error, GatewayMessage]}),
        },
        "security": [] if call.is_public else [{scheme: []}],
    }
    if call.body is not None:
        is_json = call.body is not bytes
        content = {"application/json": {"schema": _schema(call.body)}} if is_json else {_BYTES: {}}
        entry["requestBody"] = {"required": call.needs_body, "content": content}
    return entry


def _parameter(name: str, location: str, parameter: Schema) -> Schema:
    schema = {key: _schema(value) for key, value in parameter.items() if key != "required"}
    return {"name": name, "in": location, "required": parameter.get("required", False), "schema": schema}


def _response(response: Any, *, is_streamed: bool = False) -> Schema:
    if response is None:
        return {"description": "done"}
    if isinstance(response, str):
        return {"description": "as described", "content": {response: {"schema": _EVENTS}}}
    content: Schema = {"application/json": {"schema": _schema(response)}}
    if is_streamed:
        content[sse.MEDIA_TYPE] = {"schema": _EVENTS}
    return {"description": "as described", "content": content}


def _schema(template: Any) -> Any:
    """Replace the types in a schema by references, and the other names by their values."""
    if isinstance(template, Named):
        value = template.load()
        # The values of a `Literal`.
        return _schema(value) if isinstance(value, type) else list(get_args(value)) or value
    if isinstance(template, type):
        return {"$ref": _REFERENCE.format(name=template.__name__)}
    if isinstance(template, dict):
        return {key: _schema(value) for key, value in template.items()}
    return [_schema(item) for item in template] if isinstance(template, list) else template


def _types(calls: Iterable[ApiCall]) -> list[type]:
    """Return the types of calls."""
    types: set[type] = set()
    pending: list[Any] = [content for call in calls for content in (call.body, *call.answers.values())]
    while pending:
        content = pending.pop()
        if isinstance(content, Named):
            content = content.load()
        if isinstance(content, type):
            types.add(content)
        elif isinstance(content, dict):
            pending += content.values()
        elif isinstance(content, list):
            pending += content
    return sorted(types, key=lambda kind: kind.__name__)


def _any_json(kind: type) -> Schema:
    """The schema of any JSON value; an unset value has no schema."""
    return {"not": {}} if kind is UnsetType else {"description": "any JSON"}
