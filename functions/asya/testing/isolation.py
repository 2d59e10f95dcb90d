"""Keeps the work of a mesh apart from its process: one mesh at a time, with its own loop and clock.

freezegun's classes are not what msgspec and asyncio take, so the code of the mesh has the real ones.
No call of AWS leaves the process.
"""

import asyncio
import datetime as datetime_module
import functools
import inspect
import os
import sys
import threading
import time as time_module
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from ipaddress import ip_address
from types import ModuleType
from typing import Any, TypeVar
from unittest import mock
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session
from botocore.loaders import create_loader

from asya.testing.errors import EndpointRefusedError

T = TypeVar("T")

_OWN = ("asya", "asya_infra", "asya_spark")
_NAMES = {
    datetime_module: {"datetime": "FakeDatetime", "date": "FakeDate"},
    time_module: {
        name: f"fake_{name}"
        for name in (
            *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
            *("gmtime", "localtime", "strftime"),
        )
    },
}


@contextmanager
def own_clock() -> Iterator[None]:
    """Let the modules of the mesh have the real classes and functions of time for a while."""
    freezegun: Any = sys.modules.get("freezegun.api")
    if freezegun is None or not freezegun.freeze_factories:
        yield
        return
    real = _real_values(freezegun)
    changed = _exchange(real)
    try:
        with mock.patch.object(_class_of_loops(), "time", lambda _: freezegun.real_monotonic()):
            yield
    finally:
        if freezegun.freeze_factories:
            for module, name, value in changed:
                setattr(module, name, value)


def on_own_clock(kind: type[T]) -> type[T]:
    """Let the public methods and properties of a class run with `own_clock`."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, property) and member.fget is not None:
            setattr(kind, name, property(_wrapped(member.fget), doc=member.__doc__))
        elif inspect.isfunction(member):
            setattr(kind, name, _wrapped(member))
    return kind


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        with own_clock():
            return function(*arguments, **named)

    return run


def load_own_clock() -> None:
    """As `own_clock`, for modules that were imported since."""
    freezegun: Any = sys.modules.get("freezegun.api")
    if freezegun is not None and freezegun.freeze_factories:
        _exchange(_real_values(freezegun))


def plain_datetime(moment: datetime_module.datetime) -> datetime_module.datetime:
    """The moment as an instance of `datetime` itself, and not of a subclass."""
    kind: type[datetime_module.datetime] = next(base for base in type(moment).__mro__ if base.__module__ == "datetime")
    time = (moment.hour, moment.minute, moment.second, moment.microsecond)
    return kind(moment.year, moment.month, moment.day, *time, moment.tzinfo, fold=moment.fold)


def _class_of_loops() -> type[asyncio.AbstractEventLoop]:
    """The class of new loops. Its policy decides, and freezegun may have given it a clock of its own."""
    loop = asyncio.new_event_loop()
    loop.close()
    return type(loop)


def _real_values(freezegun: Any) -> Mapping[int, Any]:
    """The real value by the id of its replacement; a module of time is replaced by one with its real values."""
    values: dict[int, Any] = {}
    for module, names in _NAMES.items():
        own = ModuleType(module.__name__)
        vars(own).update(vars(module))
        for name, fake in names.items():
            real = getattr(freezegun, f"real_{name}")
            values[id(getattr(freezegun, fake))] = real
            setattr(own, name, real)
        values[id(module)] = own
    return values


def _exchange(values: Mapping[int, Any]) -> list[tuple[ModuleType, str, Any]]:
    """Exchange values in the modules of the mesh; returns what was there."""
    changed = []
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _OWN and name != __name__:
            for attribute, value in list(vars(module).items()):
                if id(value) in values:
                    setattr(module, attribute, values[id(value)])
                    changed.append((module, attribute, value))
    return changed


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
        check_call(str(request.method), str(request.url))
        return send(session, request)

    URLLib3Session.send = checked  # type: ignore[method-assign, assignment]
    suffixes = aws_suffixes()

    def check_name(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.getaddrinfo":
            host = arguments[0].decode() if isinstance(arguments[0], bytes) else str(arguments[0])
            if host.lower().rstrip(".").endswith(suffixes) and not _STATE.allows(host.lower(), arguments[1]):
                raise EndpointRefusedError(_refusal(f"connects to {host}", host))

    sys.addaudithook(check_name)


def check_call(method: str, url: str) -> None:
    """Refuse a call of AWS that is not allowed.

    Raises:
        EndpointRefusedError: the endpoint is of AWS, and neither the configuration nor a mesh allows it.
    """
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


def aws_suffixes() -> tuple[str, ...]:
    """The ends of the host names of AWS, in all partitions."""
    partitions = create_loader().load_data("partitions")["partitions"]
    names = ("dnsSuffix", "dualStackDnsSuffix")
    return tuple(sorted({f".{partition['outputs'][name]}" for partition in partitions for name in names}))


# The doubles, the variables and the modules of a mesh are those of the whole process.
_AT_WORK = threading.RLock()


@contextmanager
def isolated(allowed_endpoints: tuple[str, ...] = ()) -> Iterator[None]:
    """Let a mesh work in the calling thread, after those that work in other threads."""
    with _AT_WORK, _no_running_loop(), own_clock(), closed(allowed_endpoints):
        yield


@contextmanager
def _no_running_loop() -> Iterator[None]:
    """Let code of the mesh run loops of its own, although the test runs in one; functions of Lambda have none either."""
    loop = asyncio._get_running_loop()
    if loop is None:
        yield
        return
    task = asyncio.current_task(loop)
    if task is not None:
        asyncio.tasks._leave_task(loop, task)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
        if task is not None:
            asyncio.tasks._enter_task(loop, task)
