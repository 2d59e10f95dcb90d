"""Model Context Protocol over streamable HTTP, without state: `POST /mcp` (`protocol §13`).

Any instance of the function answers any request. What joins two of them travels with the client: the session's name, made up at the
handshake and kept nowhere; the task's id, in answers, in `requestState`; the idempotency key, derived from session and request id,
by which a call that is repeated finds its task, and one that is canceled too.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec import UNSET

from asya.gateway.access import AccessRules, Caller
from asya.gateway.aws.task_starter import Key
from asya.gateway.http.origin import Origins
from asya.gateway.http.router import HttpRoute, Request, Response, check_size, required_identity
from asya.gateway.json_rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RpcError,
    RpcMessage,
    Success,
    read,
)
from asya.gateway.mcp import http as mcp_http
from asya.gateway.mcp import types as mcp
from asya.gateway.mcp.calls import CallResult, McpCalls, ToolCall
from asya.gateway.mcp.cancel import McpCancellation
from asya.gateway.mcp.progress import ProgressNotices
from asya.gateway.mcp.results import error_result
from asya.gateway.mcp.revision import McpRequest, decode_params, negotiate, read_request, require_supported
from asya.gateway.mcp.tools import INSTRUCTIONS, tool_list
from asya.gateway.tools import InvalidArgumentsError
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.task_store import TaskStoreError

PATH = "/mcp"
_Result = TypeVar("_Result", bound=mcp.McpResult)
# Refusals that a model can do nothing about: the client is at fault.
_CLIENTS_FAULT = {
    "unknown_tool": INVALID_PARAMS,
    "invalid_field": INVALID_PARAMS,
    "invalid_json": INVALID_PARAMS,
    "idempotency_mismatch": INVALID_REQUEST,
    "idempotency_in_progress": INVALID_REQUEST,
}


@dataclass(frozen=True, slots=True)
class McpRoutes:
    """What the calls need, and the calls."""

    mesh: MeshTable
    access: AccessRules
    origins: Origins
    calls: McpCalls
    cancels: McpCancellation
    new_id: Callable[[], str]
    warn: Callable[[str], None]

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The calls as of one moment."""
        return (
            HttpRoute("POST", PATH, lambda request: self.post(request, now)),
            # Of clients that would hold a stream open, or end their session: there are none here to hold or end.
            HttpRoute("GET", PATH, _not_allowed),
            HttpRoute("DELETE", PATH, _not_allowed),
        )

    def post(self, request: Request, now: datetime) -> Response:
        """The answer to a request; 202 for a notification."""
        caller = self.access.caller(required_identity(request))
        mcp_http.require_same_origin(request)
        check_size(request, self.mesh.gateway.max_body)
        call: RpcMessage | None = None
        try:
            call = read(request.body)
            if call.id is UNSET:
                return self._notified(call, request, caller, now)
            taken = mcp_http.forms(request)
            asked = read_request(call, request.headers)
        except RpcError as error:
            return Response(400, error.to_failure(call.id if call else UNSET))
        return self._answered(asked, request, caller, taken, now)

    def _answered(
        self, asked: McpRequest, request: Request, caller: Caller, taken: mcp_http.AcceptedTypes, now: datetime
    ) -> Response:
        token = asked.meta.progress_token
        progress = ProgressNotices(token) if token is not None and taken.takes_events else None
        assert asked.call.id is not UNSET
        try:
            headers = {}
            match asked.call.method:
                case "tools/call":
                    result: mcp.McpResult = self._called(asked, request, caller, progress, now)
                case "tools/list":
                    result = tool_list(self.mesh, decode_params(asked.call, mcp.ListToolsParams).cursor)
                case "server/discover" if asked.is_modern:
                    result = self._discovered()
                case "initialize" if not asked.is_modern:
                    result, headers = self._initialized(asked.call), {mcp.SESSION_HEADER: self.new_id()}
                case "ping" if not asked.is_modern:
                    result = mcp.McpResult()
                case method:
                    raise RpcError(METHOD_NOT_FOUND, f"there is no method {method[:100]!r} in {asked.revision}")  # noqa: TRY301
        except RpcError as error:
            return Response(_status(error, asked), error.to_failure(asked.call.id))
        message = Success(id=asked.call.id, result=self._signed(result) if asked.is_modern else result)
        response = mcp_http.answered(message, progress.found if progress else (), taken)
        return Response(response.status, response.content, headers)

    def _called(
        self, asked: McpRequest, request: Request, caller: Caller, progress: ProgressNotices | None, now: datetime
    ) -> CallResult:
        params = decode_params(asked.call, mcp.CallToolParams)
        tool = self.mesh.tools.get(params.name)
        call = ToolCall(
            params=params,
            meta=asked.meta,
            is_modern=asked.is_modern,
            caller=caller,
            origin=self.origins.of(request),
            base_url=request.base_url,
            key=_key(asked, request, caller),
            seconds=mcp_http.wait_seconds(request),
            look=progress.look if progress and (tool is None or tool.progress) else None,
        )
        try:
            return self.calls.answer(call, now)
        except InvalidArgumentsError as invalid:
            problems = (f"- {place or 'arguments'}: {problem}" for place, problem in invalid.problems)
            return error_result(
                f"The arguments do not fit the input schema of {params.name!r}:\n" + "\n".join(problems)
            )
        except ApiError as refused:
            if refused.code in _CLIENTS_FAULT:
                raise RpcError(_CLIENTS_FAULT[refused.code], _in_words(refused)) from None
            return error_result(refused.message)
        except TaskStoreError as error:
            self.warn(f"a call of the tool {params.name!r} failed: {error}")
            raise RpcError(INTERNAL_ERROR, "the tasks table cannot be reached just now; try again") from None

    def _notified(self, call: RpcMessage, request: Request, caller: Caller, now: datetime) -> Response:
        version = request.headers.get(mcp.VERSION_HEADER)
        if version is not None:
            require_supported(version)
        session = mcp_http.session_of(request)
        # From 2026-07-28 on there are no sessions; ids of requests alone are everybody's, and name nothing.
        if call.method == "notifications/cancelled" and session is not None and version != mcp.MODERN:
            message_id = decode_params(call, mcp.CanceledParams).request_id
            self.cancels.cancel(mcp_http.call_key(session, message_id), caller, now)
        return Response(202, None)

    def _initialized(self, call: RpcMessage) -> mcp.InitializeResult:
        return mcp.InitializeResult(
            protocol_version=negotiate(decode_params(call, mcp.InitializeParams).protocol_version),
            capabilities=mcp.Capabilities(),
            server_info=self._server(),
            instructions=INSTRUCTIONS,
        )

    def _discovered(self) -> mcp.DiscoverResult:
        return mcp.DiscoverResult(
            supported_versions=mcp.REVISIONS, capabilities=mcp.Capabilities(), instructions=INSTRUCTIONS
        )

    def _signed(self, result: _Result) -> _Result:
        """With what all results have from 2026-07-28 on."""
        meta = {mcp.SERVER_KEY: self._server()} | (result.meta if isinstance(result.meta, dict) else {})
        kind = "complete" if result.result_type is UNSET else result.result_type
        signed = msgspec.structs.replace(result, meta=meta, result_type=kind)
        if isinstance(signed, mcp.CacheableResult):
            return msgspec.structs.replace(signed, ttl_ms=mcp.LIST_TTL_MS, cache_scope="private")
        return signed

    def _server(self) -> mcp.Implementation:
        return mcp.Implementation(f"asya-{self.mesh.namespace}")


def _key(asked: McpRequest, request: Request, caller: Caller) -> Key | None:
    session = mcp_http.session_of(request)
    if asked.is_modern or session is None or asked.call.id is UNSET:
        return None
    digest = hashlib.sha256(b"mcp\n" + request.body).hexdigest()
    return Key(caller.principal, mcp_http.call_key(session, asked.call.id), digest)


def _in_words(refused: ApiError) -> str:
    if refused.code.startswith("idempotency"):
        return "this request id was used before in this session, for another request or one that is at work"
    return refused.message


def _status(error: RpcError, asked: McpRequest) -> int:
    """Before 2026-07-28 the status of HTTP says whether a message arrived, not what became of it."""
    if not asked.is_modern or error.fault.code == INTERNAL_ERROR:
        return 200
    return 404 if error.fault.code == METHOD_NOT_FOUND else 400


def _not_allowed(request: Request) -> Response:
    required_identity(request)
    problem = f"{PATH} takes POST, not {request.method}: there is no stream to hold open and no session to end"
    return Response(405, {"error": {"code": "method_not_allowed", "message": problem}}, {"allow": "POST"})
