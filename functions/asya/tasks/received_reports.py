"""Reads reports, in batches or single ones, and isolates the malformed (`protocol §13`).

In a single report only `status` is required (or `type: fly` with `data`). Defaults: the current time, the position in
the route, generation 0. The task statuses `running` and `pending` are accepted too: `running` registers the task,
`pending` changes nothing.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from asya.protocol import ids, states
from asya.protocol.envelope import GENERATION_LIMIT, Route
from asya.protocol.errors import TaskProblem, shortened
from asya.protocol.events import (
    COUNT_LIMIT,
    EVENT_LIMIT,
    INLINE_RESULT_LIMIT,
    PARTIAL_LIMIT,
    RECEIVE_LIMIT,
    EventData,
    EventResult,
    PartialEvent,
    Report,
    RetryNote,
    TaskEvent,
    is_end,
)
from asya.protocol.exact_json import encode_json, exact_decoder
from asya.protocol.times import format_time, parse_time

BATCH_LIMIT = 500
TEXT_LIMIT = 1024
NUMBER_LIMIT = 1e12
PAUSE_LIMIT = 64 * 1024  # bytes of prompt and fields
SHOWN_LIMIT = (
    64 * 1024
)  # bytes of what a pause shows, as JSON: its bound is in characters of text, of which some are escaped
# Bytes of a route and of a run's note in a report that is no end. The reports of a hop share an item of the tasks table, which
# may have 400 KB. An end has no item but the record, and must arrive.
ROUTE_LIMIT = 128 * 1024
RUN_LIMIT = 16 * 1024
# No report is older than this software, and calculations with a time must stay within the years 1 to 9999.
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)

_MISSING = re.compile(r"Object missing required field `(.+)`")


class _EventId(msgspec.Struct):
    id: str = ""


class _EventType(msgspec.Struct):
    type: object = "status"


_list_decoder = msgspec.json.Decoder(list[Raw])
_event_decoder = exact_decoder(TaskEvent)
_partial_decoder = msgspec.json.Decoder(PartialEvent)
_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_type_decoder = msgspec.json.Decoder(_EventType)
_id_decoder = msgspec.json.Decoder(_EventId)


class BatchError(ValueError):
    """A request or a report is malformed.

    Attributes:
        field: the malformed field, if the problem concerns one.
    """

    def __init__(self, problem: str, field: str | None = None) -> None:
        super().__init__(problem)
        self.field = field


def read_events(body: bytes) -> list[Report | EventResult]:
    """Read the events of a batch in order; a malformed event becomes its result, 400 with the field.

    Raises:
        BatchError: the body is not a list, or the list is too long.
    """
    return [_event_or_result(raw) for raw in read_list(body)]


def read_event(raw: Raw) -> Report:
    """Read one event.

    Raises:
        BatchError: the event is malformed.
    """
    if len(bytes(raw)) > EVENT_LIMIT:
        raise BatchError(f"the event has more than {EVENT_LIMIT} bytes")
    try:
        event = _decode_report(raw)
    except msgspec.ValidationError as error:
        raise batch_error(error) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BatchError(f"the event is not valid JSON: {error}") from None
    for problem in _partial_problems(event) if isinstance(event, PartialEvent) else _status_problems(event):
        field, _, _ = problem.partition(" ")
        raise BatchError(problem, field.rstrip(":"))
    return _normalize(event) if isinstance(event, TaskEvent) else replace(event, at=format_time(parse_time(event.at)))


def read_list(body: bytes) -> list[Raw]:
    """Read the items of a list without decoding them.

    Raises:
        BatchError: the body is not a list, or the list is too long.
    """
    try:
        items = _list_decoder.decode(body)
    except msgspec.ValidationError:
        raise BatchError("the body must be a JSON array") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BatchError(f"the body is not valid JSON: {error}") from None
    if len(items) > BATCH_LIMIT:
        raise BatchError(f"the request has {len(items)} items; send {BATCH_LIMIT} at most")
    return items


def _event_or_result(raw: Raw) -> Report | EventResult:
    try:
        return read_event(raw)
    except BatchError as error:
        return EventResult(id=_id_of(raw), status=400, error=str(error))


def _decode_report(raw: Raw) -> Report:
    # Most events are status reports, so the type is read only if that form does not fit.
    try:
        return _event_decoder.decode(raw)
    except msgspec.ValidationError:
        if _type_decoder.decode(raw).type != "fly":
            raise
    return _partial_decoder.decode(raw)


def _partial_problems(event: PartialEvent) -> Iterator[str]:
    if (problem := ids.problem_of(event.id)) is not None:
        yield f"id {problem}"
    for name, number, lowest, highest in (
        ("generation", event.generation, 0, GENERATION_LIMIT),
        ("position", event.position, 0, COUNT_LIMIT),
        ("attempt", event.attempt, 1, COUNT_LIMIT),
        ("receive", event.receive, 1, RECEIVE_LIMIT),
        ("sequence", event.sequence, 0, COUNT_LIMIT),
    ):
        if not lowest <= number <= highest:
            yield f"{name} is {number}; it must be from {lowest} to {highest}"
    if len(event.actor) > TEXT_LIMIT:
        yield f"actor has more than {TEXT_LIMIT} characters"
    yield from _time_problems("at", event.at)
    if len(bytes(event.data)) > PARTIAL_LIMIT:
        yield f"data has more than {PARTIAL_LIMIT} bytes"
    try:
        _object_decoder.decode(event.data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        yield "data must be a JSON object"


def _hop_problems(data: EventData) -> Iterator[str]:
    for name, value, limit in (("route", data.route, ROUTE_LIMIT), ("run", data.run, RUN_LIMIT)):
        size = len(msgspec.json.encode(value))
        if size > limit:
            yield f"data.{name} has {size} bytes; it may have {limit}"
    if data.run is not None:
        yield from _time_problems("data.run.at", data.run.at)


def _pause_problems(data: EventData) -> Iterator[str]:
    size = len(encode_json((data.prompt, data.fields)))
    if size > PAUSE_LIMIT:
        yield f"data.prompt and data.fields have {size} bytes; they may have {PAUSE_LIMIT} together"
    size = len(msgspec.json.encode(data.shown))
    if size > SHOWN_LIMIT:
        yield f"data.shown has {size} bytes; it may have {SHOWN_LIMIT}"


def _time_problems(name: str, text: str) -> Iterator[str]:
    problems = list(_form_problems(name, text or "-"))
    yield from problems
    if not problems and not EARLIEST <= parse_time(text) < LATEST:
        yield f"{name} is {text}; it must be in the years {EARLIEST.year} to {LATEST.year - 1}"


def _form_problems(name: str, text: str | None) -> Iterator[str]:
    try:
        if text:
            parse_time(text)
    except ValueError as error:
        yield f"{name}: {error}"


def _status_problems(event: TaskEvent) -> Iterator[str]:
    """Check the limits that the types do not express."""
    data = event.data
    for name, text in (("id", event.id), ("parent_id", event.parent_id), ("root_id", event.root_id)):
        if text is not None and (reason := ids.problem_of(text)) is not None:
            yield f"{name} {reason}"
    for name, number, lowest, highest in (
        ("generation", event.generation, 0, GENERATION_LIMIT),
        ("position", event.position, 0, COUNT_LIMIT),
        ("attempt", event.attempt, 1, COUNT_LIMIT),
        ("data.attempt", data.attempt, 1, COUNT_LIMIT),
        ("data.retry.max_attempts", data.retry.max_attempts if data.retry else None, 1, COUNT_LIMIT),
        ("data.message_size_kb", data.message_size_kb, 0, NUMBER_LIMIT),
        ("data.duration_ms", data.duration_ms, 0, NUMBER_LIMIT),
    ):
        if number is not None and not lowest <= number <= highest:
            yield f"{name} is {number}; it must be from {lowest} to {highest:g}"
    problem = data.problem or TaskProblem("", "")
    for name, text in (
        *((name, getattr(data, name)) for name in ("actor", "result_uri", "reason", "owner", "callback")),
        ("problem.type", problem.type),
        ("problem.message", problem.message),
    ):
        if len(text or "") > TEXT_LIMIT:
            yield f"data.{name} has more than {TEXT_LIMIT} characters"
    yield from _time_problems("at", event.at)
    # A sender may set these two; a creation that is not credible does not count (`protocol §13`).
    yield from _form_problems("data.created_at", data.created_at)
    yield from _form_problems("data.deadline_at", data.deadline_at)
    yield from _due_problems(event)
    if event.status in states.PROGRESS and data.route is None:
        yield f"data.route is missing; a progress report ({event.status}) needs it"
    if not is_end(event):
        yield from _hop_problems(data)
    if data.prompt or data.fields or data.shown:
        yield from _pause_problems(data)
    if data.result is not UNSET and len(bytes(data.result)) > INLINE_RESULT_LIMIT:
        yield f"data.result has more than {INLINE_RESULT_LIMIT} bytes; report its result_uri instead"


def _due_problems(event: TaskEvent) -> Iterator[str]:
    """Check when the envelope of a task goes on."""
    data = event.data
    if data.retry is not None:
        yield from _time_problems("data.retry.next_at", data.retry.next_at)
    if data.waiting_until is not None or event.status == states.WAITING:
        yield from _time_problems("data.waiting_until", data.waiting_until or "")


def _normalize(event: TaskEvent) -> TaskEvent:
    """Format the times so that they compare as text, and truncate error texts to the size limits of a record."""
    data = event.data
    return replace(
        event,
        at=format_time(parse_time(event.at)),
        data=replace(
            data,
            created_at=format_time(parse_time(data.created_at)) if data.created_at else None,
            deadline_at=format_time(parse_time(data.deadline_at)) if data.deadline_at else None,
            waiting_until=format_time(parse_time(data.waiting_until)) if data.waiting_until else None,
            error=shortened(data.error) if data.error else None,
            retry=_normalized_retry(data.retry) if data.retry else None,
            # An end has no hop, and so its note is not checked.
            run=replace(data.run, at=format_time(parse_time(data.run.at))) if data.run and not is_end(event) else None,
        ),
    )


def _normalized_retry(retry: RetryNote) -> RetryNote:
    return replace(retry, error=shortened(retry.error), next_at=format_time(parse_time(retry.next_at)))


def batch_error(error: msgspec.ValidationError) -> BatchError:
    """Convert a validation error; the message starts with the name of the field."""
    problem, _, path = str(error).partition(" - at `$")
    field = path.rstrip("`").lstrip(".")
    if missing := _MISSING.fullmatch(problem):
        field = f"{field}.{missing[1]}".lstrip(".")
    return BatchError(f"{field}: {problem}" if field else problem, field or None)


def _id_of(raw: Raw) -> str:
    try:
        event_id = _id_decoder.decode(raw).id
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return ""
    return event_id if ids.is_usable(event_id) else ""


class _RouteData(msgspec.Struct):
    route: Route | None = None


_data_decoder = msgspec.json.Decoder(_RouteData)


def read_single_event(
    body: bytes, task_id: str, now: datetime, upgrade: Callable[[Raw, str | None], Raw] = lambda data, _: data
) -> Report | None:
    """Read the report of a request; None for the status `pending`, which changes nothing.

    Args:
        body: the body of the request.
        task_id: the id in its path.
        now: the time of a report that names none.
        upgrade: brings the data of a report with a status from its legacy forms.

    Raises:
        BatchError: the report is malformed.
    """
    members = _members(body)
    if "type" not in members and "status" not in members:
        raise BatchError("type and status are missing; a report is {type: status, status, data} or {type: fly, data}")
    if "id" in members and _text(members["id"]) != task_id:
        raise BatchError("id differs from the id in the path; leave it out", "id")
    status = _text(members.get("status"))
    if status in states.ACTIVE:
        # `pending` is validated too, so that a malformed report is rejected.
        members["status"] = Raw(b'"registered"')
    if _text(members.get("type", Raw(b'"status"'))) == "status":
        members["data"] = upgrade(members.get("data", Raw(b"{}")), status)
    members["id"] = Raw(msgspec.json.encode(task_id))
    members.setdefault("at", Raw(msgspec.json.encode(format_time(now))))
    members.setdefault("position", Raw(b"%d" % _position(members)))
    event = read_event(Raw(msgspec.json.encode(members)))
    if isinstance(event, PartialEvent) or status != states.PENDING:
        return event
    return None


def _members(body: bytes) -> dict[str, Raw]:
    try:
        return _object_decoder.decode(body)
    except msgspec.ValidationError:
        raise BatchError("the body must be a JSON object") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BatchError(f"the body is not valid JSON: {error}") from None


def _text(raw: Raw | None) -> str | None:
    """Decode a string; None for any other value."""
    try:
        return msgspec.json.decode(raw, type=str) if raw is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _position(members: dict[str, Raw]) -> int:
    """Derive the position from the reported route."""
    try:
        route = _data_decoder.decode(members.get("data", Raw(b"{}"))).route
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return 0  # read_event rejects the malformed data
    return route.position if route else 0
