"""HTTP routes of Agent2Agent: JSON-RPC at `POST /a2a` with its errors, and the agent card (`protocol §13`).

The method's name selects the version of the protocol. A message starts a task on the route of a tool, or resumes a
paused task. All state is in the tasks of the mesh, and their ids are the ids here.
"""

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

import msgspec
from msgspec import UNSET

from asya.capabilities.a2a.aws.push_items import PushConfigStore
from asya.capabilities.a2a.card import card
from asya.capabilities.a2a.requests import (
    NO_EXTENDED_CARD,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
    VERSION_NOT_SUPPORTED,
    A2AError,
    ListTasksParams,
    PushParams,
    SendParams,
    TaskIdParams,
    read_params,
)
from asya.capabilities.a2a.routes.push_configs import PushConfigCalls, PushConfigRef
from asya.capabilities.a2a.routes.tasks import A2ALists, A2AStreams
from asya.capabilities.a2a.tasks import context_of, task_of
from asya.capabilities.a2a.tool_requests import read_answers, read_message, tool_invocation
from asya.capabilities.a2a.types import A2AMessage, A2ATask
from asya.capabilities.a2a.versions import METHODS, STATES, VERSION, Method, is_supported, wrapped
from asya.capabilities.pauses.resume_input import InvalidInputError
from asya.function.aws import clients
from asya.gateway import json_rpc
from asya.gateway.access import Caller
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.router import (
    KEY_LIMIT,
    Request,
    Response,
    check_size,
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
    Fault,
    MessageId,
    RpcError,
)
from asya.gateway.routes.tool_tasks import ToolTasks
from asya.gateway.streams.event_poller import EventPoller
from asya.protocol import states
from asya.protocol.api_errors import ApiError
from asya.protocol.ids import ID_LIMIT, is_usable
from asya.protocol.pause import ANSWERS_LIMIT
from asya.protocol.task import TaskRecord
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.starts.idempotency import IdempotencyKey
from asya.tasks.starts.tools import InvalidArgumentsError
from asya.tasks.view import TaskView

_CODES = {
    "not_found": TASK_NOT_FOUND,
    "not_paused": UNSUPPORTED_OPERATION,
    "not_resumable": UNSUPPORTED_OPERATION,
    "idempotency_in_progress": INTERNAL_ERROR,
}
REASONS = {
    INVALID_PARAMS: "INVALID_PARAMS",
    INTERNAL_ERROR: "INTERNAL_ERROR",
    -32601: "METHOD_NOT_FOUND",
    -32001: "TASK_NOT_FOUND",
    -32002: "TASK_NOT_CANCELABLE",
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: "UNSUPPORTED_OPERATION",
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
    -32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    -32009: "VERSION_NOT_SUPPORTED",
}
_GOOGLE = "type.googleapis.com/google.rpc."


def to_a2a_error(error: ApiError) -> A2AError:
    """Convert an API error to a JSON-RPC error.

    Raises:
        ApiError: The same error if its status is 403, which HTTP reports.
    """
    if error.status == 403:
        raise error
    is_temporary = error.status == 429 or error.status >= 500
    code = _CODES.get(error.code, INTERNAL_ERROR if is_temporary else INVALID_PARAMS)
    match error:
        case InvalidInputError():
            fields = error.fields
        case InvalidArgumentsError():
            fields = {f"arguments.{place}" if place else "arguments": problem for place, problem in error.problems}
        case _:
            fields = {}
    # Neither JSON-RPC nor Agent2Agent has a code for too many calls.
    reason = error.code.upper() if error.status == 429 else None
    return A2AError(code, error.message, error.field, fields=fields, reason=reason, retry_after=error.retry_after)


def failure(message_id: MessageId, error: A2AError) -> Failure:
    """Return the response to a failed call, with the detail types of Google's APIs."""
    fields = error.fields or ({error.field: error.message} if error.field else {})
    reason = error.reason or REASONS[error.code]
    info = {
        "@type": f"{_GOOGLE}ErrorInfo",
        "reason": reason,
        "domain": "a2a-protocol.org",
        "metadata": {"field": error.field} if error.field else {},
    }
    violations = [{"field": name, "description": problem} for name, problem in fields.items()]
    data: list[object] = [info]
    if violations:
        data.append({"@type": f"{_GOOGLE}BadRequest", "fieldViolations": violations})
    if error.retry_after is not None:
        data.append({"@type": f"{_GOOGLE}RetryInfo", "retryDelay": f"{error.retry_after}s"})
    return Failure(id=message_id, error=Fault(code=error.code, message=error.message, data=data))


_CARD_HEADERS = {"cache-control": "public, max-age=300"}
_CANCEL = ":cancel"


@dataclass(frozen=True, slots=True)
class A2ARoutes:
    """Serves `/a2a` and the agent card."""

    tools: ToolTasks
    lists: A2ALists
    push: PushConfigCalls
    streams: A2AStreams

    def card(self, request: Request, _now: datetime) -> Response:
        """Answer `GET /.well-known/agent-card.json`; the card of each API names its security scheme."""
        takes_tokens = self.tools.origins.takes_tokens(request)
        return Response(200, card(self.tools.calls.mesh, request.base_url, takes_tokens=takes_tokens), _CARD_HEADERS)

    def answer(self, request: Request, now: datetime) -> Response:
        """Answer `POST /a2a`: one JSON-RPC call, whose errors have the HTTP status 200."""
        caller = self.tools.access.caller(required_identity(request))
        check_size(request, self.tools.calls.mesh.gateway.max_body)
        try:
            call = json_rpc.read(request.text)
        except RpcError as error:
            return Response(200, error.to_failure(UNSET))
        if call.id is UNSET:
            missing_id = RpcError(
                INVALID_REQUEST, "id is missing: Agent2Agent has no notifications; send a request with an id"
            )
            return Response(200, missing_id.to_failure(UNSET))
        try:
            _check_version(call, request)
            return _Call(self, request, call, call.id, caller, now).answer()
        except A2AError as error:
            problem = error
        except ApiError as error:
            problem = to_a2a_error(public_error(error, request.request_id, self.tools.warn))
        except TaskStoreError as error:
            self.tools.warn(f"request {request.request_id}: call of {call.method!r} failed: {error}")
            message = with_request_id("the tasks table is temporarily unavailable; try again", request.request_id)
            problem = A2AError(INTERNAL_ERROR, message)
        return Response(200, failure(call.id, problem))

    def cancel_by_path(self, request: Request, now: datetime) -> Response:
        """Answer `POST /a2a/tasks/{id}:cancel`; a path variable of API Gateway is a whole segment, `:cancel` included."""
        caller = self.tools.access.caller(required_identity(request))
        segment = request.parameters["id"]
        if not segment.endswith(_CANCEL):
            raise ApiError(
                404, "not_found", f"there is nothing at {request.path}; to cancel a task, use /a2a/tasks/{{id}}:cancel"
            )
        try:
            return Response(200, task_of(self.cancel(segment.removesuffix(_CANCEL), caller, now)))
        except A2AError as error:
            if error.code == TASK_NOT_FOUND:
                raise ApiError(404, "not_found", error.message, "id") from None
            raise ApiError(409, "not_cancelable", error.message, "id") from None

    def visible_task(self, task_id: str, caller: Caller, now: datetime) -> TaskView:
        """Return a task that the caller may see.

        Raises:
            A2AError: The task does not exist, or the caller may not see it.
        """
        task = self.tools.calls.tasks.read(task_id, now) if is_usable(task_id) else None
        if task is None or not caller.may_see(task.owner):
            raise _unknown(task_id)
        return task

    def cancel(self, task_id: str, caller: Caller, now: datetime) -> TaskView:
        """Cancel a task; a canceled task stays canceled.

        Raises:
            A2AError: The task does not exist, or it has ended in another way.
            ApiError: 5xx, the mesh failed.
        """
        if not is_usable(task_id):
            raise _unknown(task_id)
        try:
            canceled = self.tools.cancels.cancel(task_id, caller, now)
        except ApiError as error:
            if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            raise to_a2a_error(error) from None
        if canceled.status != states.CANCELED:
            raise A2AError(TASK_NOT_CANCELABLE, f"task {task_id!r} has already ended: {canceled.status}", "id")
        return self.visible_task(task_id, caller, now)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call and its context."""

    routes: A2ARoutes
    request: Request
    call: json_rpc.RpcMessage
    id: json_rpc.MessageId
    caller: Caller
    now: datetime

    def answer(self) -> Response:
        """Return the response to the call."""
        call, method = self.call, METHODS[self.call.method]
        if method == "stream":
            sent = read_params(call, SendParams)
            return self._stream(lambda: self._start_or_resume(sent))
        if method == "subscribe":
            subscribed = read_params(call, TaskIdParams)
            return self._stream(lambda: subscribed.id)
        results: dict[Method, Callable[[], object]] = {
            "send": lambda: wrapped(self._send(read_params(call, SendParams))),
            "get": lambda: self._task(self.routes.visible_task),
            "cancel": lambda: self._task(self.routes.cancel),
            "list": lambda: self.routes.lists.page(read_params(call, ListTasksParams), self.caller, self.now),
            "set_push": self._set_push,
            "get_push": lambda: self.routes.push.get(self._config_ref()),
            "list_push": lambda: self.routes.push.list(self._config_ref().task_id),
            "delete_push": lambda: self.routes.push.delete(self._config_ref()),
            "extended_card": _no_extended_card,
        }
        return Response(200, json_rpc.Success(id=self.id, result=results[method]()))

    def _task(self, find: Callable[[str, Caller, datetime], TaskView]) -> A2ATask:
        return task_of(find(read_params(self.call, TaskIdParams).id, self.caller, self.now))

    def _config_ref(self) -> PushConfigRef:
        ref = self.routes.push.read_ref(read_params(self.call, PushParams))
        self.routes.visible_task(ref.task_id, self.caller, self.now)
        return ref

    def _set_push(self) -> object:
        config = self.routes.push.read_config(self.call)
        task = self.routes.visible_task(config.task_id or "", self.caller, self.now)
        return self.routes.push.set(config, task, self.now)

    def _send(self, params: SendParams) -> A2ATask:
        if not params.settings.return_immediately:
            with self._permits():
                task_id = self._start_or_resume(params)
                task = self.routes.tools.calls.wait(task_id, self.now)
        else:
            task_id = self._start_or_resume(params)
            task = self.routes.tools.calls.tasks.read(task_id, self.now)
        if task is None:
            raise A2AError(TASK_NOT_FOUND, f"task {task_id!r} does not exist any more", "id")
        return task_of(task)

    def _stream(self, task_id: Callable[[], str]) -> Response:
        with self._permits():
            task = self.routes.visible_task(task_id(), self.caller, self.now)
            return Response(200, self.routes.streams.stream(task, self.id, self.now))

    def _permits(self) -> AbstractContextManager[None]:
        return self.routes.tools.calls.permits.hold(self.caller.principal, self.now)

    def _start_or_resume(self, params: SendParams) -> str:
        """Start a task or resume one, and return its id."""
        message = params.message
        if len(message.message_id) > KEY_LIMIT or len((message.context_id or "").encode()) > ID_LIMIT:
            problem = f"messageId must have at most {KEY_LIMIT} characters, contextId at most {ID_LIMIT} bytes"
            raise A2AError(INVALID_PARAMS, problem, "message.messageId")
        return self._resume(params, message.task_id) if message.task_id else self._start(params)

    def _start(self, params: SendParams) -> str:
        routes, message = self.routes, params.message
        content = read_message(message, params.metadata)
        invocation = tool_invocation(content, routes.tools.calls.mesh)
        push = params.settings.task_push_notification_config
        target = routes.push.target(push) if push else None

        def prepare(record: TaskRecord) -> TaskRecord:
            if push is not None and target is not None:
                routes.push.save(record, push.id, target, self.now)
            return msgspec.structs.replace(record, context=message.context_id or None, is_watched=target is not None)

        return routes.tools.calls.start(
            invocation,
            self.caller.principal,
            routes.tools.origins.of(self.request),
            self.now,
            IdempotencyKey(self.caller.principal, f"a2a/{message.message_id}", _digest(message, invocation.name)),
            prepare=prepare,
        )

    def _resume(self, params: SendParams, task_id: str) -> str:
        routes, message = self.routes, params.message
        task = routes.visible_task(task_id, self.caller, self.now)
        if message.context_id and message.context_id != context_of(task):
            problem = f"task {task_id!r} belongs to the context {context_of(task)!r}"
            raise A2AError(INVALID_PARAMS, problem, "message.contextId")
        if task.pause is None:
            state = STATES[task.status]
            problem = f"task {task_id!r} is {state}; only a task that requires input takes a message"
            raise A2AError(UNSUPPORTED_OPERATION, problem, "message.taskId")
        answers = read_answers(read_message(message), task.pause.fields)
        if sum(map(len, answers.values())) > ANSWERS_LIMIT:
            raise A2AError(INVALID_PARAMS, f"the answers must have at most {ANSWERS_LIMIT} bytes", "message.parts")
        if params.settings.task_push_notification_config is not None:
            routes.push.set(params.settings.task_push_notification_config, task, self.now)
        routes.tools.resumes.resume(task_id, self.caller, answers, self.now, since=task.pause.since)
        return task_id


def _digest(message: A2AMessage, tool: str) -> str:
    """Return the digest of a message, which a client repeats unchanged if it got no answer."""
    return hashlib.sha256(msgspec.json.encode((tool, message), order="deterministic")).hexdigest()


def _check_version(call: json_rpc.RpcMessage, request: Request) -> None:
    """Check the method of a call, and the version that its client names.

    Raises:
        A2AError: -32601 or -32009.
    """
    if call.method not in METHODS:
        raise A2AError(METHOD_NOT_FOUND, f"there is no method {call.method!r}", "method")
    name = request.headers.get("a2a-version", "").strip()
    if name and not is_supported(name):
        raise A2AError(VERSION_NOT_SUPPORTED, f"version {name!r} is not supported; use {VERSION}", "A2A-Version")


def _unknown(task_id: str) -> A2AError:
    return A2AError(TASK_NOT_FOUND, f"there is no task {task_id!r}", "id")


def _no_extended_card() -> object:
    raise A2AError(NO_EXTENDED_CARD, "there is no extended card; read /.well-known/agent-card.json")


def build_a2a(own: HttpServices, tools: ToolTasks, lists: TaskLists) -> A2ARoutes:
    """Build the routes of `/a2a` and of the agent card."""
    settings, environment, tasks = own.settings, own.environment, tools.calls.tasks
    client, table = clients.dynamodb(), settings.table_name("tasks")
    poller = EventPoller(tasks, PartialStore(client, table, environment.sleep), environment)
    return A2ARoutes(
        tools=tools,
        lists=A2ALists(lists),
        push=PushConfigCalls(settings.table, tasks, PushConfigStore(client, table, settings.table.retention.tasks)),
        streams=A2AStreams(poller, environment),
    )
