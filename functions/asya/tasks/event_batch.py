"""Reading reports: each for itself, so that a malformed one spoils none of its neighbours (`protocol §13`)."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from asya.protocol import ids
from asya.protocol.envelope import GENERATION_LIMIT
from asya.protocol.errors import ErrorInfo, cut
from asya.protocol.events import (
    COUNT_LIMIT,
    INLINE_RESULT_LIMIT,
    PARTIAL_LIMIT,
    PROGRESS_STATUSES,
    RECEIVE_LIMIT,
    EventResult,
    PartialEvent,
    Report,
    StateQuery,
    TaskEvent,
)
from asya.protocol.times import format_time, parse_time

BATCH_LIMIT = 500
TEXT_LIMIT = 1024
MESSAGE_LIMIT = 16 * 1024
EVENT_LIMIT = 256 * 1024  # bytes; a record has to stay below DynamoDB's 400 KB
NUMBER_LIMIT = 1e12
PAUSE_LIMIT = 64 * 1024  # bytes of prompt and fields


_MISSING = re.compile(r"Object missing required field `(.+)`")


class _OnlyId(msgspec.Struct):
    id: str = ""


class _OnlyType(msgspec.Struct):
    type: object = "status"


_list_decoder = msgspec.json.Decoder(list[Raw])
_event_decoder = msgspec.json.Decoder(TaskEvent)
_fly_decoder = msgspec.json.Decoder(PartialEvent)
_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_type_decoder = msgspec.json.Decoder(_OnlyType)
_id_decoder = msgspec.json.Decoder(_OnlyId)
_states_decoder = msgspec.json.Decoder(list[StateQuery])


class BatchError(ValueError):
    """A request that is no batch at all; `field` names what is wrong, if it is a field."""

    def __init__(self, problem: str, field: str | None = None) -> None:
        super().__init__(problem)
        self.field = field


def read_events(body: bytes) -> list[Report | EventResult]:
    """The events of a batch in order; in the place of a malformed one, its result 400, which names the field.

    Raises:
        BatchError: if the body is no list, or too long a one.
    """
    return [_event_or_refusal(raw) for raw in _read_list(body)]


def read_event(raw: Raw) -> Report:
    """One event.

    Raises:
        BatchError: saying what is wrong with it, and where.
    """
    if len(bytes(raw)) > EVENT_LIMIT:
        raise BatchError(f"the event has more than {EVENT_LIMIT} bytes")
    try:
        event = _decoded(raw)
    except msgspec.ValidationError as error:
        raise batch_error(error) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BatchError(f"the event is no JSON that can be read: {error}") from None
    for problem in _fly_problems(event) if isinstance(event, PartialEvent) else _problems(event):
        field, _, _ = problem.partition(" ")
        raise BatchError(problem, field.rstrip(":"))
    return _normalised(event) if isinstance(event, TaskEvent) else replace(event, at=format_time(parse_time(event.at)))


def read_queries(body: bytes) -> list[StateQuery]:
    """The queries of a request for states.

    Raises:
        BatchError: if it is no list of queries, or too long a one.
    """
    _read_list(body)
    try:
        queries = _states_decoder.decode(body)
    except msgspec.ValidationError as error:
        raise batch_error(error) from None
    for number, query in enumerate(queries):
        for name in ("id", "root_id"):
            value = getattr(query, name)
            if not (ids.is_usable(value) or (name == "root_id" and value is None)):
                raise BatchError(f"[{number}].{name} must have 1 to {ids.ID_LIMIT} bytes", f"[{number}].{name}")
    return queries


def _read_list(body: bytes) -> list[Raw]:
    try:
        items = _list_decoder.decode(body)
    except msgspec.ValidationError:
        raise BatchError("the body must be a JSON array") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BatchError(f"the body is no JSON: {error}") from None
    if len(items) > BATCH_LIMIT:
        raise BatchError(f"{len(items)} items in one request; {BATCH_LIMIT} at most")
    return items


def _event_or_refusal(raw: Raw) -> Report | EventResult:
    try:
        return read_event(raw)
    except BatchError as error:
        return EventResult(id=_id_of(raw), status=400, error=str(error))


def _decoded(raw: Raw) -> Report:
    """Nearly all are reports of status: what another one is, is looked at only when it does not fit."""
    try:
        return _event_decoder.decode(raw)
    except msgspec.ValidationError:
        if _type_decoder.decode(raw).type != "fly":
            raise
    return _fly_decoder.decode(raw)


def _fly_problems(event: PartialEvent) -> Iterator[str]:
    if not ids.is_usable(event.id):
        yield f"id must have 1 to {ids.ID_LIMIT} bytes"
    for name, number, lowest, highest in (
        ("generation", event.generation, 0, GENERATION_LIMIT),
        ("position", event.position, 0, COUNT_LIMIT),
        ("attempt", event.attempt, 1, COUNT_LIMIT),
        ("receive", event.receive, 1, RECEIVE_LIMIT),
        ("sequence", event.sequence, 0, COUNT_LIMIT),
    ):
        if not lowest <= number <= highest:
            yield f"{name} is {number}; from {lowest} to {highest} are possible"
    if len(event.actor) > TEXT_LIMIT:
        yield f"actor has more than {TEXT_LIMIT} characters"
    try:
        parse_time(event.at)
    except ValueError as error:
        yield f"at: {error}"
    if len(bytes(event.data)) > PARTIAL_LIMIT:
        yield f"data has more than {PARTIAL_LIMIT} bytes"
    try:
        _object_decoder.decode(event.data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        yield "data must be a JSON object"


def _problems(event: TaskEvent) -> Iterator[str]:
    """What types alone do not say."""
    data = event.data
    for name, text in (("id", event.id), ("parent_id", event.parent_id), ("root_id", event.root_id)):
        if not (ids.is_usable(text) or (name != "id" and text is None)):
            yield f"{name} must have 1 to {ids.ID_LIMIT} bytes"
    for name, number, lowest, highest in (
        ("generation", event.generation, 0, GENERATION_LIMIT),
        ("position", event.position, 0, COUNT_LIMIT),
        ("attempt", event.attempt, 1, COUNT_LIMIT),
        ("data.attempt", data.attempt, 1, COUNT_LIMIT),
        ("data.message_size_kb", data.message_size_kb, 0, NUMBER_LIMIT),
        ("data.duration_ms", data.duration_ms, 0, NUMBER_LIMIT),
    ):
        if number is not None and not lowest <= number <= highest:
            yield f"{name} is {number}; from {lowest} to {highest:g} are possible"
    for name in ("actor", "result_uri", "reason", "owner"):
        if len(getattr(data, name) or "") > TEXT_LIMIT:
            yield f"data.{name} has more than {TEXT_LIMIT} characters"
    for name, time in (("at", event.at), ("data.deadline_at", data.deadline_at)):
        try:
            parse_time(time or event.at)
        except ValueError as error:
            yield f"{name}: {error}"
    if event.status in PROGRESS_STATUSES and data.route is None:
        yield f"data.route is missing; progress ({event.status}) is told from it"
    if data.fields or data.prompt:
        size = len(msgspec.json.encode((data.prompt, data.fields)))
        if size > PAUSE_LIMIT:
            yield f"data.prompt and data.fields have {size} bytes; {PAUSE_LIMIT} at most"
    if data.result is not UNSET and len(bytes(data.result)) > INLINE_RESULT_LIMIT:
        yield f"data.result has more than {INLINE_RESULT_LIMIT} bytes; report its result_uri instead"


def _normalised(event: TaskEvent) -> TaskEvent:
    """Times in one form, so that they compare as text; error texts no longer than a record should hold."""
    data = event.data
    return replace(
        event,
        at=format_time(parse_time(event.at)),
        data=replace(
            data,
            deadline_at=format_time(parse_time(data.deadline_at)) if data.deadline_at else None,
            error=_shortened(data.error) if data.error else None,
        ),
    )


def _shortened(error: ErrorInfo) -> ErrorInfo:
    return ErrorInfo(
        type=error.type[:TEXT_LIMIT],
        message=error.message[:MESSAGE_LIMIT],
        mro=tuple(name[:TEXT_LIMIT] for name in error.mro[:32]),
        traceback=cut(error.traceback),
    )


def batch_error(error: msgspec.ValidationError) -> BatchError:
    """What does not fit, in a message that begins with the field's name."""
    problem, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    if missing := _MISSING.fullmatch(problem):
        field = f"{field}.{missing[1]}".lstrip(".")
    return BatchError(f"{field}: {problem}" if field else problem, field or None)


def _id_of(raw: Raw) -> str:
    try:
        found = _id_decoder.decode(raw).id
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return ""
    return found if ids.is_usable(found) else ""
