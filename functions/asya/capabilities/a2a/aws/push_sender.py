"""Sends push notifications to addresses that clients chose, each within a time limit (`protocol §13`, `/a2a`).

The timeout of a socket holds for a single call, so a server that sends a byte now and then would extend it for ever. Here
each call gets the time that is left. A call for TLS counts the records that it needs as one.

The host name is resolved once, all its IP addresses are checked, and the connection goes to one of them. So a name that
resolves differently a moment later (DNS rebinding) has no effect. Redirects are not followed, and no credentials of the
mesh are sent.
"""

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, cast
from urllib.parse import SplitResult, quote, urlsplit

from asya.capabilities.a2a.push import PushTarget, is_allowed_host, is_public

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


SECONDS = 10.0
"""The time limit of a notification, the resolution of its host included."""
# Characters that a request target may have besides letters, digits and "-._~" (RFC 3986).
_TARGET_CHARACTERS = "%/?:@!$&'()*+,;="
_PORTS = {"http": 80, "https": 443}
_TOKEN = "X-A2A-Notification-Token"

Resolve = Callable[[str, int], Sequence[str]]
"""Resolves a host and a port to IP addresses."""


class PushDeliveryError(Exception):
    """The notification was not delivered; a later attempt may succeed."""


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses of a host.

    Raises:
        PushDeliveryError: If the host cannot be resolved.
    """
    try:
        records = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise PushDeliveryError(f"host {host} cannot be resolved: {error}") from error
    return tuple(dict.fromkeys(str(record[4][0]) for record in records))


class PushSender:
    """Sends notifications.

    Args:
        allowed_hosts: Hosts that may be private and do not need https.
        seconds: The time limit of a notification, the resolution of its host included.
    """

    def __init__(self, allowed_hosts: Collection[str], resolve: Resolve = resolve, *, seconds: float = SECONDS) -> None:
        self._allowed_hosts = frozenset(allowed_hosts)
        self._resolve = resolve
        self._seconds = seconds

    def send(self, target: PushTarget, body: bytes) -> None:
        """Send one notification.

        Raises:
            PushDeliveryError: If the address is not allowed, or the response is not a 2xx in time.
        """
        parts = urlsplit(target.url)
        limit = TimeLimit(self._seconds)
        try:
            endpoint = self._endpoint(parts, limit)
            status = post(endpoint, _request_target(parts), body, headers_of(target), limit)
        except (OSError, ValueError, HTTPException) as error:
            raise PushDeliveryError(f"no answer from {parts.netloc}: {error}") from error
        if not 200 <= status < 300:
            raise PushDeliveryError(f"{parts.netloc} answered {status}")

    def _endpoint(self, parts: SplitResult, limit: TimeLimit) -> Endpoint:
        tls_host = parts.hostname if parts.scheme == "https" else None
        return Endpoint(self._address(parts, limit), parts.port or _PORTS[parts.scheme], tls_host)

    def _address(self, parts: SplitResult, limit: TimeLimit) -> str:
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        addresses = self._resolve_within(limit, host, port)
        if is_allowed_host(parts, self._allowed_hosts):
            # Prefer IPv4: a local name may resolve to IPv6 as well, where few servers listen.
            return min(addresses, key=lambda address: ":" in address)
        if parts.scheme != "https" or not all(map(is_public, addresses)):
            raise PushDeliveryError(f"{host} is not public: add it to gateway.notification_hosts to allow it")
        return addresses[0]

    def _resolve_within(self, limit: TimeLimit, host: str, port: int) -> Sequence[str]:
        """Resolve a host within the limit. The resolver of the system has no timeout, so it runs in a thread of its own.

        The owner of a name chooses the server that answers for it, and with it how long the answer takes.
        """
        answers: SimpleQueue[Sequence[str] | Exception] = SimpleQueue()

        def look_up() -> None:
            try:
                answers.put(self._resolve(host, port))
            except Exception as error:  # noqa: BLE001 - the caller raises it
                answers.put(error)

        Thread(target=look_up, name="resolve", daemon=True).start()
        try:
            answer = answers.get(timeout=limit.left())
        except Empty:
            raise PushDeliveryError(f"host {host} was not resolved in time") from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _request_target(parts: SplitResult) -> str:
    """Return the path and the query of a URL, as the request names them."""
    query = f"?{parts.query}" if parts.query else ""
    return quote((parts.path or "/") + query, safe=_TARGET_CHARACTERS)


def headers_of(target: PushTarget) -> dict[str, str]:
    """Return the headers of a notification."""
    headers = {"host": urlsplit(target.url).netloc, "content-type": "application/json", "user-agent": "asya"}
    if target.token:
        headers[_TOKEN] = target.token
    if target.scheme and target.credentials:
        headers["authorization"] = f"{target.scheme} {target.credentials}"
    return headers
