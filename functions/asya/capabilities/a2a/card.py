"""The agent card: the public description of a mesh (`protocol §13`, `/.well-known/agent-card.json`)."""

import msgspec

from asya.capabilities.a2a.tool_requests import text_argument
from asya.capabilities.a2a.versions import VERSION
from asya.protocol.mesh_table import MeshTable, Tool

JSON, TEXT = "application/json", "text/plain"
JsonObject = dict[str, object]

_SIGV4: JsonObject = {"name": "Authorization", "description": "AWS Signature Version 4 of the service execute-api"}
_BEARER: JsonObject = {"scheme": "Bearer", "bearerFormat": "JWT"}
_SCHEMES: dict[str, JsonObject] = {
    "sigv4": {"apiKeySecurityScheme": {**_SIGV4, "location": "header"}},
    "jwt": {"httpAuthSecurityScheme": _BEARER},
}


def card(mesh: MeshTable, base_url: str, *, takes_tokens: bool = False) -> JsonObject:
    """Return the card of a mesh.

    Args:
        base_url: The base URL of the API, without a trailing slash.
        takes_tokens: Whether the API takes tokens; calls of the other API are signed.
    """
    agent, url = mesh.agent, f"{base_url}/a2a"
    scheme = "jwt" if takes_tokens else "sigv4"
    return {
        "name": agent.name or mesh.namespace,
        "description": agent.description or f"The tools of the mesh {mesh.namespace}",
        "version": agent.version or "1",
        "capabilities": {"streaming": True, "pushNotifications": True},
        "defaultInputModes": [JSON, TEXT],
        "defaultOutputModes": [JSON],
        "skills": _skills(mesh),
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": VERSION}],
        "securityRequirements": [{"schemes": {scheme: {"list": []}}}],
        "securitySchemes": {scheme: _SCHEMES[scheme]},
    }


def _skills(mesh: MeshTable) -> list[JsonObject]:
    """Return one skill per tool, or the skills that the mesh file declares."""
    if mesh.agent.skills is None:
        return [_skill(name, tool) for name, tool in mesh.tools.items()]
    declared = ((str(skill.get("id")), skill) for skill in mesh.agent.skills)
    return [_skill(name, mesh.tools[name]) | skill for name, skill in declared if name in mesh.tools]


def _skill(name: str, tool: Tool) -> JsonObject:
    modes = [JSON, TEXT] if text_argument(tool) is not None else [JSON]
    schema = msgspec.json.encode(tool.input_schema, order="deterministic").decode()
    return {
        "id": name,
        "name": name,
        "description": f"{tool.description}\n\nArguments, as JSON Schema: {schema}".lstrip(),
        "tags": ["tool"],
        "inputModes": modes,
        "outputModes": [JSON],
    }
