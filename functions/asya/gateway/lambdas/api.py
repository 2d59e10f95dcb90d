"""The calls about the gateway itself (`protocol §13`)."""

from dataclasses import dataclass
from datetime import datetime

from asya.gateway.http.origin import Origins
from asya.gateway.http.router import Request, Response
from asya.protocol.mesh_table import MeshTable


@dataclass(frozen=True, slots=True)
class Api:
    """The OpenAPI document and the health check."""

    mesh: MeshTable
    origins: Origins

    def openapi(self, request: Request, _now: datetime) -> Response:
        """`GET /openapi.json`: the requests and responses of every call."""
        # The document needs many types that other calls do not; the late import keeps cold starts short.
        from asya.gateway.lambdas.openapi import document

        takes_tokens = self.origins.takes_tokens(request)
        return Response(200, document(self.mesh, request.base_url, takes_tokens=takes_tokens))

    def health(self, _request: Request, _now: datetime) -> Response:
        """`GET /health`: the gateway answers."""
        return Response(200, {"status": "ok"})
