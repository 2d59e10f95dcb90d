"""The result of a tool call, made from its task: text for the model, JSON for programs (`protocol §13`, `POST /mcp`)."""

from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, UnsetType

from asya.capabilities.mcp.types import RESUME_TOOL, TASK_KEY, WAIT_TOOL, ResourceLink, TextContent, ToolResult
from asya.capabilities.pauses.shown import text_lines
from asya.protocol.errors import ErrorInfo
from asya.protocol.exact_json import encode_json
from asya.protocol.pause import PauseField, TaskPause
from asya.protocol.task import ViewStatus
from asya.tasks.view import TaskView


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
        case "succeeded" if task.result is not UNSET:
            result = _inline_result(task.result, is_modern=is_modern)
        case "succeeded" if task.result_uri is not None:
            result = _linked_result(task, task.result_uri, links)
        case "succeeded":
            result = _summary(task, links, f"Task {task.id} has succeeded without a result.")
        case "failed" | "canceled":
            result = _summary(task, links, _failure_text(task), is_error=True)
        case "paused" if task.pause is not None:
            result = _summary(task, links, _pause_text(task, task.pause))
        case "unknown":
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
        pause=task.pause,
        status_url=links.status_url,
        stream_url=links.stream_url,
    )
    return ToolResult(content=(TextContent(text),), structured_content=summary, is_error=is_error)


def _failure_text(task: TaskView) -> str:
    at = f" at {task.actor}" if task.actor else ""
    if task.status == "canceled":
        return f"Task {task.id} was canceled{at}."
    error = f": {task.error.type}: {task.error.message}" if task.error else "."
    return f"Task {task.id} failed{at} ({task.reason or 'no reason given'}){error}"


def _pause_text(task: TaskView, pause: TaskPause) -> str:
    fields = "".join(f"\n- {_field_text(field)}" for field in pause.fields)
    content = fields or " any JSON object; its members are added to the payload"
    call = f'{RESUME_TOOL} with {{"id": {_quote(task.id)}, "input": {{…}}}}'
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
