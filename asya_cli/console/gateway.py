"""Passes calls of the page on to the gateway, signed with the user's credentials."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import urllib3

from asya.client.connection import signable, signed_headers
from asya.client.errors import MeshError, UnreachableError
from asya.tasks.reporting.aws.gateway_client import address_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from asya.client.connection import Connection

TIMEOUT_SECONDS = 40.0
"""How long the gateway may say nothing: longer than API Gateway's own limit of 30 seconds."""

_CONNECTIONS = 40
_CHUNK = 64 * 1024
_PASSED_ON = ("accept", "content-type", "idempotency-key", "last-event-id", "prefer")
_RETURNED = ("content-type", "retry-after")
_REDIRECTS = range(300, 400)


@dataclass(frozen=True)
class GatewayAnswer:
    """An answer of the gateway whose body arrives in pieces.

    Attributes:
        headers: The headers that the page gets.
        body: The pieces, each as soon as it arrives.
    """

    status: int
    headers: Mapping[str, str]
    body: Iterator[bytes]


@dataclass(frozen=True)
class Gateway:
    """The gateway of one mesh. Threads may share it."""

    connection: Connection
    _pool: urllib3.PoolManager = field(
        default_factory=lambda: urllib3.PoolManager(retries=False, maxsize=_CONNECTIONS), repr=False
    )

    def call(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> GatewayAnswer:
        """Make one call and return its answer as soon as the headers are there.

        Args:
            method: The method.
            target: Path and query, percent-encoded.
            headers: The headers of the page's request; only those of a list are passed on.
            body: The body.

        Raises:
            MeshError: There are no valid credentials, or the gateway does not answer.
        """
        url = signable(self.connection.gateway_url + target)
        own = {name: headers[name] for name in _PASSED_ON if name in headers}
        signed = signed_headers(self.connection, method, url, body, own)
        try:
            answer = self._pool.request(
                method,
                address_of(url),
                body=body,
                headers=signed,
                timeout=TIMEOUT_SECONDS,
                redirect=False,
                preload_content=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise UnreachableError(f"the gateway did not answer ({url}): {error}") from error
        if answer.status in _REDIRECTS:
            answer.release_conn()
            raise MeshError(
                f"the gateway answered {answer.status} to {method} {target}", "Check the address of the mesh."
            )
        returned = {name: answer.headers[name] for name in _RETURNED if name in answer.headers}
        return GatewayAnswer(answer.status, returned, _pieces(answer))


def _pieces(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield what arrives. An answer that breaks off ends early, and its reader asks again."""
    try:
        while piece := answer.read1(_CHUNK):
            yield piece
    except urllib3.exceptions.HTTPError:
        return
    finally:
        answer.close()
        answer.release_conn()
