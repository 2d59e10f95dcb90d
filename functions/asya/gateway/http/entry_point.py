"""Entry points of functions that answer calls, and the objects that answer each, for Lambda and other modes."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from asya.api_call import ApiCall
from asya.function.aws.settings import Settings, load_settings
from asya.function.lambdas.function import Function
from asya.gateway.access import AccessRules
from asya.gateway.call_table import calls_of
from asya.gateway.http.router import HttpRoute, Request, Responder, Response, answer, required_identity
from asya.protocol import ids
from asya.protocol.api_errors import ApiError

if TYPE_CHECKING:
    from asya.capabilities.operations.aws.logs import LoggedLines
    from asya.senders.task_keys import EntryKeys, MeshKeys


def routes_of(
    function: str, settings: Settings, handlers: Iterable[object], build: Callable[[str], object] | None = None
) -> tuple[HttpRoute, ...]:
    """Return the routes of a mesh, as one function has them. A caller without the rights of a call never reaches its handler.

    Args:
        function: The name of the function.
        settings: Its settings.
        handlers: The objects that answer. A call names the class of its object, and the method.
        build: Builds further ones by their classes.

    Raises:
        LookupError: No object answers a call of this mesh.
    """
    by_class = {f"{type(each).__module__}.{type(each).__qualname__}": each for each in handlers}
    access = AccessRules(settings.table, settings.account, settings.region)
    calls = calls_of(settings.table)
    groups = settings.table.gateway.token_calls
    classes = dict.fromkeys(call.handler.rpartition(".")[0] for call in calls if call.function == function)
    if build is not None:
        by_class |= {name: build(name) for name in classes if name not in by_class}

    def responder(call: ApiCall) -> Responder | None:
        return with_rights(call, access, _handler(call, by_class)) if call.function == function else None

    return tuple(HttpRoute(call, responder(call), call.is_for_tokens(groups)) for call in calls)


def _handler(call: ApiCall, by_class: dict[str, object]) -> Responder:
    name, _, method = call.handler.rpartition(".")
    if name not in by_class:
        raise LookupError(f"{call.route}: nothing answers it; build {name} for {call.function}")
    responder: Responder = getattr(by_class[name], method)
    return responder


def with_rights(call: ApiCall, access: AccessRules, responder: Responder) -> Responder:
    """Return what refuses a caller without the rights of a call, also where a route has no authorizer."""
    if call.is_public:
        return responder

    def check(request: Request, now: datetime) -> Response:
        caller = access.caller(required_identity(request))
        if call.rights == "operators" and not caller.is_operator:
            raise ApiError(403, "forbidden", "only operators may make this call")
        return responder(request, now)

    return check


Invocation = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Answers an event of an HTTP API."""


def new_task_id() -> str:
    """Return the id of a new task."""
    return ids.mesh_id(uuid.uuid4().bytes)


@dataclass(frozen=True, kw_only=True)
class HttpServices(Function):
    """What a function that answers calls is built from.

    Attributes:
        new_id: Creates the id of a task.
        lines: The lines of the mesh's functions; None for those in CloudWatch Logs.
        on_lambda: Whether Lambda functions read the queues of the mesh.
        read_secret: Reads the text of a secret; None for the secret stores of AWS.
    """

    new_id: Callable[[], str] = new_task_id
    lines: LoggedLines | None = None
    on_lambda: bool = True
    read_secret: Callable[[str], str] | None = None

    @cached_property
    def keys(self) -> EntryKeys | MeshKeys:
        """Gives keys to what leaves."""
        # Imported for the functions that send envelopes.
        from asya.senders.lambdas.wiring import build_keys

        return build_keys(self)


class HttpEntryPoint:
    """A function that answers calls. Lambda calls it; it starts at the first event and stays.

    Args:
        build: Builds the calls of the function.
    """

    def __init__(self, build: Callable[[HttpServices], Sequence[HttpRoute]]) -> None:
        self._build = build
        self._started: Invocation | None = None

    def start(self, own: HttpServices) -> Invocation:
        """Build the function of a process, which the result calls for each event."""
        routes = self._build(own)

        def invoke(event: Mapping[str, Any]) -> dict[str, Any]:
            try:
                return answer(event, routes, own.environment.now(), own.telemetry.log)
            finally:
                own.telemetry.flush()

        return invoke

    def __call__(self, event: Mapping[str, Any], _context: object) -> dict[str, Any]:
        """Answer one event."""
        if self._started is None:
            self._started = self.start(HttpServices(load_settings(os.environ)))
        return self._started(event)
