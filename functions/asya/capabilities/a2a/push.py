"""Push notifications of Agent2Agent: addresses, changes that cause them, and shares of time (`protocol §13`).

A client chooses the address, so it is not trusted: it is https to a public host, or a host that the mesh file allows.
The IP addresses behind a host name are checked when a notification is sent.

A receiver may hold an execution for the limit of a notification, and an owner may have many such receivers. So each owner has
a share of time in each minute, and a smaller one at each host. Owners have no share of a host together: one of them could use
it up, and hold up what others send there. A notification reserves its time limit before it is sent, and what it did not
use comes back afterwards. The reservation of a process that dies ends with its minute.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

import msgspec

from asya.capabilities.a2a.requests import A2AError
from asya.capabilities.a2a.types import PushConfig
from asya.function.nack import BlockedError
from asya.gateway.json_rpc import INVALID_PARAMS
from asya.protocol.table_keys import SHARE_PREFIX
from asya.protocol.task import TaskRecord
from asya.tasks.view import TaskView

URL_LIMIT = 2048
SECRET_LIMIT = 4096
ID_LIMIT = 128


class PushTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored push configuration.

    Attributes:
        scheme, credentials: The parts of the header `Authorization`; it is sent only with both.
    """

    url: str
    token: str | None = None
    scheme: str | None = None
    credentials: str | None = None


class PushNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A push notification on its queue: the configuration, and the task at that moment."""

    config_id: str
    task: TaskView


def push_target(config: PushConfig, allowed_hosts: Collection[str]) -> PushTarget:
    """Validate a configuration and return what is stored of it.

    Raises:
        A2AError: If the address is not allowed, or a value does not fit into a header.
    """
    _check_url(config.url, allowed_hosts)
    authentication = config.authentication
    scheme = credentials = None
    if authentication is not None:
        scheme = authentication.scheme
        credentials = authentication.credentials
    for name, secret in (("token", config.token), ("authentication.scheme", scheme), ("credentials", credentials)):
        if secret and not (len(secret) <= SECRET_LIMIT and secret.isascii() and secret.isprintable()):
            raise A2AError(INVALID_PARAMS, f"{name} must have at most {SECRET_LIMIT} printable ASCII characters", name)
    return PushTarget(
        url=config.url,
        token=config.token or None,
        scheme=scheme or None,
        credentials=credentials or None,
    )


def is_allowed_host(parts: SplitResult, allowed_hosts: Collection[str]) -> bool:
    """Return whether the mesh file allows a host, with its port or with any port."""
    return parts.netloc in allowed_hosts or (parts.hostname or "") in allowed_hosts


def is_public(address: str) -> bool:
    """Return whether an IP address is on the public internet."""
    try:
        parsed: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        # Packets to an address with an embedded IPv4 address go to that IPv4 address.
        embedded = parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo[1] if parsed.teredo else None)
        if embedded is not None:
            parsed = embedded
    return parsed.is_global and not (parsed.is_multicast or parsed.is_reserved)


def is_status_change(before: TaskRecord | None, after: TaskRecord) -> bool:
    """Return whether a change of a record causes notifications.

    The creation of a task causes none: its caller has the answer. A first configuration causes one with the current
    status.
    """
    if not after.is_watched:
        return False
    if before is None:
        return not after.is_pending
    if not before.is_watched:
        return True
    return (before.generation, before.status, before.pause) != (after.generation, after.status, after.pause)


def _check_url(url: str, allowed_hosts: Collection[str]) -> None:
    is_plain = len(url) <= URL_LIMIT and url.isascii() and url.isprintable() and " " not in url
    limits = f"it must have at most {URL_LIMIT} printable ASCII characters and no spaces"
    problem = _url_problem(url, allowed_hosts) if is_plain else limits
    if problem is not None:
        raise A2AError(INVALID_PARAMS, f"push notifications cannot be sent to this url: {problem}", "url")


def _url_problem(url: str, allowed_hosts: Collection[str]) -> str | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "it is not a URL such as https://client.example/notify"
    if parts.username is not None or parts.password is not None:
        return "it contains a user name or a password; use token or authentication"
    if is_allowed_host(parts, allowed_hosts):
        return None
    if parts.scheme != "https":
        return "it must be https"
    return _host_problem(parts.hostname)


def _host_problem(host: str) -> str | None:
    try:
        ip_address(host)
    except ValueError:
        is_local = host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
        return "its host is not public" if is_local else None
    return None if is_public(host) else "its host is not public"


WINDOW = 60
"""Seconds of a window."""
HOST_SECONDS, OWNER_SECONDS = 120.0, 240.0
"""Seconds of a window that the notifications of one owner may take: those to one host, and all of them."""


class ShareUsedError(BlockedError):
    """The share of an owner is used up, at a host or in all; the notification waits on its queue."""


@dataclass(frozen=True, slots=True)
class Share:
    """The time of an owner in one window, at a host or in all.

    Attributes:
        pk, sk: the key of its item.
        seconds: the time that it has.
        of: whose it is, for the error: `of this owner to host a.example`.
    """

    pk: str
    sk: str
    seconds: float
    of: str


def shares(host: str, owner: str | None, now: datetime) -> tuple[Share, Share]:
    """The shares that a notification needs.

    Args:
        host: the host of the address. Its ports have one share.
        owner: the owner of the task; tasks without an owner have one share.
    """
    window = f"window#{int(now.timestamp()) // WINDOW}"
    return (
        Share(_key("host", f"{host.lower()}\n{owner or ''}"), window, HOST_SECONDS, f"of this owner to host {host}"),
        Share(_key("owner", owner or ""), window, OWNER_SECONDS, "of this owner"),
    )


def _key(kind: str, name: str) -> str:
    return f"{SHARE_PREFIX}{kind}#{hashlib.sha256(name.encode()).hexdigest()}"
