"""The calls of the gateway, and the function behind each (`protocol §13`, `§14`).

The stacks build the API's routes from this list. The functions answer the calls, and the OpenAPI document describes them.
"""

from typing import Literal, NamedTuple

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable

_API, _INGEST, _STREAM = names.GATEWAY_API, names.GATEWAY_INGEST, names.GATEWAY_STREAM
_LOGS, _OPERATIONS = names.LOGS, names.OPERATIONS

Group = Literal["tasks", "tools", "mcp", "a2a", "streams"]
"""The subject of a call; a mesh may open some groups to tokens (JWT)."""


class ApiCall(NamedTuple):
    """One call.

    Attributes:
        function: the gateway's function that answers the call.
        is_public: whether the call needs no signature.
        group: the subject of the call; ignored for reports, which never accept tokens.
        takes_slash: whether the path may end with a slash, which legacy clients write.
    """

    method: str
    path: str
    function: str
    is_public: bool = False
    group: Group = "tasks"
    takes_slash: bool = False

    def takes_tokens(self, groups: tuple[str, ...]) -> bool:
        """Whether the call accepts tokens (JWT) if these groups are open to them; reports must be signed."""
        return self.function != _INGEST and not self.is_public and self.group in groups

    @property
    def route(self) -> str:
        """The route key of API Gateway: `GET /api/v1/mesh/{id}`."""
        return f"{self.method} {self.path}"

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of its routes. API Gateway refuses a route that ends with a slash; a greedy variable matches that path."""
        return (self.path, f"{self.path}/{{proxy+}}") if self.takes_slash else (self.path,)

    @property
    def route_keys(self) -> tuple[str, ...]:
        """The route keys of its paths."""
        return tuple(f"{self.method} {path}" for path in self.paths)


CALLS = (
    ApiCall("POST", "/api/v1/mesh", _API, takes_slash=True),
    ApiCall("GET", "/api/v1/mesh", _API, takes_slash=True),
    ApiCall("POST", "/api/v1/mesh/redrive", _API),
    ApiCall("GET", "/api/v1/mesh/{id}", _API),
    ApiCall("GET", "/api/v1/mesh/{id}/children", _API),
    ApiCall("GET", "/api/v1/mesh/{id}/set", _API),
    ApiCall("GET", "/api/v1/mesh/{id}/timeline", _API),
    ApiCall("GET", "/api/v1/mesh/{id}/payloads", _API),
    ApiCall("GET", "/api/v1/mesh/{id}/payloads/{hop}", _API),
    ApiCall("DELETE", "/api/v1/mesh/{id}", _API),
    ApiCall("POST", "/api/v1/mesh/{id}/resume", _API),
    ApiCall("POST", "/api/v1/mesh/{id}/replay", _API),
    ApiCall("POST", "/api/v1/mesh/{id}/dismiss", _API),
    ApiCall("GET", "/api/v1/operations/failures", _API),
    ApiCall("POST", "/tools/call", _API, group="tools"),
    ApiCall("POST", "/mcp", _API, group="mcp"),
    ApiCall("GET", "/mcp", _API, group="mcp"),
    ApiCall("DELETE", "/mcp", _API, group="mcp"),
    ApiCall("POST", "/a2a", _API, group="a2a"),
    ApiCall("POST", "/a2a/tasks/{id}", _API, group="a2a"),
    ApiCall("GET", "/.well-known/agent-card.json", _API, is_public=True),
    ApiCall("GET", "/api/v1/mesh/{id}/events", _STREAM, group="streams"),
    # Public for API Gateway: the function checks the stream token itself.
    ApiCall("GET", "/api/v1/mesh/{id}/stream", _STREAM, is_public=True, group="streams"),
    ApiCall("POST", "/api/v1/mesh/{id}/stream-token", _STREAM, group="streams"),
    ApiCall("POST", "/api/v1/mesh/events", _INGEST),
    ApiCall("POST", "/api/v1/mesh/{id}/events", _INGEST),
    ApiCall("GET", "/api/v1/operations/logs/{id}", _LOGS),
    ApiCall("GET", "/api/v1/operations/actors/{actor}/logs", _LOGS),
    ApiCall("GET", "/api/v1/operations/runs/{run_id}/logs", _LOGS),
    ApiCall("GET", "/api/v1/operations/mesh", _OPERATIONS),
    ApiCall("GET", "/api/v1/operations/actors/{actor}", _OPERATIONS),
    ApiCall("GET", "/api/v1/operations/dead-letters", _OPERATIONS),
    ApiCall("GET", "/api/v1/operations/runs", _OPERATIONS),
    ApiCall("GET", "/api/v1/operations/runs/{run_id}", _OPERATIONS),
    ApiCall("GET", "/api/v1/triggers", _API),
    ApiCall("POST", "/api/v1/triggers", _API),
    ApiCall("GET", "/api/v1/triggers/{trigger}", _API),
    ApiCall("POST", "/api/v1/triggers/{trigger}/pause", _API),
    ApiCall("POST", "/api/v1/triggers/{trigger}/resume", _API),
    ApiCall("POST", "/api/v1/triggers/{trigger}/fire", _API),
    ApiCall("GET", "/api/v1/backfills", _API),
    ApiCall("POST", "/api/v1/backfills", _API),
    ApiCall("GET", "/api/v1/backfills/{id}", _API),
    ApiCall("POST", "/api/v1/backfills/{id}/resume", _API),
    ApiCall("DELETE", "/api/v1/backfills/{id}", _API),
    ApiCall("GET", "/envelopes/{id}", _API),
    ApiCall("POST", "/envelopes/{id}/progress", _INGEST),
    ApiCall("POST", "/envelopes/{id}/final", _INGEST),
    ApiCall("GET", "/envelopes/{id}/stream", _STREAM, group="streams"),
    ApiCall("GET", "/jobs/{id}", _API),
    ApiCall("GET", "/jobs/{id}/stream", _STREAM, group="streams"),
    # Public for API Gateway: the function checks the token itself. Only a mesh whose pauses have callbacks has these calls.
    ApiCall("GET", "/callbacks", _API, is_public=True),
    ApiCall("POST", "/callbacks", _API, is_public=True),
    ApiCall("GET", "/openapi.json", _API),
    ApiCall("GET", "/health", _API, is_public=True),
)

CALLBACKS = frozenset({"GET /callbacks", "POST /callbacks"})

# No call for clients of the mesh, so neither the OpenAPI document nor the API for tokens has it. Public for API Gateway: the
# function checks the signature of the sender. Only meshes with webhooks have it.
WEBHOOK_CALL = ApiCall("POST", "/hooks/{name}", names.WEBHOOKS, is_public=True)


_SLASHED = frozenset(f"{call.path}/" for call in CALLS if call.takes_slash)


def path_of(path: str) -> str:
    """The path of a request, without a slash at its end if its call takes one."""
    return path[:-1] if path in _SLASHED else path


def calls_of(table: MeshTable) -> tuple[ApiCall, ...]:
    """The calls of a mesh: the open calls for callbacks only if a pause actor has them, and that of webhooks only with one."""
    calls = CALLS if table.has_callbacks else tuple(call for call in CALLS if call.route not in CALLBACKS)
    return (*calls, WEBHOOK_CALL) if table.webhooks else calls
