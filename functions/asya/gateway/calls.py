"""The gateway's calls: which there are, and which of its functions answers them (`protocol §13`, `§14`).

The stacks make the routes of this, the functions must answer each, and the OpenAPI document describes them all.
"""

from typing import Literal, NamedTuple

from asya.protocol import names

_API, _INGEST, _STREAM = names.GATEWAY_API, names.GATEWAY_INGEST, names.GATEWAY_STREAM

Group = Literal["tasks", "tools", "mcp", "a2a", "streams"]
"""What people's calls are about; a mesh may open some of these to tokens (JWT) only."""


class ApiCall(NamedTuple):
    """One call.

    Attributes:
        function: the gateway's function behind it.
        is_public: whether it may be made unsigned.
        group: what a call of people's is about. Reports, which are for the mesh itself, belong to none: see `takes_tokens`.
    """

    method: str
    path: str
    function: str
    is_public: bool = False
    group: Group = "tasks"

    def takes_tokens(self, groups: tuple[str, ...]) -> bool:
        """Whether people with a token (JWT) may make it where these groups are open to them. Reports are only ever signed."""
        return self.function != _INGEST and not self.is_public and self.group in groups

    @property
    def route(self) -> str:
        """As API Gateway names it: `GET /api/v1/mesh/{id}`."""
        return f"{self.method} {self.path}"


CALLS = (
    ApiCall("POST", "/api/v1/mesh", _API),
    ApiCall("GET", "/api/v1/mesh", _API),
    ApiCall("GET", "/api/v1/mesh/{id}", _API),
    ApiCall("GET", "/api/v1/mesh/{id}/children", _API),
    ApiCall("GET", "/api/v1/mesh/{id}/timeline", _API),
    ApiCall("DELETE", "/api/v1/mesh/{id}", _API),
    ApiCall("POST", "/api/v1/mesh/{id}/resume", _API),
    ApiCall("POST", "/api/v1/mesh/{id}/reopen", _API),
    ApiCall("POST", "/api/v1/mesh/{id}/replay", _API),
    ApiCall("POST", "/tools/call", _API, group="tools"),
    ApiCall("POST", "/mcp", _API, group="mcp"),
    ApiCall("GET", "/mcp", _API, group="mcp"),
    ApiCall("DELETE", "/mcp", _API, group="mcp"),
    ApiCall("POST", "/a2a", _API, group="a2a"),
    ApiCall("POST", "/a2a/tasks/{id}", _API, group="a2a"),
    ApiCall("GET", "/.well-known/agent-card.json", _API, is_public=True),
    ApiCall("GET", "/api/v1/mesh/{id}/events", _STREAM, group="streams"),
    # Open: the function looks for a token itself.
    ApiCall("GET", "/api/v1/mesh/{id}/stream", _STREAM, is_public=True, group="streams"),
    ApiCall("POST", "/api/v1/mesh/{id}/stream-token", _STREAM, group="streams"),
    ApiCall("POST", "/api/v1/mesh/events", _INGEST),
    ApiCall("POST", "/api/v1/mesh/{id}/events", _INGEST),
    ApiCall("POST", "/api/v1/mesh/states", _INGEST),
    ApiCall("GET", "/envelopes/{id}", _API),
    ApiCall("POST", "/envelopes/{id}/progress", _INGEST),
    ApiCall("POST", "/envelopes/{id}/final", _INGEST),
    ApiCall("GET", "/envelopes/{id}/stream", _STREAM, group="streams"),
    ApiCall("GET", "/jobs/{id}", _API),
    ApiCall("GET", "/jobs/{id}/stream", _STREAM, group="streams"),
    ApiCall("GET", "/openapi.json", _API),
    ApiCall("GET", "/health", _API, is_public=True),
)
