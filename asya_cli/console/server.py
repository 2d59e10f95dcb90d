"""The server of the console: the built page, and the calls of the gateway that it may make.

It runs on a socket that is listening already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec
import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from asya.client.errors import MeshError
from asya_cli.console.calls import QUERY_LIMIT, is_allowed
from asya_cli.console.guard import PROTECTION, Guard, Refusal
from asya_cli.console.redrives import TASKS_LIMIT, RedriveAnswer, RedriveRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from asya_cli.console.gateway import GatewayAnswer
    from asya_cli.console.page import PageFile

BODY_LIMIT = 512 * 1024
"""Bytes of a request's body. The largest one is the input of a resume, 128 KiB at the gateway."""


class GatewayCalls(Protocol):
    """Makes a call of the gateway; `asya_cli.console.gateway.Gateway` is the one that signs."""

    def call(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> GatewayAnswer:
        """Make one call and return its answer as soon as the headers are there."""


class MeshInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the page says about the mesh: its name, its place, and how the command selects it."""

    namespace: str
    region: str
    is_local: bool
    options: str
    version: str


class _Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    code: str
    message: str
    advice: str = ""


class _ProblemAnswer(msgspec.Struct, frozen=True):
    """An error, in the form of the gateway's errors."""

    error: _Problem


class _BodyTooLargeError(Exception):
    """The body of a request is larger than the limit."""


@dataclass(frozen=True)
class Console:
    """The ASGI application.

    Attributes:
        guard: Decides who is answered.
        page: The files of the page, by the path of their address.
        info: What the page says about the mesh.
        gateway: Makes the calls.
        redrive: Redrives dead letters.
    """

    guard: Guard
    page: Mapping[str, PageFile]
    info: MeshInfo
    gateway: GatewayCalls
    redrive: Callable[[RedriveRequest], RedriveAnswer]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":  # no WebSocket; uvicorn closes it
            return
        response = await self._answer(scope, receive)
        for name, value in PROTECTION.items():
            response.headers[name] = value
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        headers, method = Headers(scope=scope), scope["method"]
        path, query = scope["raw_path"].decode("ascii", "replace"), scope["query_string"].decode("ascii", "replace")
        if refusal := self.guard.refuse_address(headers):
            return _refused(refusal)
        if (file := self.page.get(path)) is not None and method in ("GET", "HEAD"):
            return Response(
                file.body, media_type=None, headers={"content-type": file.media_type}
            )  # HEAD gets the headers
        if refusal := self.guard.refuse_call(method, headers):
            return _refused(refusal)
        try:
            body = await _body(Request(scope, receive))
            return await self._call(method, path, query, headers, body)
        except _BodyTooLargeError:
            return _refused(Refusal(413, "too_large", f"a request may have {BODY_LIMIT // 1024} KiB"))
        except MeshError as error:
            return _failed(502, "gateway_unreachable", error.problem, error.advice)

    async def _call(self, method: str, path: str, query: str, headers: Headers, body: bytes) -> Response:
        if (method, path) == ("GET", "/console/info"):
            return _json(200, self.info)
        if (method, path) == ("POST", "/console/redrives"):
            return await self._redrives(body)
        if not is_allowed(method, path) or len(query) > QUERY_LIMIT:
            return _refused(Refusal(404, "not_found", f"the console makes no call {method} {path[:200]}"))
        target = f"{path}?{query}" if query else path
        answer = await run_in_threadpool(self.gateway.call, method, target, dict(headers), body)
        return StreamingResponse(answer.body, answer.status, dict(answer.headers))

    async def _redrives(self, body: bytes) -> Response:
        try:
            request = msgspec.json.decode(body, type=RedriveRequest)
        except msgspec.MsgspecError as error:
            return _failed(400, "invalid_json", f"the body names no tasks: {error}")
        if len(request.tasks) > TASKS_LIMIT:
            return _failed(400, "invalid_field", f"one request may name {TASKS_LIMIT} tasks", "Select fewer.")
        return _json(200, await run_in_threadpool(self.redrive, request))


async def _body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > BODY_LIMIT:
                raise _BodyTooLargeError
            parts.append(part)
    except ClientDisconnect:
        return b""
    return b"".join(parts)


def _refused(refusal: Refusal) -> Response:
    return _failed(refusal.status, refusal.code, refusal.message)


def _failed(status: int, code: str, message: str, advice: str = "") -> Response:
    return _json(status, _ProblemAnswer(_Problem(code=code, message=message, advice=advice)))


def _json(status: int, value: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


_GRACE_SECONDS = 1
"""How long open streams may hold up the end of the server."""


def make_server(console: ASGIApp) -> uvicorn.Server:
    """Return the server; `run` ends at SIGINT and SIGTERM, or when `should_exit` is set."""
    return uvicorn.Server(
        uvicorn.Config(
            console,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )
