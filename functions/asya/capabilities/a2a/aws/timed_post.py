"""Sends one HTTP request to a server that is not trusted, within a time limit for the whole exchange (`protocol §13`, `/a2a`).

The timeout of a socket holds for a single call, so a server that sends a byte now and then would extend it for ever. Here
each call gets the time that is left. A call for TLS counts the records that it needs as one.
"""

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CONNECT_SECONDS = 3.0


class TimeLimit:
    """The time that an exchange may take.

    Args:
        seconds: From now on.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends_at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: If none are left.
        """
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"the exchange takes more than {self._seconds:g} s")
        return left


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a request goes.

    Attributes:
        address: The IP address to connect to.
        tls_host: The host name of the certificate; None without TLS.
    """

    address: str
    port: int
    tls_host: str | None


def post(endpoint: Endpoint, target: str, body: bytes, headers: Mapping[str, str], limit: TimeLimit) -> int:
    """Send a POST request and return the status of the answer; its body is not read.

    Raises:
        OSError: If the connection, TLS or the exchange fails, or takes too long.
        ValueError: If TLS cannot use the host name.
        http.client.HTTPException: If the answer is not HTTP.
    """
    with _connect(endpoint, limit) as connected:
        connection = http.client.HTTPConnection(endpoint.address, endpoint.port)
        # Of a socket, the connection needs these methods only.
        connection.sock = cast("socket.socket", _TimedSocket(connected, limit))
        connection.request("POST", target, body, dict(headers))
        return connection.getresponse().status


def _connect(endpoint: Endpoint, limit: TimeLimit) -> socket.socket:
    timeout = min(_CONNECT_SECONDS, limit.left())
    connected = socket.create_connection((endpoint.address, endpoint.port), timeout)
    if endpoint.tls_host is None:
        return connected
    # On success, TLS takes the connection over, and there is nothing left to close.
    with connected:
        connected.settimeout(limit.left())
        return ssl.create_default_context().wrap_socket(connected, server_hostname=endpoint.tls_host)


class _TimedSocket:
    """A connected socket whose calls together keep the limit."""

    def __init__(self, connected: socket.socket, limit: TimeLimit) -> None:
        self._socket = connected
        self._limit = limit

    def sendall(self, data: bytes) -> None:
        """Send everything."""
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(self._limit.left())
            rest = rest[self._socket.send(rest) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the answer as a stream."""
        return io.BufferedReader(_Answer(self._socket, self._limit))

    def close(self) -> None:
        """Do nothing: the caller closes the socket, also after an error."""


class _Answer(io.RawIOBase):
    """The bytes that a socket receives within the limit."""

    def __init__(self, connected: socket.socket, limit: TimeLimit) -> None:
        super().__init__()
        self._socket = connected
        self._limit = limit

    def readable(self) -> bool:
        """Return True: the stream is for reading."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Receive some bytes."""
        self._socket.settimeout(self._limit.left())
        return self._socket.recv_into(buffer)
