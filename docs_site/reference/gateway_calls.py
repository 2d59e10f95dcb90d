"""The page of all calls of the gateway and their types, from its OpenAPI document."""

from http import HTTPStatus
from typing import Any

from asya.gateway.lambdas.openapi import document
from asya.protocol.mesh_table import Actor, MeshTable, Tool
from asya.protocol.pause import Pause
from docs_site.reference.tables import Schema, code, default_of, limits_of, table, type_of

INTRODUCTION = """\
# Calls of the gateway

Every call of the gateway with its parameters, body and responses, and the types that they use. A deployed gateway answers the
same as an OpenAPI document, at `GET /openapi.json`. [The gateway](../gateway.md) explains callers, limits and errors.
"""


def openapi() -> Schema:
    """Return the OpenAPI document of a mesh with all calls."""
    asking = Actor(kind="pause", pause=Pause(callback=True))
    mesh = MeshTable(namespace="shop", actors={"sign-off": asking}, tools={"publish": Tool(route=("sign-off",))})
    return document(mesh, "https://gateway.example")


def page() -> str:
    """Write the page."""
    api = openapi()
    lines = [INTRODUCTION]
    for path, calls in api["paths"].items():
        for method, call in calls.items():
            lines += _call(f"{method.upper()} {path}", call)
    lines += ["# Types of the calls", ""]
    for name, schema in sorted(api["components"]["schemas"].items()):
        lines += _type(name, schema)
    return "\n".join(lines)


def _call(route: str, call: Schema) -> list[str]:
    access = "Needs no signature." if call.get("security") == [] else ""
    lines = [f"## {route}", "", f"{call['summary']}. {access}".strip(), ""]
    if call.get("description"):
        lines += [call["description"], ""]
    if call.get("parameters"):
        lines += table(
            ("parameter", "in", "type", "default", "limits", "meaning"),
            (
                (
                    code(each["name"]),
                    each["in"],
                    type_of(each["schema"]),
                    default_of(each["schema"], required=each.get("required", False)),
                    limits_of(each["schema"]),
                    each.get("description", ""),
                )
                for each in call["parameters"]
            ),
        )
    if body := call.get("requestBody"):
        lines += [f"Body: {_content(body)}.", ""]
    rows = ((status, _phrase(status), _content(response)) for status, response in sorted(call["responses"].items()))
    return lines + table(("status", "meaning", "body"), rows)


def _phrase(status: str) -> str:
    return HTTPStatus(int(status)).phrase if status.isdigit() else "any other"


def _content(part: dict[str, Any]) -> str:
    contents = part.get("content") or {}
    return ", ".join(f"{type_of(content.get('schema') or {})} ({code(kind)})" for kind, content in contents.items())


def _type(name: str, schema: Schema) -> list[str]:
    lines = [f"## {name}", "", schema.get("description", ""), ""]
    required = schema.get("required", [])
    rows = [
        (code(key), type_of(value), default_of(value, required=key in required), limits_of(value))
        for key, value in schema.get("properties", {}).items()
    ]
    if rows:
        return lines + table(("field", "type", "default", "limits"), rows)
    return [*lines, f"A value: {type_of(schema)}.", ""]
