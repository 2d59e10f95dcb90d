"""Sends push notifications to addresses that strangers have named (`protocol §13`, `/a2a`).

The name is looked up once, every address it stands for is checked, and the connection goes to one of those: a name that
stands for something else the next moment gains nothing. Redirections are not followed, and no credential of the mesh is sent.
"""

import socket
from collections.abc import Callable, Collection, Sequence
from urllib.parse import SplitResult, urlsplit

import urllib3

from asya.gateway.a2a.push import PushTarget, is_allowed, is_public

_SECONDS = 10.0
_CONNECT_SECONDS = 3.0
_PORTS = {"http": 80, "https": 443}
_TOKEN = "X-A2A-Notification-Token"

# Gives the addresses of a host.
Resolve = Callable[[str, int], Sequence[str]]


class PushDeliveryError(Exception):
    """The notification has not been taken; it may be another time."""


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host.

    Raises:
        PushDeliveryError: if there are none just now.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise PushDeliveryError(f"{host} is not found: {error}") from error
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))


class PushSender:
    """Sends notifications.

    Args:
        allowed_hosts: hosts that may be private and need no https.
    """

    def __init__(self, allowed_hosts: Collection[str], resolve: Resolve = resolve) -> None:
        self._allowed_hosts = frozenset(allowed_hosts)
        self._resolve = resolve

    def send(self, target: PushTarget, body: bytes) -> None:
        """Send one notification and see it taken.

        Raises:
            PushDeliveryError: if it may not go there, or nobody takes it.
        """
        parts = urlsplit(target.url)
        address = self._address(parts)
        with _pool(parts, address) as pool:
            try:
                answer = pool.urlopen(
                    "POST",
                    parts._replace(scheme="", netloc="", fragment="").geturl() or "/",
                    body=body,
                    headers=_headers(target, parts),
                    redirect=False,
                    preload_content=False,
                )
            except urllib3.exceptions.HTTPError as error:
                raise PushDeliveryError(f"no answer from {parts.netloc}: {error}") from error
            answer.close()
        if not 200 <= answer.status < 300:
            raise PushDeliveryError(f"{parts.netloc} answered {answer.status}")

    def _address(self, parts: SplitResult) -> str:
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        addresses = self._resolve(host, port)
        if is_allowed(parts, self._allowed_hosts):
            # A name of this machine may stand for IPv6 too, where few servers listen.
            return min(addresses, key=lambda address: ":" in address)
        if parts.scheme != "https" or not all(map(is_public, addresses)):
            raise PushDeliveryError(f"{host} is not public")
        return addresses[0]


def _pool(parts: SplitResult, address: str) -> urllib3.HTTPConnectionPool:
    port = parts.port or _PORTS[parts.scheme]
    timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, total=_SECONDS)
    if parts.scheme == "http":
        return urllib3.HTTPConnectionPool(address, port, timeout=timeout, retries=False)
    host = parts.hostname or ""
    return urllib3.HTTPSConnectionPool(
        address, port, timeout=timeout, retries=False, server_hostname=host, assert_hostname=host
    )


def _headers(target: PushTarget, parts: SplitResult) -> dict[str, str]:
    headers = {"host": parts.netloc, "content-type": "application/json", "user-agent": "asya"}
    if target.token:
        headers[_TOKEN] = target.token
    if target.scheme and target.credentials:
        headers["authorization"] = f"{target.scheme} {target.credentials}"
    return headers
