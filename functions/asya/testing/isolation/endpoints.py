"""Lets no call of AWS leave a process with a mesh of the test kit.

The services of a mesh are in memory. What its handlers, their threads and their libraries call beside them would reach AWS with the
credentials of the shell. Two guards refuse it: one in botocore, for every client of the process, and one where the address of a
host is asked for. A process that user code starts anew has neither, so the variables of an actor hold no credentials.
"""

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session
from botocore.loaders import create_loader

from asya.testing.errors import EndpointRefusedError

_NO_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "asya-testing",
    "AWS_SECRET_ACCESS_KEY": "asya-testing",
    "AWS_SESSION_TOKEN": "asya-testing",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
# What Lambda and EMR Serverless set too.
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class _State:
    """What this process allows.

    Attributes:
        configured: the endpoints that the configuration of pytest allows.
        of_meshes: those of the meshes that are at work.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.configured: tuple[str, ...] = ()
        self.of_meshes: list[tuple[str, ...]] = []

    def allows(self, host: str, port: object) -> bool:
        patterns = (*self.configured, *(pattern for each in self.of_meshes for pattern in each))
        return any(fnmatch(host, pattern) or fnmatch(f"{host}:{port}", pattern) for pattern in patterns)


_STATE = _State()


def configure(allowed: Iterable[str]) -> None:
    """Allow endpoints in this process, as the configuration of pytest says."""
    _STATE.configured = tuple(allowed)


def variables(region: str, allowed: tuple[str, ...] = ()) -> Mapping[str, str | None]:
    """The variables of an actor: none of the shell's AWS settings, unless an endpoint is allowed. None removes a variable.

    Args:
        region: the region of the mesh, unless the shell names one.
        allowed: the endpoints that the mesh allows.
    """
    regions = {name: os.environ.get(name, region) for name in _REGIONS}
    if _STATE.configured or allowed:
        return regions
    return {**{name: None for name in os.environ if name.startswith("AWS_")}, **_NO_CREDENTIALS, **regions}


@contextmanager
def closed(allowed: tuple[str, ...] = ()) -> Iterator[None]:
    """Refuse the calls of every client of this process, whatever its endpoint, while a mesh is at work.

    Args:
        allowed: the endpoints that the mesh allows.
    """
    guard()
    with _STATE.lock:
        _STATE.of_meshes.append(allowed)
    try:
        yield
    finally:
        with _STATE.lock:
            _STATE.of_meshes.remove(allowed)


@cache
def guard() -> None:
    """Refuse calls of AWS in this process from now on, from every thread, and in the processes that it forks."""
    send = URLLib3Session.send

    def checked(session: URLLib3Session, request: AWSPreparedRequest) -> Any:
        _check_call(str(request.method), str(request.url))
        return send(session, request)

    URLLib3Session.send = checked  # type: ignore[method-assign, assignment]
    suffixes = _aws_suffixes()

    def check_name(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.getaddrinfo":
            host = arguments[0].decode() if isinstance(arguments[0], bytes) else str(arguments[0])
            if host.lower().rstrip(".").endswith(suffixes) and not _STATE.allows(host.lower(), arguments[1]):
                raise EndpointRefusedError(_refusal(f"connects to {host}", host))

    sys.addaudithook(check_name)


def _check_call(method: str, url: str) -> None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if _STATE.allows(host, port) or _is_of_machine(host, while_at_work=bool(_STATE.of_meshes)):
        return
    name = host if parts.port is None else f"{host}:{port}"
    raise EndpointRefusedError(_refusal(f"calls {method} {parts.scheme}://{parts.netloc}{parts.path}", name))


def _is_of_machine(host: str, *, while_at_work: bool) -> bool:
    """Whether the endpoint is none of AWS: it tells credentials, or is on this machine while no mesh is at work."""
    if host == "localhost" or host.endswith(".localhost"):
        return not while_at_work
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_link_local or (address.is_loopback and not while_at_work)


def _refusal(what: str, host: str) -> str:
    return (
        f"code of this process {what}, and the test kit lets no call of AWS out. Let a double answer it, such as mock_aws of moto, "
        f"a Stubber of botocore or monkeypatch. To let it out, allow the endpoint: Mesh(…, allowed_endpoints=[{host!r}]), or "
        f"`asya_allowed_endpoints = {host}` in the configuration of pytest"
    )


def _aws_suffixes() -> tuple[str, ...]:
    """The ends of the host names of AWS, in all partitions."""
    partitions = create_loader().load_data("partitions")["partitions"]
    names = ("dnsSuffix", "dualStackDnsSuffix")
    return tuple(sorted({f".{partition['outputs'][name]}" for partition in partitions for name in names}))
