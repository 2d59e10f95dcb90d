"""A paused task as a question to the person behind a client, and their answer (`protocol §11`, `§13`, `POST /mcp`).

From 2026-07-28 on a call may answer `input_required`: the client asks its person and makes the call again with what they said, and
with the state it was given, which names the task and the pause. It is no secret and opens nothing: whoever brings it has to
own the task.
"""

from collections.abc import Mapping

import msgspec

from asya.gateway.mcp.types import InputRequired, InputResponse, RequestMeta
from asya.pause.resume_input import Answers
from asya.protocol.pause import PauseField, TaskPause

QUESTION = "pause"


def supports_form(meta: RequestMeta, pause: TaskPause) -> bool:
    """Whether a client asks persons, by forms, and a form has room for this."""
    asks = (meta.capabilities or {}).get("elicitation")
    shows_forms = isinstance(asks, dict) and (not asks or "form" in asks)
    return shows_forms and all(_property(field) is not None for field in pause.fields)


def question(task_id: str, pause: TaskPause, problem: str | None = None) -> InputRequired:
    """What is asked.

    Args:
        problem: what was wrong with the answer before.
    """
    form = {
        "type": "object",
        "properties": {field.name: _property(field) for field in pause.fields},
        "required": [field.name for field in pause.fields if field.required and field.default is None],
    }
    message = f"{pause.prompt}\n{problem}" if problem else pause.prompt
    asked = {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": form}}
    return InputRequired(
        input_requests={QUESTION: asked}, request_state=f"{task_id} {pause.since}", result_type="input_required"
    )


def read_request_state(state: str) -> tuple[str, str]:
    """What a state names: a task, and since when it was paused. A state that was made up names what is not there."""
    task_id, _, since = state.rpartition(" ")
    return task_id, since


def answers(responses: Mapping[str, InputResponse] | None) -> Answers | None:
    """What the person answered; None if they did not."""
    said = (responses or {}).get(QUESTION)
    if said is None or said.action != "accept":
        return None
    return {name: value for name, value in (said.content or {}).items() if bytes(value).strip() != b"null"}


def _property(field: PauseField) -> dict[str, object] | None:
    """A field as forms have it: no objects, and lists only to choose from; None for what has no place in one."""
    options = list(field.options) if field.options and all(isinstance(each, str) for each in field.options) else None
    shown: dict[str, object] = {"title": field.name}
    match field.type:
        case "object":
            return None
        case "array" if options is None:
            return None
        case "array":
            shown |= {"type": "array", "items": {"type": "string", "enum": options}}
        case "string" if options is not None:
            shown |= {"type": "string", "enum": options}
        case _:
            shown["type"] = field.type
    said = field.prompt
    if field.options and options is None:
        said += f" (one of {msgspec.json.encode(field.options).decode()})"
    return (
        shown
        | ({"description": said} if said else {})
        | ({"default": field.default} if field.default is not None else {})
    )
