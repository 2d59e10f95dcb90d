"""The API of the gateway: all calls except reports and streams (`protocol §13`)."""

from dataclasses import dataclass
from datetime import datetime

from asya.gateway.http.origin import Origins
from asya.gateway.http.router import HttpRoute, Request, Response, RouteGroup, required_identity
from asya.protocol.mesh_table import MeshTable


@dataclass(frozen=True, slots=True)
class Api:
    """The calls of all groups, the OpenAPI document and the health check."""

    mesh: MeshTable
    origins: Origins
    groups: tuple[RouteGroup, ...]

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The routes at a given time."""
        return (
            *(route for group in self.groups for route in group.routes(now)),
            HttpRoute("GET", "/openapi.json", self.openapi),
            HttpRoute("GET", "/health", lambda _: Response(200, {"status": "ok"})),
        )

    def openapi(self, request: Request) -> Response:
        """`GET /openapi.json`: the requests and responses of every call."""
        required_identity(request)
        # The document needs many types that other calls do not; the late import keeps cold starts short.
        from asya.gateway.lambdas.openapi import document

        takes_tokens = self.origins.takes_tokens(request)
        return Response(200, document(self.mesh, request.base_url, takes_tokens=takes_tokens))
