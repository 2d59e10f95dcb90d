"""What a call of the gateway declares of itself, as data (`http_calls.py` in the folder of its capability).

A declaration names its handler, its types and its limits, and imports none of them. `asya.gateway.call_table` has the calls of
all capabilities.
"""

import pkgutil
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from asya.protocol.mesh_table import MeshTable

Schema = dict[str, Any]

Group = Literal["tasks", "tools", "mcp", "a2a", "streams"]
"""The subject of a call; a mesh may open some groups to tokens (JWT)."""

Rights = Literal["public", "signed", "operators"]
"""Who may call: everybody, whom the function itself may ask for a token or a signature; every known caller; or operators."""

Audience = Literal["clients", "holders of links", "other systems"]
"""Whom a call is for. The API for tokens has only calls for clients, and the OpenAPI document none for other systems."""


class Named(msgspec.Struct, frozen=True):
    """A type, a limit, a list of values or a predicate by its name, which a declaration does not import."""

    name: str

    def load(self) -> Any:
        """Import it."""
        return pkgutil.resolve_name(self.name)


class Apart(msgspec.Struct, frozen=True):
    """Another function that answers a call in some meshes.

    Attributes:
        function: The function.
        exists: The predicate of these meshes.
    """

    function: str
    exists: Named


class ApiCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call.

    Attributes:
        handler: The method that answers: a module, its class, and the method after the last dot.
        function: The function that answers the call.
        apart: The function that answers in meshes where that one has no room for it.
        summary: What it does, for the OpenAPI document and the page of the gateway.
        details: What the page says besides. Links are those of the page.
        rights: Who may call.
        group: The subject of the call; None for a call that never accepts tokens.
        takes_slash: Whether the path may end with a slash, which legacy clients write.
        audience: Whom it is for.
        in_console: Whether the page of `asya ui` may make it.
        exists: The predicate of meshes that have the call; None for all meshes.
        rate: Calls per second and their burst; None for those of the API.
        body: The content of the request: a schema, a named type, or `bytes` for content of any form.
        needs_body: Whether a request without content is refused.
        answers: The content by status; None for no body, a media type for text of that type.
        errors: The statuses of errors besides 403, 429 and 5xx.
        query, headers: The parameters by name.
        streamed: The statuses whose answer may also be Server-Sent Events.
        waits: Whether the call may wait for a task: a long poll (`protocol §13.waits`).
    """

    method: str
    path: str
    handler: str
    function: str
    apart: Apart | None = None
    summary: str
    details: str = ""
    rights: Rights = "signed"
    group: Group | None = "tasks"
    takes_slash: bool = False
    audience: Audience = "clients"
    in_console: bool = False
    exists: Named | None = None
    rate: tuple[int, int] | None = None
    body: Any = None
    needs_body: bool = True
    answers: Mapping[int, Any] = {}
    errors: tuple[int, ...] = ()
    query: Mapping[str, Schema] = {}
    headers: Mapping[str, Schema] = {}
    streamed: tuple[int, ...] = ()
    waits: bool = False

    def is_in(self, mesh: MeshTable) -> bool:
        """Whether a mesh has the call."""
        return self.exists is None or bool(self.exists.load()(mesh, self.function))

    def of(self, mesh: MeshTable) -> "ApiCall":
        """Return the call with the function that answers it in a mesh."""
        if self.apart is None or not self.apart.exists.load()(mesh, self.apart.function):
            return self
        return replace(self, function=self.apart.function)

    @property
    def is_public(self) -> bool:
        """Whether API Gateway asks for no signature."""
        return self.rights == "public"

    def takes_tokens(self, groups: tuple[str, ...]) -> bool:
        """Whether the call accepts tokens (JWT) if these groups are open to them."""
        return not self.is_public and self.group in groups

    def is_for_tokens(self, groups: tuple[str, ...]) -> bool:
        """Whether the API for tokens has the call if these groups are open to it."""
        return self.audience == "clients" and (self.is_public or self.takes_tokens(groups))

    @property
    def route(self) -> str:
        """Method and path: `GET /api/v1/mesh/{id}`."""
        return f"{self.method} {self.path}"

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of routes of its own. API Gateway refuses one that ends with a slash; a greedy variable matches it."""
        return (self.path, f"{self.path}/{{proxy+}}") if self.takes_slash else (self.path,)

    @property
    def variables(self) -> int:
        """The number of variables in the path. API Gateway chooses the route with the fewest."""
        return self.path.count("{")

    def parameters(self, path: str) -> dict[str, str] | None:
        """Match a path: the variable parts by name, or None."""
        parts = self.path.split("/")
        values = (path[:-1] if self.takes_slash and path == f"{self.path}/" else path).split("/")
        if len(parts) != len(values):
            return None
        pairs = list(zip(parts, values, strict=True))
        if not all(part == value or (part.startswith("{") and value) for part, value in pairs):
            return None
        return {part[1:-1]: value for part, value in pairs if part.startswith("{")}


LIMIT: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": Named("asya.tasks.listing.LARGEST_LIMIT"),
    "default": Named("asya.tasks.listing.DEFAULT_LIMIT"),
}
CURSOR: Schema = {"type": "string", "description": "next_cursor of the previous page"}
ID: Schema = {"type": "string", "minLength": 1, "maxLength": Named("asya.protocol.ids.ID_LIMIT")}
IDEMPOTENCY_KEY: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": Named("asya.gateway.http.router.KEY_LIMIT"),
    "pattern": "^[ -~]+$",
}
_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": Named("asya.tasks.listing.TEXT_LIMIT")}
_TIME: Schema = {"type": "string", "format": "date-time"}
STATUS: Schema = {"type": "string", "enum": Named("asya.protocol.task.TaskStatus")}
RESOLVED: Schema = {
    "type": "boolean",
    "description": "of failed tasks also those that are settled: replayed, dismissed or overtaken",
}
FILTERS: dict[str, Schema] = {
    "tool": _TEXT | {"description": "the tool that started the task or its root"},
    "actor": _TEXT | {"description": "the actor that the task is at, or ended at"},
    "owner": _TEXT | {"description": "the principal that owns the task; for operators"},
    "error": _TEXT | {"description": "a text in the error, in that of a retry, or in the reason"},
    "since": _TIME | {"description": "the earliest creation"},
    "until": _TIME | {"description": "the time before which the task was created"},
    "roots": {"type": "boolean", "description": "only tasks without a parent"},
    "retrying": {"type": "boolean", "description": "only running tasks that run again after an error"},
    "resolved": RESOLVED,
}
EVENT_STREAM: Mapping[int, Any] = {200: "text/event-stream", 204: None}
_FROM: Schema = {"type": "string", "description": "id of the last event that the client received"}
FROM_HEADER, FROM_QUERY = {"Last-Event-ID": _FROM}, {"last_event_id": _FROM}
