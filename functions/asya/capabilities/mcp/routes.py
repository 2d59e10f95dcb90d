"""HTTP routes of Model Context Protocol: stateless streamable HTTP at `POST /mcp` (`protocol §13`).

Any instance of the function answers any request. The client carries what joins two requests: the session id from the
handshake, the task's id in answers, and the request state of a form. The idempotency key derives from the session and
the request id, so a repeated call and a cancellation both find the task.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from asya.capabilities.mcp import types as mcp
from asya.capabilities.mcp.calls import CallResult, McpCalls, McpCancellation, ToolCall
from asya.capabilities.mcp.results import ProgressNotifications, error_result
from asya.capabilities.mcp.revision import McpRequest, decode_params, read_request, require_supported
from asya.capabilities.mcp.tools import INSTRUCTIONS, tool_list
from asya.capabilities.mcp.types import SESSION_HEADER
from asya.gateway.access import Caller
from asya.gateway.http.router import (
    Request,
    Response,
    TextBody,
    check_size,
    preferred_wait,
    public_error,
    required_identity,
    with_request_id,
)
from asya.gateway.json_rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Failure,
    MessageId,
    RpcError,
    RpcMessage,
    RpcNotification,
    Success,
    read,
)
from asya.gateway.routes.tool_tasks import ToolTasks
from asya.gateway.routes.tools import wait_seconds
from asya.protocol.api_errors import ApiError
from asya.protocol.exact_json import encode_json
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.starts.idempotency import IdempotencyKey
from asya.tasks.starts.tools import InvalidArgumentsError

JSON, EVENTS = "application/json", "text/event-stream"
_SESSION = re.compile(r"[!-~]{1,128}")


@dataclass(frozen=True, slots=True)
class AcceptedTypes:
    """The media types that a client accepts."""

    json: bool
    events: bool


def require_same_origin(request: Request) -> None:
    """Reject a request from a page of another site, which could use the browser's network access.

    Raises:
        ApiError: 403 if the header `Origin` names another host.
    """
    origin = request.headers.get("origin")
    if origin is not None and _host(origin) != _host(request.base_url):
        problem = f"pages of {origin[:200]!r} may not call this API; call it from its own origin or without a browser"
        raise ApiError(403, "forbidden_origin", problem, "Origin")


def accepted_types(request: Request) -> AcceptedTypes:
    """Return the media types of the header `Accept`; all types without it.

    Raises:
        ApiError: 406 if the client accepts neither JSON nor events.
    """
    accept = request.headers.get("accept", "*/*")
    names = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    types = AcceptedTypes(
        json=not names.isdisjoint({JSON, "application/*", "*/*"}),
        events=not names.isdisjoint({EVENTS, "text/*", "*/*"}),
    )
    if not (types.json or types.events):
        raise ApiError(406, "not_acceptable", f"a response is {JSON} or {EVENTS}; accept one of them", "Accept")
    return types


def session_id(request: Request) -> str | None:
    """Return the session id from the client's handshake; the gateway does not store it."""
    session = request.headers.get(SESSION_HEADER)
    return session if session is not None and _SESSION.fullmatch(session) else None


def idempotency_key(session: str, message_id: MessageId) -> str:
    """Return the idempotency key of a request, which is unique within its session; a cancellation uses it too."""
    return "mcp " + hashlib.sha256(f"{session}\n{json.dumps(message_id)}".encode()).hexdigest()


def rpc_response(
    message: Success | Failure, notifications: Sequence[RpcNotification], accepted: AcceptedTypes
) -> Response:
    """Return a response: an event stream if notifications come first or the client accepts nothing else, or JSON."""
    if accepted.events and (notifications or not accepted.json):
        return Response(200, TextBody(EVENTS, "".join(_event(each) for each in (*notifications, message))))
    return Response(200, message)


def _event(message: RpcNotification | Success | Failure) -> str:
    # A result keeps its line breaks; the data of an event must be one line.
    text = msgspec.json.format(encode_json(message), indent=-1).decode("utf-8")
    return f"event: message\ndata: {text}\n\n"


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


PATH = "/mcp"
_Result = TypeVar("_Result", bound=mcp.McpResult)
_CLIENT_ERRORS = {
    "unknown_tool": INVALID_PARAMS,
    "invalid_field": INVALID_PARAMS,
    "invalid_json": INVALID_PARAMS,
    "idempotency_mismatch": INVALID_REQUEST,
    "idempotency_in_progress": INVALID_REQUEST,
}
"""Error codes for mistakes of the client, which are errors of JSON-RPC; the model sees all others as results."""


@dataclass(frozen=True, slots=True)
class McpRoutes:
    """Serves `/mcp`."""

    tools: ToolTasks
    calls: McpCalls
    cancels: McpCancellation

    def refuse(self, request: Request, _now: datetime) -> Response:
        """Answer clients that would open a stream or end a session: this server has neither."""
        problem = (
            f"{PATH} does not support {request.method}: it has no streams to open and no sessions to end; use POST"
        )
        return Response(405, {"error": {"code": "method_not_allowed", "message": problem}}, {"allow": "POST"})

    def post(self, request: Request, now: datetime) -> Response:
        """Answer a request; a notification gets 202."""
        caller = self.tools.access.caller(required_identity(request))
        require_same_origin(request)
        check_size(request, self.tools.calls.mesh.gateway.max_body)
        message: RpcMessage | None = None
        try:
            message = read(request.text)
            if message.id is UNSET:
                return self._handle_notification(message, request, caller, now)
            accepted = accepted_types(request)
            mcp_request = read_request(message, request.headers)
        except RpcError as error:
            return Response(400, error.to_failure(message.id if message else UNSET))
        return self._handle_request(mcp_request, request, caller, accepted, now)

    def _handle_request(
        self, mcp_request: McpRequest, request: Request, caller: Caller, accepted: AcceptedTypes, now: datetime
    ) -> Response:
        message, token = mcp_request.message, mcp_request.meta.progress_token
        progress = ProgressNotifications(token) if token is not None and accepted.events else None
        assert message.id is not UNSET
        try:
            headers = {}
            match message.method:
                case "tools/call":
                    result: mcp.McpResult = self._call_tool(mcp_request, request, caller, progress, now)
                case "tools/list":
                    result = tool_list(self.tools.calls.mesh, decode_params(message, mcp.ListToolsParams).cursor)
                case "server/discover" if mcp_request.is_modern:
                    result = self._discover()
                case "initialize" if not mcp_request.is_modern:
                    result, headers = self._initialize(message), {mcp.SESSION_HEADER: self.tools.calls.new_id()}
                case "ping" if not mcp_request.is_modern:
                    result = mcp.McpResult()
                case method:
                    problem = f"revision {mcp_request.revision} has no method {method[:100]!r}"
                    raise RpcError(METHOD_NOT_FOUND, problem)  # noqa: TRY301
        except RpcError as error:
            return Response(_http_status(error, mcp_request), error.to_failure(message.id))
        success = Success(id=message.id, result=self._complete(result) if mcp_request.is_modern else result)
        response = rpc_response(success, progress.items if progress else (), accepted)
        return Response(response.status, response.content, headers)

    def _call_tool(
        self,
        mcp_request: McpRequest,
        request: Request,
        caller: Caller,
        progress: ProgressNotifications | None,
        now: datetime,
    ) -> CallResult:
        params = decode_params(mcp_request.message, mcp.CallToolParams)
        tool = self.tools.calls.mesh.tools.get(params.name)
        call = ToolCall(
            params=params,
            meta=mcp_request.meta,
            is_modern=mcp_request.is_modern,
            caller=caller,
            origin=self.tools.origins.of(request),
            base_url=request.base_url,
            key=_key(mcp_request, request, caller),
            seconds=wait_seconds(preferred_wait(request)),
            on_poll=progress.add if progress and (tool is None or tool.progress) else None,
        )
        try:
            return self.calls.answer(call, now)
        except InvalidArgumentsError as error:
            problems = (f"- {place or 'arguments'}: {problem}" for place, problem in error.problems)
            return error_result(
                f"The arguments do not fit the input schema of {params.name!r}:\n" + "\n".join(problems)
            )
        except ApiError as error:
            if error.code in _CLIENT_ERRORS:
                raise RpcError(_CLIENT_ERRORS[error.code], _rpc_message(error)) from None
            return error_result(public_error(error, request.request_id, self.tools.warn).message)
        except TaskStoreError as error:
            self.tools.warn(f"request {request.request_id}: the call of tool {params.name!r} failed: {error}")
            message = with_request_id("the tasks table is temporarily unavailable; try again", request.request_id)
            raise RpcError(INTERNAL_ERROR, message) from None

    def _handle_notification(self, message: RpcMessage, request: Request, caller: Caller, now: datetime) -> Response:
        version = request.headers.get(mcp.VERSION_HEADER)
        if version is not None:
            require_supported(version)
        session = session_id(request)
        # From 2026-07-28 on there are no sessions, and a request id without one is not unique.
        if message.method == "notifications/cancelled" and session is not None and version != mcp.MODERN:
            request_id = decode_params(message, mcp.CanceledParams).request_id
            self.cancels.cancel(idempotency_key(session, request_id), caller, now)
        return Response(202, None)

    def _initialize(self, message: RpcMessage) -> mcp.InitializeResult:
        decode_params(message, mcp.InitializeParams)
        return mcp.InitializeResult(
            protocol_version=mcp.HANDSHAKE,
            capabilities=mcp.Capabilities(),
            server_info=self._server_info(),
            instructions=INSTRUCTIONS,
        )

    def _discover(self) -> mcp.DiscoverResult:
        return mcp.DiscoverResult(
            supported_versions=mcp.REVISIONS, capabilities=mcp.Capabilities(), instructions=INSTRUCTIONS
        )

    def _complete(self, result: _Result) -> _Result:
        """Add the members that results have from 2026-07-28 on."""
        meta = {mcp.SERVER_KEY: self._server_info()} | (result.meta if isinstance(result.meta, dict) else {})
        result_type = "complete" if result.result_type is UNSET else result.result_type
        completed = msgspec.structs.replace(result, meta=meta, result_type=result_type)
        if isinstance(completed, mcp.CacheableResult):
            return msgspec.structs.replace(completed, ttl_ms=mcp.LIST_TTL_MS, cache_scope="private")
        return completed

    def _server_info(self) -> mcp.Implementation:
        return mcp.Implementation(f"asya-{self.tools.calls.mesh.namespace}")


def _key(mcp_request: McpRequest, request: Request, caller: Caller) -> IdempotencyKey | None:
    session, request_id = session_id(request), mcp_request.message.id
    if mcp_request.is_modern or session is None or request_id is UNSET:
        return None
    digest = hashlib.sha256(b"mcp\n" + request.body).hexdigest()
    return IdempotencyKey(caller.principal, idempotency_key(session, request_id), digest)


def _rpc_message(error: ApiError) -> str:
    if error.code.startswith("idempotency"):
        return "this session has used the request id for another request, or for one in progress; use a new id"
    return error.message


def _http_status(error: RpcError, mcp_request: McpRequest) -> int:
    """Return the HTTP status of an error; before 2026-07-28 it is 200 for every message that was read."""
    if not mcp_request.is_modern or error.fault.code == INTERNAL_ERROR:
        return 200
    return 404 if error.fault.code == METHOD_NOT_FOUND else 400


def build_mcp(tools: ToolTasks) -> McpRoutes:
    """Build the routes of `/mcp`."""
    return McpRoutes(tools, McpCalls(tools), McpCancellation(tools))
