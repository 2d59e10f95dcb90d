"""What a tool call answers: progress, a result, or a paused task as a form (`protocol §13`, `POST /mcp`).

From 2026-07-28 on a call may answer `input_required`. The client shows the form and repeats the call with the answers
and the request state, which names the task and the pause. The state is not a secret and grants nothing: only the owner
of the task can use it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET, Raw, UnsetType

from asya.capabilities.mcp.types import (
    RESUME_TOOL,
    TASK_KEY,
    WAIT_TOOL,
    InputRequired,
    InputResponse,
    ProgressToken,
    RequestMeta,
    ResourceLink,
    TextContent,
    ToolResult,
)
from asya.capabilities.pauses.resume_input import Answers
from asya.capabilities.pauses.shown import text_lines
from asya.gateway.json_rpc import RpcNotification
from asya.protocol import states
from asya.protocol.errors import ErrorInfo
from asya.protocol.exact_json import encode_json
from asya.protocol.pause import PauseField, TaskPause
from asya.protocol.states import ViewStatus
from asya.tasks.view import TaskView


class ProgressParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The parameters of `notifications/progress`; progress is in percent."""

    progress_token: ProgressToken
    progress: int
    total: int = 100
    message: str | UnsetType = UNSET


@dataclass(slots=True)
class ProgressNotifications:
    """Collects the notifications of one call, with strictly increasing progress."""

    token: ProgressToken
    items: list[RpcNotification] = field(default_factory=list)
    _percent: int = 0

    def add(self, task: TaskView) -> None:
        """Add a notification if the task has progressed."""
        if task.progress_percent <= self._percent:
            return
        self._percent = task.progress_percent
        message = f"{task.status} at {task.actor}" if task.actor else task.status
        params = ProgressParams(progress_token=self.token, progress=task.progress_percent, message=message)
        self.items.append(RpcNotification(method="notifications/progress", params=params))


INPUT_REQUEST = "pause"
"""The name of the only input request of a call."""


def supports_form(meta: RequestMeta, pause: TaskPause) -> bool:
    """Return whether the client shows forms, and a form can hold all fields of a pause."""
    elicitation = (meta.capabilities or {}).get("elicitation")
    shows_forms = isinstance(elicitation, dict) and (not elicitation or "form" in elicitation)
    return shows_forms and all(_property(field) is not None for field in pause.fields)


def input_required(task_id: str, pause: TaskPause, problem: str | None = None) -> InputRequired:
    """Return the form of a pause.

    Args:
        pause: The pause. Its message has what the pause shows of the payload.
        problem: The mistakes in the previous answers.
    """
    form = {
        "type": "object",
        "properties": {field.name: _property(field) for field in pause.fields},
        "required": [field.name for field in pause.fields if field.required and field.default is None],
    }
    shown = text_lines(pause.shown) if pause.shown is not UNSET else None
    message = "\n".join(filter(None, (pause.prompt, shown, problem)))
    request = {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": form}}
    return InputRequired(
        input_requests={INPUT_REQUEST: request}, request_state=f"{task_id} {pause.since}", result_type="input_required"
    )


def read_request_state(state: str) -> tuple[str, str]:
    """Return the task and the time of the pause that a state names; a forged state names a task that does not exist."""
    task_id, _, since = state.rpartition(" ")
    return task_id, since


def read_answers(responses: Mapping[str, InputResponse] | None) -> Answers | None:
    """Return the user's answers; None if the user gave none."""
    response = (responses or {}).get(INPUT_REQUEST)
    if response is None or response.action != "accept":
        return None
    return {name: value for name, value in (response.content or {}).items() if bytes(value).strip() != b"null"}


def _property(field: PauseField) -> dict[str, object] | None:
    """Return a field as a property of a form; None for objects and free lists, which forms do not support."""
    options = list(field.options) if field.options and all(isinstance(each, str) for each in field.options) else None
    schema: dict[str, object] = {"title": field.name}
    match field.type:
        case "object":
            return None
        case "array" if options is None:
            return None
        case "array":
            schema |= {"type": "array", "items": {"type": "string", "enum": options}}
        case "string" if options is not None:
            schema |= {"type": "string", "enum": options}
        case _:
            schema["type"] = field.type
    description = field.prompt
    if field.options and options is None:
        description += f" (one of {encode_json(field.options).decode()})"
    return (
        schema
        | ({"description": description} if description else {})
        | ({"default": field.default} if field.default is not None else {})
    )


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The structured content for a task without an inline result."""

    id: str
    status: ViewStatus
    progress_percent: int
    result_uri: str | None = None
    error: ErrorInfo | None = None
    reason: str | None = None
    pause: TaskPause | None = None
    status_url: str
    stream_url: str


@dataclass(frozen=True, slots=True)
class TaskLinks:
    """The URLs of a task."""

    status_url: str
    stream_url: str


def tool_result(task: TaskView, links: TaskLinks, *, is_modern: bool) -> ToolResult:
    """Return the result of a call.

    Args:
        is_modern: Whether structured content may be any JSON value; before 2026-07-28 it is an object.
    """
    match task.status:
        case states.SUCCEEDED if task.result is not UNSET:
            result = _inline_result(task.result, is_modern=is_modern)
        case states.SUCCEEDED if task.result_uri is not None:
            result = _linked_result(task, task.result_uri, links)
        case states.SUCCEEDED:
            result = _summary(task, links, f"Task {task.id} has succeeded without a result.")
        case states.FAILED | states.CANCELED:
            result = _summary(task, links, _failure_text(task), is_error=True)
        case states.PAUSED if task.pause is not None:
            result = _summary(task, links, _pause_text(task, task.pause))
        case states.UNKNOWN:
            result = _summary(task, links, f"Task {task.id} cannot be read now. Try again later.", is_error=True)
        case _:
            result = _summary(task, links, _running_text(task))
    return _with_task_id(result, task)


def error_result(problem: str) -> ToolResult:
    """Return the result of a call that was refused."""
    return ToolResult(content=(TextContent(problem),), is_error=True)


def cancel_result(task: TaskView, status: str, links: TaskLinks) -> ToolResult:
    """Return the result of `cancel_task`: the final status of the task, which its record may not show yet."""
    return _with_task_id(_summary(task, links, f"Task {task.id} has ended: {status}."), task)


def _with_task_id(result: ToolResult, task: TaskView) -> ToolResult:
    return msgspec.structs.replace(result, meta={TASK_KEY: task.id})


def _inline_result(value: Raw, *, is_modern: bool) -> ToolResult:
    encoded = bytes(value)
    is_object = encoded.lstrip()[:1] == b"{"
    text = msgspec.json.decode(encoded, type=str) if encoded.lstrip()[:1] == b'"' else encoded.decode("utf-8")
    structured: Raw | UnsetType = value if is_modern or is_object else UNSET
    return ToolResult(content=(TextContent(text),), structured_content=structured)


def _linked_result(task: TaskView, uri: str, links: TaskLinks) -> ToolResult:
    text = f"Task {task.id} has succeeded. Its result is too large to include. Read it from {uri}."
    link = ResourceLink(
        uri=uri, name=f"result-of-{task.id}", description="The result, in Amazon S3", mime_type="application/json"
    )
    summary = _summary(task, links, text)
    return msgspec.structs.replace(summary, content=(*summary.content, link))


def _summary(task: TaskView, links: TaskLinks, text: str, *, is_error: bool = False) -> ToolResult:
    error = task.error and ErrorInfo(type=task.error.type, message=task.error.message)
    summary = TaskSummary(
        id=task.id,
        status=task.status,
        progress_percent=task.progress_percent,
        result_uri=task.result_uri,
        error=error,
        reason=task.reason,
        pause=task.pause and task.pause.without_link(),
        status_url=links.status_url,
        stream_url=links.stream_url,
    )
    return ToolResult(content=(TextContent(text),), structured_content=summary, is_error=is_error)


def _failure_text(task: TaskView) -> str:
    at = f" at {task.actor}" if task.actor else ""
    if task.is_canceled:
        return f"Task {task.id} was canceled{at}."
    error = f": {task.error.type}: {task.error.message}" if task.error else "."
    return f"Task {task.id} failed{at} ({task.reason or 'no reason given'}){error}"


def _pause_text(task: TaskView, pause: TaskPause) -> str:
    fields = "".join(f"\n- {_field_text(field)}" for field in pause.fields)
    content = fields or " any JSON object; its members are added to the payload"
    call = f'{RESUME_TOOL} with {{"id": {_quote(task.id)}, "since": {_quote(pause.since)}, "input": {{…}}}}'
    shown = f"\n{text_lines(pause.shown)}" if pause.shown is not UNSET else ""
    return f"Task {task.id} is paused and waits for an answer: {pause.prompt}{shown}\nCall {call}, where input holds{content}"


def _field_text(field: PauseField) -> str:
    options = f", one of {encode_json(field.options).decode()}" if field.options else ""
    optional = "" if field.required and field.default is None else ", optional"
    return f"{field.name} ({field.type}{options}{optional}): {field.prompt}".rstrip(": ")


def _running_text(task: TaskView) -> str:
    at = f", at {task.actor}" if task.actor else ""
    call = f'{WAIT_TOOL} with {{"id": {_quote(task.id)}}}'
    return f"Task {task.id} is {task.status} ({task.progress_percent} %{at}). Call {call} to wait for its result."


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode("utf-8")
