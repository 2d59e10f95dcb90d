"""The agent card: what a mesh offers to other agents, for everybody to read (`protocol §13`, `/.well-known/agent-card.json`).

One document for both versions: each reads its own members and passes over the other's.
"""

import msgspec

from asya.gateway.a2a.tool_requests import text_argument
from asya.gateway.a2a.versions import VERSIONS
from asya.protocol.mesh_table import MeshTable, Tool

JSON, TEXT = "application/json", "text/plain"
Object = dict[str, object]

_SIGV4: Object = {"name": "Authorization", "description": "AWS Signature Version 4 of the service execute-api"}
_BEARER: Object = {"scheme": "Bearer", "bearerFormat": "JWT"}
# Of each the form of 1.0 beside that of 0.3, which has types.
_SCHEMES: dict[str, Object] = {
    "sigv4": {"apiKeySecurityScheme": {**_SIGV4, "location": "header"}, "type": "apiKey", "in": "header", **_SIGV4},
    "jwt": {"httpAuthSecurityScheme": _BEARER, "type": "http", **_BEARER},
}


def card(mesh: MeshTable, base_url: str, *, takes_tokens: bool = False) -> Object:
    """The card of a mesh.

    Args:
        base_url: of the API, without a trailing slash.
        takes_tokens: whether it is the one for people with a token; calls of the other are signed.
    """
    agent, url = mesh.agent, f"{base_url}/a2a"
    scheme = "jwt" if takes_tokens else "sigv4"
    return {
        "name": agent.name or mesh.namespace,
        "description": agent.description or f"The tools of the mesh {mesh.namespace}",
        "version": agent.version or "1",
        "capabilities": {"streaming": True, "pushNotifications": bool(mesh.tools)},
        "defaultInputModes": [JSON, TEXT],
        "defaultOutputModes": [JSON],
        "skills": _skills(mesh),
        # 1.0
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version.name} for version in VERSIONS
        ],
        "securityRequirements": [{"schemes": {scheme: {"list": []}}}],
        # 0.3
        "url": url,
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
        "security": [{scheme: []}],
        # both
        "securitySchemes": {scheme: _SCHEMES[scheme]},
    }


def _skills(mesh: MeshTable) -> list[Object]:
    """The tools, or those of them that the mesh file shows, with what it says of them."""
    if mesh.agent.skills is None:
        return [_skill(name, tool) for name, tool in mesh.tools.items()]
    shown = ((str(skill.get("id")), skill) for skill in mesh.agent.skills)
    return [_skill(name, mesh.tools[name]) | skill for name, skill in shown if name in mesh.tools]


def _skill(name: str, tool: Tool) -> Object:
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
