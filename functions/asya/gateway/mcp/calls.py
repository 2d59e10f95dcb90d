"""Calls of tools as models make them: the mesh's, and the gateway's own (`protocol §13`, `POST /mcp`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta as Limits
from msgspec import Raw

from asya.gateway.access import Caller
from asya.gateway.aws.task_starter import Key
from asya.gateway.http.visible_tasks import unknown_task, visible_task
from asya.gateway.mcp.pause import answers, question, read_request_state, supports_form
from asya.gateway.mcp.results import TaskLinks, cancel_result, tool_result
from asya.gateway.mcp.types import (
    CANCEL_TOOL,
    RESUME_TOOL,
    WAIT_TOOL,
    CallToolParams,
    InputRequired,
    RequestMeta,
    ToolResult,
)
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.routes.resume import ResumeRoutes
from asya.gateway.routes.tool_calls import ToolCalls, status_url, stream_url
from asya.gateway.submission import Origin
from asya.gateway.tools import ToolInvocation
from asya.pause.resume_input import InvalidInputError
from asya.protocol.api_errors import ApiError
from asya.protocol.ids import ID_LIMIT
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import TaskView

CallResult = ToolResult | InputRequired

_Id = Annotated[str, Limits(min_length=1, max_length=ID_LIMIT)]


_Arguments = TypeVar("_Arguments")


class _TaskArguments(msgspec.Struct, forbid_unknown_fields=True):
    id: _Id


class _ResumeArguments(_TaskArguments, forbid_unknown_fields=True):
    input: dict[str, Raw]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call, and who makes it.

    Attributes:
        base_url: of the API that it came through, where the caller can look at the task.
        key: makes a repetition of the call the same task, and lets it be canceled by the request's id.
        seconds: how long to wait for the end.
        look: is shown the task while one waits.
    """

    params: CallToolParams
    meta: RequestMeta
    is_modern: bool
    caller: Caller
    origin: Origin
    base_url: str
    key: Key | None
    seconds: float
    look: Callable[[TaskView], None] | None


@dataclass(frozen=True, slots=True)
class McpCalls:
    """Answers calls of tools."""

    calls: ToolCalls
    tasks: Tasks
    cancels: CancelRoutes
    resumes: ResumeRoutes

    def answer(self, call: ToolCall, now: datetime) -> CallResult:
        """What the call comes to.

        Raises:
            ApiError: if the tool cannot be called so, or now.
            TaskStoreError: if the table cannot be reached.
        """
        if call.params.request_state is not None:
            return self._go_on(call, call.params.request_state, now)
        match call.params.name:
            case name if name in self.calls.mesh.tools:
                asked = ToolInvocation(name, _object(call.params.arguments))
                task_id = self.calls.start(asked, call.caller.principal, call.origin, now, call.key)
                return self._wait(task_id, call, now)
            case name if name == WAIT_TOOL:
                given = _arguments(call, _TaskArguments)
                visible_task(self.tasks, given.id, call.caller, now)
                return self._wait(given.id, call, now)
            case name if name == CANCEL_TOOL:
                given = _arguments(call, _TaskArguments)
                self.cancels.cancel(given.id, call.caller, now)
                return cancel_result(visible_task(self.tasks, given.id, call.caller, now), _links(given.id, call))
            case name if name == RESUME_TOOL:
                answered = _arguments(call, _ResumeArguments)
                self.resumes.resume(answered.id, call.caller, answered.input, now)
                return self._wait(answered.id, call, now)
            case name:
                known = ", ".join(sorted(self.calls.mesh.tools)) or "none"
                raise ApiError(404, "unknown_tool", f"there is no tool {name[:100]!r}; there are: {known}", "name")

    def _go_on(self, call: ToolCall, state: str, now: datetime) -> CallResult:
        """The call once more, with a person's answer to its task's pause: or with a repetition of it, which changes nothing."""
        task_id, since = read_request_state(state)
        task = visible_task(self.tasks, task_id, call.caller, now)
        if task.status != "paused" or task.pause is None or task.pause.since != since:
            return self._wait(task_id, call, now)
        given = answers(call.params.input_responses)
        if given is None:
            return tool_result(task, _links(task_id, call), is_modern=call.is_modern)
        try:
            self.resumes.resume(task_id, call.caller, given, now, since=since)
        except InvalidInputError as invalid:
            return question(task_id, task.pause, invalid.message)
        except ApiError as refused:
            if refused.code != "not_paused":
                raise
        return self._wait(task_id, call, now)

    def _wait(self, task_id: str, call: ToolCall, now: datetime) -> CallResult:
        task = self.calls.wait(task_id, now, call.seconds, look=call.look)
        if task is None:
            raise unknown_task(task_id)
        if (
            task.status == "paused"
            and task.pause is not None
            and call.is_modern
            and supports_form(call.meta, task.pause)
        ):
            return question(task_id, task.pause)
        return tool_result(task, _links(task_id, call), is_modern=call.is_modern)


def _object(arguments: Raw) -> Raw:
    """Arguments that are null are none."""
    return Raw(b"{}") if bytes(arguments).strip() == b"null" else arguments


def _links(task_id: str, call: ToolCall) -> TaskLinks:
    return TaskLinks(status_url(call.base_url, task_id), stream_url(call.base_url, task_id))


def _arguments(call: ToolCall, kind: type[_Arguments]) -> _Arguments:
    try:
        return msgspec.json.decode(call.params.arguments, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = f"arguments of {call.params.name!r}: {error}"
        raise ApiError(400, "invalid_arguments", problem, "arguments") from None
