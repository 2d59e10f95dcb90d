"""Builds the paused envelope to store, and the report of the pause (`protocol §11`)."""

from datetime import datetime

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.capabilities.pauses.resume_input import InvalidInputError, merge_answers
from asya.capabilities.pauses.shown import fill_in
from asya.function.hop import Diversion, Hop
from asya.function.sqs import MESSAGE_BYTES, MESSAGE_MARGIN
from asya.function.targets import actual_actor
from asya.protocol import headers, names, states, status
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import NULL, Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.exact_json import read_exact
from asya.protocol.pause import ANSWERS_LIMIT, Pause, PauseHeader, ShownValue
from asya.protocol.raw_values import insert
from asya.protocol.slices import slice_header
from asya.protocol.times import format_time
from asya.sidecar.arrival import divert
from asya.tasks.reporting.reports import with_origin

# From the resume to the start of the next hop.
_SECONDS_TO_NEXT_HOP = 30.0
_NO_REPORTS = "the envelope cannot pause: its task is not reported ({header}: off), so it could not be resumed"
_IS_SLICE = (
    "the envelope cannot pause: it is a slice of a set, and neither the timeout of the set nor the deadline of its origin "
    "would wait for the answer; pause before the fan-out, or after {actor}"
)
_NO_PLACE = "the envelope cannot pause, because no answer could resume it: {problem}"
_NO_PLACE_FOR_LINK = (
    "the envelope cannot pause, because its payload has no place for the link that answers it: {problem}"
)
_NO_ROOM = "the envelope cannot pause: without its payload it has {size} bytes, and beside the answers {limit} fit into a message"
_header_decoder: msgspec.json.Decoder[PauseHeader | None] = msgspec.json.Decoder(
    PauseHeader | None, float_hook=read_exact
)
# Beside them a message has room for the longest answers in ASCII: a character of two or four bytes becomes three times as long.
_HEADERS_LIMIT = MESSAGE_BYTES - 2 * MESSAGE_MARGIN - 3 * ANSWERS_LIMIT


def refusal(hop: Hop, *, is_reported: bool, now: datetime) -> Diversion | None:
    """Fail an envelope whose pause could never end; None if it may pause.

    That is one whose reports are off, a slice, one whose payload has no place for an answer that every resume inserts, and
    one whose headers leave no room for the answers.
    """
    problem: str | None = _NO_REPORTS.format(header=headers.MESH_STATUS)
    if is_reported:
        problem = _slice_problem(hop) or _unanswerable(hop) or _too_large(hop, now)
    if problem is None:
        return None
    error = ErrorInfo(type="RuntimeError", message=problem)
    failed = status.failed(hop.status, reason="RuntimeError", now=format_time(now), error=error)
    return divert(hop, names.SINK, failed, why="CannotPause")


def with_link(paused: Envelope, pointer: str, link: str) -> Envelope:
    """The envelope with the link that answers its pause in its payload.

    Raises:
        ValueError: the payload has no place for it.
    """
    return replace(paused, payload=insert(paused.payload, pointer, Raw(msgspec.json.encode(link))))


def _slice_problem(hop: Hop) -> str | None:
    """The reason why a slice may not pause; None for any other envelope, and for a header that its set refuses anyway."""
    try:
        header = slice_header(hop.envelope)
    except ValueError:
        return None
    return _IS_SLICE.format(actor=header.actor) if header is not None else None


def _unanswerable(hop: Hop) -> str | None:
    """The reason why every resume would be refused; None if an answer is possible."""
    question = hop.spec.pause or Pause()
    fields = question.fields
    if question.callback_key is not None:
        try:
            insert(hop.envelope.payload, question.callback_key, NULL)
        except ValueError as error:
            return _NO_PLACE_FOR_LINK.format(problem=error)
    for field in fields:
        # The place of a field below another one depends on the other's answer.
        is_below = any(field.pointer.startswith(f"{other.pointer}/") for other in fields)
        if is_below or not (field.required or field.default is not None):
            continue
        try:
            merge_answers(hop.envelope.payload, fields, {field.name: NULL})
        except InvalidInputError as error:
            return _NO_PLACE.format(problem="; ".join(f"{name} {problem}" for name, problem in error.fields.items()))
    return None


def _too_large(hop: Hop, now: datetime) -> str | None:
    """The reason why no resume could be sent: a message has no room for the headers and the answers."""
    size = len(encode(replace(paused_envelope(hop, now=now), payload=NULL)))
    return _NO_ROOM.format(size=size, limit=_HEADERS_LIMIT) if size > _HEADERS_LIMIT else None


def paused_envelope(hop: Hop, *, now: datetime, callback_until: datetime | None = None) -> Envelope:
    """The envelope to store: its route shifted to x-resume, the pause and the remaining time in `x-asya-pause`.

    The time until the deadline stands still during the pause and counts again from the resume. It suffices for the next hop.

    Args:
        hop: the hop of the pause actor.
        now: the time at which the pause begins.
        callback_until: when the link that answers the pause expires; None without a link.
    """
    route = hop.envelope.route
    ahead = route.next if route.next[:1] == (names.RESUME,) else (names.RESUME, *route.next)
    at = format_time(now)
    question = hop.spec.pause or Pause()
    deadline = hop.deadline
    pause = PauseHeader(
        epoch=route.position,
        paused_at=at,
        prompt=fill_in(question.prompt, hop.envelope.payload),
        fields=question.fields,
        show=question.show,
        until=question.until,
        callback_until=None if callback_until is None else format_time(callback_until),
        remaining=None if deadline is None else max((deadline - now).total_seconds(), _time_of_next_hop(hop, ahead)),
    )
    envelope = replace(
        hop.envelope,
        route=route.shifted(ahead),
        status=status.ended(hop.status, phase=states.PAUSED, reason="Paused", now=at),
    )
    return envelope.with_headers(
        {headers.PAUSE: pause, headers.FIRST_ATTEMPT: None, headers.NOT_BEFORE: None, headers.RESUME_INPUT: None}
    )


def _time_of_next_hop(hop: Hop, ahead: tuple[str, ...]) -> float:
    """The seconds that the actor behind x-resume may need: an answer must not lead into a deadline that is about to pass."""
    after_resume = ahead[1:2]
    spec = hop.mesh.actors.get(actual_actor(hop.envelope, after_resume[0])) if after_resume else None
    return spec.timeout + _SECONDS_TO_NEXT_HOP if spec is not None else 0.0


def pause_of(envelope: Envelope) -> PauseHeader | None:
    """Read the pause header of an envelope; None without one.

    Raises:
        ParseError: the header is malformed.
    """
    raw = envelope.headers.get(headers.PAUSE)
    if raw is None:
        return None
    try:
        return _header_decoder.decode(raw)
    except msgspec.MsgspecError as error:
        raise ParseError(f"headers.{headers.PAUSE}: {error}", envelope.id) from None


def paused_report(
    hop: Hop, pause: PauseHeader, callback: str | None = None, shown: tuple[ShownValue, ...] = ()
) -> TaskEvent:
    """The report of a pause, with the link that answers it and what it shows; a repeated report is equal."""
    envelope = hop.envelope
    data = EventData(
        actor=hop.actor,
        route=envelope.route,
        attempt=hop.attempt,
        prompt=pause.prompt,
        fields=pause.fields,
        waiting_until=pause.until,
        callback=callback,
        shown=shown,
    )
    return TaskEvent(
        id=envelope.id,
        status=states.PAUSED,
        at=pause.paused_at,
        generation=envelope.generation,
        position=pause.epoch,
        attempt=hop.attempt,
        parent_id=envelope.parent_id,
        root_id=envelope.root_id,
        data=with_origin(data, envelope),
    )
