"""A paused task as a form for the client's user, and the user's answers (`protocol §11`, `§13`, `POST /mcp`).

From 2026-07-28 on a call may answer `input_required`. The client shows the form and repeats the call with the answers
and the request state, which names the task and the pause. The state is not a secret and grants nothing: only the owner
of the task can use it.
"""

from collections.abc import Mapping

from msgspec import UNSET

from asya.capabilities.mcp.types import InputRequired, InputResponse, RequestMeta
from asya.capabilities.pauses.resume_input import Answers
from asya.capabilities.pauses.shown import text_lines
from asya.protocol.exact_json import encode_json
from asya.protocol.pause import PauseField, TaskPause

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
