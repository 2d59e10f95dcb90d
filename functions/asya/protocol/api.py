"""The gateway's calls: which there are, and which of its functions answers them (`protocol §13`, `§14`).

The stacks make the routes of this, the functions must answer each, and the OpenAPI document describes them all.
"""

from typing import NamedTuple

from asya.protocol import names

_API, _INGEST = names.GATEWAY_API, names.GATEWAY_INGEST


class Call(NamedTuple):
    """One call.

    Attributes:
        function: the gateway's function behind it.
        is_public: whether it may be made unsigned.
    """

    method: str
    path: str
    function: str
    is_public: bool = False

    @property
    def route(self) -> str:
        """As API Gateway names it: `GET /api/v1/mesh/{id}`."""
        return f"{self.method} {self.path}"


CALLS = (
    Call("POST", "/api/v1/mesh", _API),
    Call("GET", "/api/v1/mesh", _API),
    Call("GET", "/api/v1/mesh/{id}", _API),
    Call("GET", "/api/v1/mesh/{id}/children", _API),
    Call("GET", "/api/v1/mesh/{id}/timeline", _API),
    Call("DELETE", "/api/v1/mesh/{id}", _API),
    Call("POST", "/api/v1/mesh/{id}/resume", _API),
    Call("POST", "/api/v1/mesh/{id}/reopen", _API),
    Call("POST", "/api/v1/mesh/{id}/replay", _API),
    Call("POST", "/tools/call", _API),
    Call("POST", "/api/v1/mesh/events", _INGEST),
    Call("POST", "/api/v1/mesh/{id}/events", _INGEST),
    Call("POST", "/api/v1/mesh/states", _INGEST),
    Call("GET", "/envelopes/{id}", _API),
    Call("POST", "/envelopes/{id}/progress", _INGEST),
    Call("POST", "/envelopes/{id}/final", _INGEST),
    Call("GET", "/jobs/{id}", _API),
    Call("GET", "/openapi.json", _API),
    Call("GET", "/health", _API, is_public=True),
)
