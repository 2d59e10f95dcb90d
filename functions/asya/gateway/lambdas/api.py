"""The gateway's API: all calls but reports and streams (`protocol §13`)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from asya.gateway.http.origin import Origins
from asya.gateway.http.router import HttpRoute, Request, Response, required_identity
from asya.protocol.mesh_table import MeshTable


class RouteGroup(Protocol):
    """The calls about one subject."""

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The calls as of one moment."""


@dataclass(frozen=True, slots=True)
class Api:
    """The calls of all groups, the OpenAPI document and the health check."""

    mesh: MeshTable
    origins: Origins
    groups: tuple[RouteGroup, ...]

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The calls as of one moment."""
        return (
            *(route for group in self.groups for route in group.routes(now)),
            HttpRoute("GET", "/openapi.json", self.openapi),
            HttpRoute("GET", "/health", lambda _: Response(200, {"status": "ok"})),
        )

    def openapi(self, request: Request) -> Response:
        """`GET /openapi.json`: the requests and answers of every call."""
        required_identity(request)
        # Imports many types that no other call needs; this keeps cold starts short.
        from asya.gateway.lambdas.openapi import document

        takes_tokens = self.origins.takes_tokens(request)
        return Response(200, document(self.mesh, request.base_url, takes_tokens=takes_tokens))
