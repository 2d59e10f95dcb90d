"""The gateway for other agents: Agent2Agent over JSON-RPC, `POST /a2a`, and the agent card (`protocol §13`).

Both versions of the protocol are spoken; the method's name says which. A message starts a task on the route of a tool, or
resumes one that waits for input. Nothing is kept but in the mesh's tasks: their ids are the ids here.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote

import msgspec
from msgspec import UNSET

from asya.gateway import json_rpc
from asya.gateway.a2a.card import card
from asya.gateway.a2a.requests import (
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
from asya.gateway.a2a.routes.errors import failure, to_a2a_error
from asya.gateway.a2a.routes.lists import A2ALists
from asya.gateway.a2a.routes.push_configs import PushConfigCalls, PushConfigRef
from asya.gateway.a2a.routes.streams import A2AStreams
from asya.gateway.a2a.tasks import context_of, task_of
from asya.gateway.a2a.tool_requests import answers, read_message, tool_request
from asya.gateway.a2a.types import Message, Task
from asya.gateway.a2a.versions import V10, VERSIONS, A2AVersion, Operation, version_named, version_of
from asya.gateway.access import AccessRules, Caller
from asya.gateway.aws.task_starter import Key
from asya.gateway.http.origin import Origins
from asya.gateway.http.router import KEY_LIMIT, HttpRoute, Request, Response, check_size, required_identity
from asya.gateway.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.routes.resume import INPUT_LIMIT, ResumeRoutes
from asya.gateway.routes.tool_calls import ToolCalls
from asya.protocol.api_errors import ApiError
from asya.protocol.ids import ID_LIMIT, is_usable
from asya.protocol.task import TaskRecord
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.view import TaskView

_CARD_HEADERS = {"cache-control": "public, max-age=300"}
_CANCEL = ":cancel"


@dataclass(frozen=True, slots=True)
class A2ARoutes:
    """What the calls need, and the calls.

    Attributes:
        warn: takes a line about trouble that the caller is only told of.
    """

    calls: ToolCalls
    cancels: CancelRoutes
    resumes: ResumeRoutes
    lists: A2ALists
    push: PushConfigCalls
    streams: A2AStreams
    access: AccessRules
    origins: Origins
    warn: Callable[[str], None]

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The calls as of one moment."""
        return (
            HttpRoute("POST", "/a2a", lambda request: self.answer(request, now)),
            HttpRoute("POST", "/a2a/tasks/{id}", lambda request: self.cancel_by_path(request, now)),
            HttpRoute("GET", "/.well-known/agent-card.json", self.card),
        )

    def card(self, request: Request) -> Response:
        """`GET /.well-known/agent-card.json`: for everybody. Each API has its own, which says how its calls identify themselves."""
        takes_tokens = self.origins.takes_tokens(request)
        return Response(200, card(self.calls.mesh, request.base_url, takes_tokens=takes_tokens), _CARD_HEADERS)

    def answer(self, request: Request, now: datetime) -> Response:
        """`POST /a2a`: one JSON-RPC call; what it fails of is told within the answer, with status 200."""
        caller = self.access.caller(required_identity(request))
        check_size(request, self.calls.mesh.gateway.max_body)
        try:
            call = json_rpc.read(request.body)
        except RpcError as error:
            return Response(200, error.to_failure(UNSET))
        if call.id is UNSET:
            refusal = RpcError(
                INVALID_REQUEST, "id is missing: a call without one wants no answer, and none does without"
            )
            return Response(200, refusal.to_failure(UNSET))
        try:
            return _Call(self, request, call, call.id, _version(call, request), caller, now).answer()
        except A2AError as error:
            problem = error
        except ApiError as refused:
            problem = to_a2a_error(refused)
        except TaskStoreError as error:
            self.warn(f"the tasks table is in trouble: {error}")
            problem = A2AError(INTERNAL_ERROR, "the tasks table cannot be reached just now; try again")
        return Response(200, failure(call.id, problem, version_of(call.method) or V10))

    def cancel_by_path(self, request: Request, now: datetime) -> Response:
        """`POST /a2a/tasks/{id}:cancel`: the task, canceled. API Gateway's variables are whole parts of a path."""
        caller = self.access.caller(required_identity(request))
        named = unquote(request.parameters["id"])
        if not named.endswith(_CANCEL):
            raise ApiError(404, "not_found", f"there is nothing at {request.path}; cancelling is {{id}}:cancel")
        version = version_named(request.headers.get("a2a-version", "")) or V10
        try:
            return Response(200, task_of(self.cancel(named.removesuffix(_CANCEL), caller, now), version))
        except A2AError as error:
            status, code = (404, "not_found") if error.code == TASK_NOT_FOUND else (409, "not_cancelable")
            raise ApiError(status, code, error.message, "id") from None

    def visible(self, task_id: str, caller: Caller, now: datetime) -> TaskView:
        """A task of the caller's.

        Raises:
            A2AError: if there is none; somebody else's is as good as none.
        """
        task = self.calls.tasks.read(task_id, now) if is_usable(task_id) else None
        if task is None or not caller.may_see(task.owner):
            raise _unknown(task_id)
        return task

    def cancel(self, task_id: str, caller: Caller, now: datetime) -> TaskView:
        """Cancel a task; one that is canceled already stays so.

        Raises:
            A2AError: if there is none, or it has ended otherwise.
        """
        if not is_usable(task_id):
            raise _unknown(task_id)
        try:
            record = self.cancels.cancel(task_id, caller, now)
        except ApiError as refused:
            raise to_a2a_error(refused) from None
        if record.status != "canceled":
            raise A2AError(TASK_NOT_CANCELABLE, f"task {task_id!r} has {record.status} already", "id")
        return self.visible(task_id, caller, now)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call on its way to its answer."""

    agents: A2ARoutes
    request: Request
    call: json_rpc.RpcMessage
    id: json_rpc.MessageId
    version: A2AVersion
    caller: Caller
    now: datetime

    def answer(self) -> Response:
        """What it asks for."""
        call, operation = self.call, self.version.methods[self.call.method]
        if operation == "stream":
            return self._followed(self._begun(read_params(call, SendParams)))
        if operation == "subscribe":
            return self._followed(read_params(call, TaskIdParams).id)
        results: dict[Operation, Callable[[], object]] = {
            "send": lambda: self.version.sent(self._sent(read_params(call, SendParams))),
            "get": lambda: self._task(self.agents.visible),
            "cancel": lambda: self._task(self.agents.cancel),
            "list": lambda: self.agents.lists.page(
                read_params(call, ListTasksParams), self.version, self.caller, self.now
            ),
            "set_push": self._set_push,
            "get_push": lambda: self.agents.push.get(self._place(), self.version),
            "list_push": lambda: self.agents.push.list(self._place().task_id, self.version),
            "delete_push": lambda: self.agents.push.delete(self._place()),
            "extended_card": _no_extended_card,
        }
        return Response(200, json_rpc.Success(id=self.id, result=results[operation]()))

    def _task(self, find: Callable[[str, Caller, datetime], TaskView]) -> Task:
        return task_of(find(read_params(self.call, TaskIdParams).id, self.caller, self.now), self.version)

    def _place(self) -> PushConfigRef:
        place = self.agents.push.place(read_params(self.call, PushParams), self.version)
        self.agents.visible(place.task_id, self.caller, self.now)
        return place

    def _set_push(self) -> object:
        config = self.agents.push.read_config(self.call, self.version)
        task = self.agents.visible(config.task_id or "", self.caller, self.now)
        return self.agents.push.set(config, task, self.version, self.now)

    def _sent(self, params: SendParams) -> Task:
        task_id = self._begun(params)
        if params.settings.waits:
            task = self.agents.calls.wait(task_id, self.now)
        else:
            task = self.agents.calls.tasks.read(task_id, self.now)
        if task is None:
            raise A2AError(TASK_NOT_FOUND, f"task {task_id!r} is gone", "id")
        return task_of(task, self.version)

    def _followed(self, task_id: str) -> Response:
        task = self.agents.visible(task_id, self.caller, self.now)
        return Response(200, self.agents.streams.follow(task, self.version, self.id, self.now))

    def _begun(self, params: SendParams) -> str:
        """The id of the task that a message starts, or goes on with."""
        message = params.message
        if len(message.message_id) > KEY_LIMIT or len((message.context_id or "").encode()) > ID_LIMIT:
            problem = f"messageId has up to {KEY_LIMIT} characters, contextId up to {ID_LIMIT} bytes"
            raise A2AError(INVALID_PARAMS, problem, "message.messageId")
        return self._resumed(params, message.task_id) if message.task_id else self._started(params)

    def _started(self, params: SendParams) -> str:
        agents, message = self.agents, params.message
        said = read_message(message, self.version.user, params.metadata)
        asked = tool_request(said, agents.calls.mesh)
        push = params.settings.push
        target = agents.push.target(push, self.version) if push else None

        def prepare(record: TaskRecord) -> TaskRecord:
            if push is not None and target is not None:
                agents.push.keep(record, push.id, target, self.now)
            return msgspec.structs.replace(record, context=message.context_id or None, is_watched=target is not None)

        return agents.calls.start(
            asked,
            self.caller.principal,
            agents.origins.of(self.request),
            self.now,
            Key(self.caller.principal, f"a2a/{message.message_id}", _digest(message, asked.name)),
            prepare=prepare,
        )

    def _resumed(self, params: SendParams, task_id: str) -> str:
        agents, message = self.agents, params.message
        task = agents.visible(task_id, self.caller, self.now)
        if message.context_id and message.context_id != context_of(task):
            problem = f"task {task_id!r} is of the context {context_of(task)!r}"
            raise A2AError(INVALID_PARAMS, problem, "message.contextId")
        if task.pause is None:
            state = self.version.states[task.status]
            problem = f"task {task_id!r} is {state}: it takes a message only while it asks for input"
            raise A2AError(UNSUPPORTED_OPERATION, problem, "message.taskId")
        said = read_message(message, self.version.user)
        given = answers(said, task.pause.fields)
        if sum(map(len, given.values())) > INPUT_LIMIT:
            raise A2AError(INVALID_PARAMS, f"the answers have more than {INPUT_LIMIT} bytes", "message.parts")
        if params.settings.push is not None:
            agents.push.set(params.settings.push, task, self.version, self.now)
        agents.resumes.resume(task_id, self.caller, given, self.now)
        return task_id


def _digest(message: Message, tool: str) -> str:
    """Of what is asked for: the message, which a client that has had no answer sends again as it is."""
    return hashlib.sha256(msgspec.json.encode((tool, message), order="deterministic")).hexdigest()


def _version(call: json_rpc.RpcMessage, request: Request) -> A2AVersion:
    version = version_of(call.method)
    if version is None:
        raise A2AError(METHOD_NOT_FOUND, f"there is no method {call.method!r}", "method")
    asked = request.headers.get("a2a-version", "").strip()
    if asked and version_named(asked) is None:
        known = ", ".join(each.name for each in VERSIONS)
        raise A2AError(VERSION_NOT_SUPPORTED, f"version {asked!r} is not spoken here; {known} are", "A2A-Version")
    return version


def _unknown(task_id: str) -> A2AError:
    return A2AError(TASK_NOT_FOUND, f"there is no task {task_id!r}", "id")


def _no_extended_card() -> object:
    raise A2AError(NO_EXTENDED_CARD, "there is one card only, the public one")
