"""Converts tasks and reports to and from the legacy forms (`protocol §14`: `/envelopes/{id}`, `/jobs/{id}`).

The legacy statuses include neither pauses nor cancellation: a paused task is running, and a canceled task has failed.

Legacy sidecars write the route as `prev`, `curr` and `next` beside the other fields, or leave it out, and an error as text.
"""

from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from asya.protocol import states
from asya.protocol.envelope import Route
from asya.protocol.errors import MESSAGE_LIMIT, ErrorInfo
from asya.protocol.events import INLINE_RESULT_LIMIT, EventData, TaskEvent
from asya.protocol.states import Progress
from asya.tasks.received_reports import BatchError, batch_error
from asya.tasks.view import TaskView

EnvelopeStatus = Literal["pending", "running", "succeeded", "failed", "unknown"]
JobStatus = Literal["Pending", "Running", "Succeeded", "Failed"]

_ENVELOPE_STATUSES: dict[str, EnvelopeStatus] = {
    states.PENDING: states.PENDING,
    states.RUNNING: states.RUNNING,
    states.PAUSED: states.RUNNING,
    states.SUCCEEDED: states.SUCCEEDED,
    states.FAILED: states.FAILED,
    states.CANCELED: states.FAILED,
}
_JOB_STATUSES: dict[EnvelopeStatus, JobStatus] = {
    states.PENDING: "Pending",
    states.RUNNING: "Running",
    states.SUCCEEDED: "Succeeded",
    states.FAILED: "Failed",
    states.UNKNOWN: "Running",
}


class LegacyRoute(msgspec.Struct, frozen=True, kw_only=True):
    """All actors in order, and the index of the current one."""

    actors: tuple[str, ...]
    current: int


class LegacyEnvelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The response of `GET /envelopes/{id}`."""

    id: str
    parent_id: str | None = None
    status: EnvelopeStatus
    progress_percent: int
    route: LegacyRoute | None = None
    current_actor_idx: int | None = None
    current_actor_name: str | None = None
    result: Raw | UnsetType = UNSET
    result_uri: str | None = None
    error: str | None = None
    created_at: str
    updated_at: str


class LegacyJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The response of `GET /jobs/{id}`."""

    job_id: str
    status: JobStatus
    progress_percent: int
    result: Raw | UnsetType = UNSET
    result_uri: str | None = None
    error: str | None = None
    created_at: str
    updated_at: str


class LegacyProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /envelopes/{id}/progress`; other members are ignored."""

    status: Progress
    current_actor_idx: Annotated[int, Meta(ge=0, le=999_999)]
    message_size_kb: Annotated[float, Meta(ge=0, le=1e12)] | None = None
    duration_ms: Annotated[float, Meta(ge=0, le=1e12)] | None = None


class LegacyFinal(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /envelopes/{id}/final`; `error` is a text, or an object with the text in `message` or `error`."""

    status: Literal["succeeded", "failed"]
    result: Raw | UnsetType = UNSET
    error: str | dict[str, object] | None = None


LegacyReport = TypeVar("LegacyReport", LegacyProgress, LegacyFinal)
_progress_decoder = msgspec.json.Decoder(LegacyProgress)
_final_decoder = msgspec.json.Decoder(LegacyFinal)


def legacy_envelope(task: TaskView) -> LegacyEnvelope:
    """Convert a task to the form of `/envelopes`."""
    route = _legacy_route(task.route)
    return LegacyEnvelope(
        id=task.id,
        parent_id=task.parent_id,
        status=_ENVELOPE_STATUSES.get(task.status, states.UNKNOWN),
        progress_percent=task.progress_percent,
        route=route,
        current_actor_idx=route.current if route else None,
        current_actor_name=task.actor,
        result=task.result,
        result_uri=task.result_uri,
        error=_error_text(task),
        created_at=task.created_at,
        updated_at=task.updated_at,
    )


def legacy_job(task: TaskView) -> LegacyJob:
    """Convert a task to the form of `/jobs`."""
    return LegacyJob(
        job_id=task.id,
        status=_JOB_STATUSES[_ENVELOPE_STATUSES.get(task.status, states.UNKNOWN)],
        progress_percent=task.progress_percent,
        result=task.result,
        result_uri=task.result_uri,
        error=_error_text(task),
        created_at=task.created_at,
        updated_at=task.updated_at,
    )


def read_progress(body: bytes) -> LegacyProgress:
    """Read a progress report.

    Raises:
        BatchError: the report is malformed.
    """
    return _read(_progress_decoder, body)


def read_final(body: bytes) -> LegacyFinal:
    """Read the report of an end.

    Raises:
        BatchError: the report is malformed.
    """
    final = _read(_final_decoder, body)
    if final.result is not UNSET and len(bytes(final.result)) > INLINE_RESULT_LIMIT:
        raise BatchError(f"result has more than {INLINE_RESULT_LIMIT} bytes; store it elsewhere", "result")
    return final


def progress_event(task: TaskView, report: LegacyProgress, at: str) -> TaskEvent:
    """Convert a progress report; the task's own route names the actors.

    Raises:
        BatchError: the route has no actor with this index.
    """
    route = task.route or Route((), "", ())
    actors = (*route.prev, *((route.curr,) if route.curr else ()), *route.next)
    index = report.current_actor_idx
    if index >= len(actors):
        raise BatchError(
            f"current_actor_idx is {index}; it must be less than {len(actors)}, the number of actors",
            "current_actor_idx",
        )
    return TaskEvent(
        id=task.id,
        status=report.status,
        at=at,
        generation=task.generation,
        position=index,
        data=EventData(
            actor=actors[index],
            route=Route(actors[:index], actors[index], actors[index + 1 :]),
            attempt=1,
            message_size_kb=report.message_size_kb,
            duration_ms=report.duration_ms,
        ),
    )


def final_event(task_id: str, generation: int, report: LegacyFinal, at: str) -> TaskEvent:
    """Convert the report of an end."""
    failed = report.status == states.FAILED
    data = EventData(
        result=UNSET if failed else report.result,
        error=ErrorInfo(type="Error", message=_text(report.error)[:MESSAGE_LIMIT]) if failed else None,
        reason="RuntimeError" if failed else None,
    )
    return TaskEvent(id=task_id, status=report.status, at=at, generation=generation, data=data)


def _legacy_route(route: Route | None) -> LegacyRoute | None:
    if route is None:
        return None
    actors = (*route.prev, *((route.curr,) if route.curr else ()), *route.next)
    return LegacyRoute(actors=actors, current=len(route.prev))


def _error_text(task: TaskView) -> str | None:
    if task.error is not None:
        return task.error.message
    return task.reason


def _text(error: str | dict[str, object] | None) -> str:
    if isinstance(error, dict):
        message = error.get("message", error.get("error"))
        return message if isinstance(message, str) else msgspec.json.encode(error).decode()
    return error or ""


def _read(decoder: "msgspec.json.Decoder[LegacyReport]", body: bytes) -> "LegacyReport":
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise batch_error(error) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BatchError(f"the body is not valid JSON: {error}") from None


_FLAT = ("prev", "curr", "next")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_text_decoder = msgspec.json.Decoder(str)


class _TextError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An error without a type."""

    message: str


_error_decoder = msgspec.json.Decoder(str | _TextError)


def upgrade_data(data: Raw, status: str | None, route: Callable[[], Route | None]) -> Raw:
    """Return the data of a status report with its route and its error as the protocol has them.

    What is of no legacy form, or malformed, stays as it is, so that the reader of reports refuses it by its own name.

    Args:
        data: the data of the report.
        status: its status.
        route: reads the route of the task, which a progress report without a route is about.
    """
    try:
        members = _object_decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return data
    given = dict(members)
    if "route" not in members and all(name in members for name in _FLAT):
        members["route"] = _encode({name: members[name] for name in _FLAT})
        members.setdefault("actor", members["curr"])
    if status in states.PROGRESS and "route" not in members:
        found = _about(route(), _text_or_none(members.get("actor")))
        if found is not None:
            members["route"] = _encode(found)
            members.setdefault("actor", _encode(found.curr))
    if (error := _error(members.get("error"))) is not None:
        members["error"] = error
    return data if members == given else _encode(members)


def _about(route: Route | None, actor: str | None) -> Route | None:
    """The route at the hop of an actor that it has once, else at the hop of the task; None without any hop."""
    if route is None:
        return None
    actors = (*route.prev, *((route.curr,) if route.curr else ()), *route.next)
    if not actors:
        return None
    at = actors.index(actor) if actor is not None and actors.count(actor) == 1 else min(route.position, len(actors) - 1)
    return Route(actors[:at], actors[at], actors[at + 1 :])


def _error(raw: Raw | None) -> Raw | None:
    """The error of a report that has its text alone; None for any other."""
    if raw is None:
        return None
    try:
        error = _error_decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return _encode(ErrorInfo(type="Error", message=error if isinstance(error, str) else error.message))


def _text_or_none(raw: Raw | None) -> str | None:
    try:
        return _text_decoder.decode(raw) if raw is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _encode(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))
