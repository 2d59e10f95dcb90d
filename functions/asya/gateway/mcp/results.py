"""What a call of a tool answers, made of its task: in words for the model, in JSON for programs (`protocol §13`, `POST /mcp`)."""

from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, UnsetType

from asya.gateway.mcp.types import RESUME_TOOL, TASK_KEY, WAIT_TOOL, ResourceLink, TextContent, ToolResult
from asya.protocol.errors import ErrorInfo
from asya.protocol.pause import PauseField, TaskPause
from asya.protocol.task import ViewStatus
from asya.tasks.view import TaskView


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a task stands that gave no result: what went wrong, what it waits for, where it can be followed."""

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
    """Where a task is looked at."""

    status_url: str
    stream_url: str


def tool_result(task: TaskView, places: TaskLinks, *, is_modern: bool) -> ToolResult:
    """What the call says.

    Args:
        is_modern: whether results may be any JSON; before 2026-07-28 structured content is an object.
    """
    match task.status:
        case "succeeded" if task.result is not UNSET:
            said = _result(task.result, is_modern=is_modern)
        case "succeeded" if task.result_uri is not None:
            said = _large(task, task.result_uri, places)
        case "succeeded":
            said = _state(task, places, f"Task {task.id} has succeeded, without a result.")
        case "failed" | "canceled":
            said = _state(task, places, _why(task), is_error=True)
        case "paused" if task.pause is not None:
            said = _state(task, places, _asks(task, task.pause))
        case "unknown":
            said = _state(task, places, f"Task {task.id} cannot be read just now.", is_error=True)
        case _:
            said = _state(task, places, _goes_on(task))
    return _tagged(said, task)


def error_result(problem: str) -> ToolResult:
    """The answer to a call that could not even start, or could not do what it says."""
    return ToolResult(content=(TextContent(problem),), is_error=True)


def cancel_result(task: TaskView, places: TaskLinks) -> ToolResult:
    """What `cancel_task` says: how the task has ended."""
    return _tagged(_state(task, places, f"Task {task.id} has ended: {task.status}."), task)


def _tagged(result: ToolResult, task: TaskView) -> ToolResult:
    return msgspec.structs.replace(result, meta={TASK_KEY: task.id})


def _result(result: Raw, *, is_modern: bool) -> ToolResult:
    text = bytes(result)
    is_object = text.lstrip()[:1] == b"{"
    words = msgspec.json.decode(text, type=str) if text.lstrip()[:1] == b'"' else text.decode("utf-8")
    structured: Raw | UnsetType = result if is_modern or is_object else UNSET
    return ToolResult(content=(TextContent(words),), structured_content=structured)


def _large(task: TaskView, uri: str, places: TaskLinks) -> ToolResult:
    said = f"Task {task.id} has succeeded. Its result is too large to be shown here; it lies at {uri}."
    link = ResourceLink(
        uri=uri, name=f"result-of-{task.id}", description="The result, in Amazon S3", mime_type="application/json"
    )
    found = _state(task, places, said)
    return msgspec.structs.replace(found, content=(*found.content, link))


def _state(task: TaskView, places: TaskLinks, said: str, *, is_error: bool = False) -> ToolResult:
    error = task.error and ErrorInfo(type=task.error.type, message=task.error.message)
    state = TaskSummary(
        id=task.id,
        status=task.status,
        progress_percent=task.progress_percent,
        result_uri=task.result_uri,
        error=error,
        reason=task.reason,
        pause=task.pause,
        status_url=places.status_url,
        stream_url=places.stream_url,
    )
    return ToolResult(content=(TextContent(said),), structured_content=state, is_error=is_error)


def _why(task: TaskView) -> str:
    at = f" at {task.actor}" if task.actor else ""
    if task.status == "canceled":
        return f"Task {task.id} was canceled{at}."
    error = f": {task.error.type}: {task.error.message}" if task.error else "."
    return f"Task {task.id} failed{at} ({task.reason or 'for no known reason'}){error}"


def _asks(task: TaskView, pause: TaskPause) -> str:
    asked = (
        "".join(f"\n- {_field(field)}" for field in pause.fields) or " any JSON object; its members join the payload"
    )
    call = f'{RESUME_TOOL} with {{"id": {_quoted(task.id)}, "input": {{…}}}}'
    return f"Task {task.id} is paused and waits for an answer: {pause.prompt}\nCall {call}, where input holds{asked}"


def _field(field: PauseField) -> str:
    options = f", one of {msgspec.json.encode(field.options).decode()}" if field.options else ""
    needed = "" if field.required and field.default is None else ", may be left out"
    return f"{field.name} ({field.type}{options}{needed}): {field.prompt}".rstrip(": ")


def _goes_on(task: TaskView) -> str:
    at = f", at {task.actor}" if task.actor else ""
    call = f'{WAIT_TOOL} with {{"id": {_quoted(task.id)}}}'
    return f"Task {task.id} is {task.status} ({task.progress_percent} %{at}), and takes longer. Call {call} to wait for its result."


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode("utf-8")
