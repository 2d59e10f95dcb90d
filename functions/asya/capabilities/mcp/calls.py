"""Calls the tools of the mesh file and the gateway's own, and cancels calls (`protocol §13`, `POST /mcp`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta as Limits
from msgspec import Raw

from asya.capabilities.mcp.results import (
    TaskLinks,
    cancel_result,
    input_required,
    read_answers,
    read_request_state,
    supports_form,
    tool_result,
)
from asya.capabilities.mcp.tools import unwrapped
from asya.capabilities.mcp.types import (
    CANCEL_TOOL,
    RESUME_TOOL,
    WAIT_TOOL,
    CallToolParams,
    InputRequired,
    RequestMeta,
    ToolResult,
)
from asya.capabilities.pauses.resume_input import InvalidInputError
from asya.gateway.access import Caller
from asya.gateway.http.visible_tasks import unknown_task, visible_task
from asya.gateway.routes.tool_tasks import ToolTasks
from asya.gateway.routes.tools import status_url, stream_url
from asya.protocol.api_errors import ApiError
from asya.protocol.ids import ID_LIMIT
from asya.tasks.starts.idempotency import IdempotencyKey
from asya.tasks.starts.submission import Origin
from asya.tasks.starts.tools import ToolInvocation
from asya.tasks.view import TaskView

CallResult = ToolResult | InputRequired

_Id = Annotated[str, Limits(min_length=1, max_length=ID_LIMIT)]


_Arguments = TypeVar("_Arguments")


class _TaskArguments(msgspec.Struct, forbid_unknown_fields=True):
    id: _Id


class _ResumeArguments(_TaskArguments, forbid_unknown_fields=True):
    input: dict[str, Raw]
    since: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool by a caller.

    Attributes:
        base_url: The base URL of the API that received the call; the task's links start with it.
        key: Makes a repeated call the same task, and lets the request's id cancel it.
        seconds: How long to wait for the end of the task.
        on_poll: Receives the task at each poll.
    """

    params: CallToolParams
    meta: RequestMeta
    is_modern: bool
    caller: Caller
    origin: Origin
    base_url: str
    key: IdempotencyKey | None
    seconds: float
    on_poll: Callable[[TaskView], None] | None


@dataclass(frozen=True, slots=True)
class McpCalls:
    """Answers tool calls."""

    tools: ToolTasks

    def answer(self, call: ToolCall, now: datetime) -> CallResult:
        """Return the result of a call.

        Raises:
            ApiError: If the call is invalid, or not possible now.
            TaskStoreError: If the table cannot be reached.
        """
        if not _waits(call):
            return self._answer(call, now)
        with self.tools.calls.permits.hold(call.caller.principal, now):
            return self._answer(call, now)

    def _answer(self, call: ToolCall, now: datetime) -> CallResult:
        if call.params.request_state is not None:
            return self._continue(call, call.params.request_state, now)
        match call.params.name:
            case name if name in self.tools.calls.mesh.tools:
                sent = _null_as_empty(call.params.arguments)
                invocation = ToolInvocation(name, unwrapped(self.tools.calls.mesh.tools[name].input_schema, sent))
                task_id = self.tools.calls.start(invocation, call.caller.principal, call.origin, now, call.key)
                return self._wait(task_id, call, now)
            case name if name == WAIT_TOOL:
                arguments = _arguments(call, _TaskArguments)
                visible_task(self.tools.calls.tasks, arguments.id, call.caller, now)
                return self._wait(arguments.id, call, now)
            case name if name == CANCEL_TOOL:
                arguments = _arguments(call, _TaskArguments)
                canceled = self.tools.cancels.cancel(arguments.id, call.caller, now)
                task = visible_task(self.tools.calls.tasks, arguments.id, call.caller, now)
                return cancel_result(task, canceled.status, _links(arguments.id, call))
            case name if name == RESUME_TOOL:
                resume = _arguments(call, _ResumeArguments)
                self.tools.resumes.resume(resume.id, call.caller, resume.input, now, since=resume.since)
                return self._wait(resume.id, call, now)
            case name:
                known = ", ".join(sorted(self.tools.calls.mesh.tools)) or "none"
                raise ApiError(404, "unknown_tool", f"there is no tool {name[:100]!r}; the tools are: {known}", "name")

    def _continue(self, call: ToolCall, state: str, now: datetime) -> CallResult:
        """Continue a call with the user's answers to a pause; a repetition has no effect."""
        task_id, since = read_request_state(state)
        task = visible_task(self.tools.calls.tasks, task_id, call.caller, now)
        if not task.is_paused or task.pause is None or task.pause.since != since:
            return self._wait(task_id, call, now)
        answers = read_answers(call.params.input_responses)
        if answers is None:
            return tool_result(task, _links(task_id, call), is_modern=call.is_modern)
        try:
            self.tools.resumes.resume(task_id, call.caller, answers, now, since=since)
        except InvalidInputError as error:
            return input_required(task_id, task.pause, error.message)
        except ApiError as error:
            if error.code != "not_paused":
                raise
        return self._wait(task_id, call, now)

    def _wait(self, task_id: str, call: ToolCall, now: datetime) -> CallResult:
        task = self.tools.calls.wait(task_id, now, call.seconds, on_read=call.on_poll)
        if task is None:
            raise unknown_task(task_id)
        if task.is_paused and task.pause is not None and call.is_modern and supports_form(call.meta, task.pause):
            return input_required(task_id, task.pause)
        return tool_result(task, _links(task_id, call), is_modern=call.is_modern)


def _waits(call: ToolCall) -> bool:
    return call.seconds > 0 and (call.params.name != CANCEL_TOOL or call.params.request_state is not None)


def _null_as_empty(arguments: Raw) -> Raw:
    return Raw(b"{}") if bytes(arguments).strip() == b"null" else arguments


def _links(task_id: str, call: ToolCall) -> TaskLinks:
    return TaskLinks(status_url(call.base_url, task_id), stream_url(call.base_url, task_id))


def _arguments(call: ToolCall, kind: type[_Arguments]) -> _Arguments:
    try:
        return msgspec.json.decode(call.params.arguments, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = f"arguments of {call.params.name!r}: {error}"
        raise ApiError(400, "invalid_arguments", problem, "arguments") from None


WAIT_SECONDS = 5.0
"""Seconds to wait for a request that is on its way to another instance."""
_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class McpCancellation:
    """Finds the task of a request and cancels it."""

    tools: ToolTasks

    def cancel(self, key: str, caller: Caller, now: datetime) -> None:
        """Cancel the task that an idempotency key started; a key without a task has no effect.

        Only the wait for a request on its way takes permits: a caller without a free one may still cancel a call.

        Raises:
            ApiError: 503 if the request to stop its job runs could not be sent; 429 if no call may wait.
            TaskStoreError: If the table cannot be read or written.
        """
        if self._try_cancel(key, caller, now):
            return
        with self.tools.calls.permits.hold(caller.principal, now):
            deadline = self.tools.calls.environment.monotonic() + WAIT_SECONDS
            while self.tools.calls.environment.monotonic() < deadline:
                self.tools.calls.environment.sleep(_POLL_SECONDS)
                if self._try_cancel(key, caller, now):
                    return

    def _try_cancel(self, key: str, caller: Caller, now: datetime) -> bool:
        task_id = self.tools.calls.starter.task_of(caller.principal, key)
        if task_id is None:
            return False
        try:
            self.tools.cancels.cancel(task_id, caller, now)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True
