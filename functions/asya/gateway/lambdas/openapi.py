"""Builds the OpenAPI document from the calls and their descriptions (`GET /openapi.json`)."""

import re
from typing import Any

import msgspec
from msgspec import UnsetType

from asya.gateway.calls import CALLBACKS, WEBHOOK_CALL, ApiCall, calls_of
from asya.gateway.lambdas.api_types import Error, GatewayMessage
from asya.gateway.lambdas.call_descriptions import (
    CALL_DESCRIPTIONS,
    EVENTS_OF_A_STREAM,
    PARENT,
    CallDescription,
    Schema,
)
from asya.gateway.streams import sse
from asya.protocol.mesh_table import MeshTable

_REFERENCE = "#/components/schemas/{name}"
_BYTES = "application/octet-stream"

# The security schemes of the two APIs.
_SIGNED: Schema = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "description": "AWS Signature Version 4 of the service execute-api",
}
_BEARER: Schema = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


def _is_for_tokens(call: ApiCall, mesh: MeshTable) -> bool:
    """Whether the API for tokens has a call."""
    return call.route not in CALLBACKS and (call.is_public or call.takes_tokens(mesh.gateway.token_calls))


def document(mesh: MeshTable, url: str, *, takes_tokens: bool = False) -> Schema:
    """Build the document of one API of a mesh's gateway.

    Args:
        mesh: the mesh table.
        url: the base URL of the API.
        takes_tokens: whether the API accepts tokens; calls of the other API are signed.
    """
    scheme = "jwt" if takes_tokens else "sigv4"
    offered = [call for call in calls_of(mesh) if call is not WEBHOOK_CALL]
    calls = [call for call in offered if _is_for_tokens(call, mesh)]
    types = [Error, GatewayMessage, *_types()]
    _, schemas = msgspec.json.schema_components(types, schema_hook=_any_json, ref_template=_REFERENCE)
    paths: dict[str, Schema] = {}
    for call in calls if takes_tokens else offered:
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


def _operation(call: ApiCall, description: CallDescription, scheme: str) -> Schema:
    access_errors = {403} | ({401} if scheme == "jwt" else set())
    errors = {*description.errors, 500, 503} | (set() if call.is_public else access_errors)
    parameters = [
        *(
            {"name": name, "in": "path", "required": True, "schema": PARENT}
            for name in re.findall(r"{(\w+)}", call.path)
        ),
        *(_parameter(name, "query", schema) for name, schema in description.query.items()),
        *(_parameter(name, "header", schema) for name, schema in description.headers.items()),
    ]
    operation: Schema = {
        "operationId": re.sub(r"\W+", "_", call.route).strip("_"),
        "summary": description.summary,
        "parameters": parameters,
        "responses": {
            **{
                str(status): _response(content, is_streamed=status in description.streamed)
                for status, content in description.responses.items()
            },
            **{str(status): _response({"anyOf": [Error, GatewayMessage]}) for status in sorted(errors)},
            "429": _response({"anyOf": [Error, GatewayMessage]}),
        },
        "security": [] if call.is_public else [{scheme: []}],
    }
    if description.body is not None:
        is_json = description.body is not bytes
        content = {"application/json": {"schema": _schema(description.body)}} if is_json else {_BYTES: {}}
        operation["requestBody"] = {"required": description.is_body_required, "content": content}
    return operation


def _parameter(name: str, location: str, parameter: Schema) -> Schema:
    schema = {key: value for key, value in parameter.items() if key != "required"}
    return {"name": name, "in": location, "required": parameter.get("required", False), "schema": schema}


def _response(response: Any, *, is_streamed: bool = False) -> Schema:
    if response is None:
        return {"description": "done"}
    if isinstance(response, str):
        return {"description": "as described", "content": {response: {"schema": EVENTS_OF_A_STREAM}}}
    content: Schema = {"application/json": {"schema": _schema(response)}}
    if is_streamed:
        content[sse.MEDIA_TYPE] = {"schema": EVENTS_OF_A_STREAM}
    return {"description": "as described", "content": content}


def _schema(template: Any) -> Any:
    """Replace the types in a schema by references."""
    if isinstance(template, type):
        return {"$ref": _REFERENCE.format(name=template.__name__)}
    if isinstance(template, dict):
        return {key: _schema(value) for key, value in template.items()}
    return [_schema(item) for item in template] if isinstance(template, list) else template


def _types() -> list[type]:
    types: set[type] = set()
    pending: list[Any] = [
        content
        for description in CALL_DESCRIPTIONS.values()
        for content in (description.body, *description.responses.values())
    ]
    while pending:
        content = pending.pop()
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
