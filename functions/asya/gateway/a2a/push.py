"""Push notifications of Agent2Agent: where they may go, and which changes of a task are told (`protocol §13`, `/a2a`).

A client names the address, so it is checked as one that is not trusted: https to a public host, but for hosts that the mesh file
allows. What a name stands for is known only when it is looked up: whoever sends checks that address too.
"""

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

import msgspec

from asya.gateway.a2a.requests import A2AError
from asya.gateway.a2a.types import PushConfig
from asya.gateway.json_rpc import INVALID_PARAMS
from asya.protocol.task import TaskRecord
from asya.tasks.view import TaskView

URL_LIMIT = 2048
SECRET_LIMIT = 4096
ID_LIMIT = 128


class PushTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where one kind of push notifications goes, as it is kept.

    Attributes:
        version: of Agent2Agent, in which its owner speaks.
        scheme, credentials: of the header `Authorization`, if both are there.
    """

    url: str
    version: str
    token: str | None = None
    scheme: str | None = None
    credentials: str | None = None


class PushNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A push notification on its way: to whom, and how the task stood."""

    config_id: str
    task: TaskView


def target_of(config: PushConfig, version: str, allowed_hosts: Collection[str]) -> PushTarget:
    """What is kept of a configuration.

    Raises:
        A2AError: if notifications may not go there, or it holds what no header can.
    """
    _check_url(config.url, allowed_hosts)
    authentication = config.authentication
    scheme = credentials = None
    if authentication is not None:
        scheme = authentication.scheme or next(iter(authentication.schemes), None)
        credentials = authentication.credentials
    for name, secret in (("token", config.token), ("authentication.scheme", scheme), ("credentials", credentials)):
        if secret and not (len(secret) <= SECRET_LIMIT and secret.isascii() and secret.isprintable()):
            raise A2AError(INVALID_PARAMS, f"{name} has up to {SECRET_LIMIT} printable ASCII characters", name)
    return PushTarget(
        url=config.url,
        version=version,
        token=config.token or None,
        scheme=scheme or None,
        credentials=credentials or None,
    )


def is_allowed(parts: SplitResult, allowed_hosts: Collection[str]) -> bool:
    """Whether the mesh file names this host, with its port or for all ports."""
    return parts.netloc in allowed_hosts or (parts.hostname or "") in allowed_hosts


def is_public(address: str) -> bool:
    """Whether an IP address is one of the open internet."""
    try:
        found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        # Addresses that carry an IPv4 one inside lead where that leads.
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is not None:
            found = inner
    return found.is_global and not (found.is_multicast or found.is_reserved)


def is_status_change(before: TaskRecord | None, after: TaskRecord) -> bool:
    """Whether a change of a record is told to those who watch it.

    Its beginning is not: whoever began it has the answer. Whoever begins to watch later is told how it stands.
    """
    if not after.is_watched:
        return False
    if before is None:
        return after.status != "pending"
    if not before.is_watched:
        return True
    return (before.generation, before.status, before.pause) != (after.generation, after.status, after.pause)


def _check_url(url: str, allowed_hosts: Collection[str]) -> None:
    is_sane = len(url) <= URL_LIMIT and url.isascii() and url.isprintable() and " " not in url
    too_much = f"it has up to {URL_LIMIT} printable ASCII characters without blanks"
    problem = _problem_of(url, allowed_hosts) if is_sane else too_much
    if problem is not None:
        raise A2AError(INVALID_PARAMS, f"push notifications cannot go to this url: {problem}", "url")


def _problem_of(url: str, allowed_hosts: Collection[str]) -> str | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "it is no address such as https://client.example/notify"
    if parts.username is not None or parts.password is not None:
        return "it holds a name or a password; use token or authentication"
    if is_allowed(parts, allowed_hosts):
        return None
    if parts.scheme != "https":
        return "it has to be https"
    return _problem_of_host(parts.hostname)


def _problem_of_host(host: str) -> str | None:
    try:
        ip_address(host)
    except ValueError:
        is_local = host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
        return "its host is not public" if is_local else None
    return None if is_public(host) else "its host is not public"
