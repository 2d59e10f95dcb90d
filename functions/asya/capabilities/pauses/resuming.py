"""Ends a pause, by a resume or because it lasts too long: record, message and envelope (`protocol §11`)."""

from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from asya.capabilities.pauses.pausing import pause_of
from asya.capabilities.pauses.resume_input import Answers, complete_answers, merge_answers
from asya.function.hop import Delivery, Hop
from asya.protocol import headers, names, states, status
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Envelope, Frame
from asya.protocol.errors import ErrorInfo
from asya.protocol.pause import PauseFailure, PauseHeader, PauseRelease
from asya.protocol.task import TaskRecord
from asya.protocol.times import deadline_after, format_duration, format_time, parse_time

_answers_decoder = msgspec.json.Decoder(dict[str, Raw])
_PAUSE_HEADERS = dict.fromkeys((headers.PAUSE, headers.RESUME_INPUT, headers.RESUME_AT))


def check_paused(record: TaskRecord) -> int:
    """The epoch of a paused task's pause.

    Raises:
        ApiError: 409 if the task is not paused.
    """
    if not record.is_paused or record.pause_epoch is None:
        problem = "is no longer paused: it was resumed" if record.resumed_epoch is not None else "is not paused"
        raise ApiError(409, "not_paused", f"task {record.id!r} {problem}; its status is {record.status}")
    return record.pause_epoch


def resume_task(record: TaskRecord, stored: Envelope, answers: Answers, *, now: datetime) -> TaskRecord:
    """The record of a resumed task: running, with the remaining time until its deadline and a release to x-resume.

    Raises:
        InvalidInputError: 422 if the answers do not fit; the task stays paused.
        ApiError: 409 if the task is not paused, or its stored envelope has no valid pause header.
    """
    epoch = check_paused(record)
    pause = _pause_of(stored)
    if pause is None:
        raise ApiError(409, "not_resumable", f"the stored envelope of task {record.id!r} has no valid pause header")
    complete = complete_answers(pause.fields, answers)
    merge_answers(stored.payload, pause.fields, complete)
    at = format_time(now)
    return replace(
        record,
        status=states.RUNNING,
        updated_at=max(record.updated_at, at),
        deadline_at=new_deadline(pause, at),
        pause=None,
        resumed_epoch=epoch,
        handover=PauseRelease(to=names.RESUME, epoch=epoch, at=at, input=_encoded(complete)),
    )


def release_delivery(stored: Envelope, release: PauseRelease) -> Delivery:
    """The message that ends a pause: the stored envelope to x-resume with its input, or to x-sink as canceled or failed."""
    if release.to == names.SINK:
        ended = replace(stored, status=_end_status(stored.status or status.Status(), release))
        return Delivery(names.SINK, encode(ended.with_headers(_PAUSE_HEADERS)), "sink")
    answers = release.input if release.input is not UNSET else Raw(b"{}")
    envelope = stored.with_headers({headers.RESUME_INPUT: answers, headers.RESUME_AT: release.at})
    if envelope.status is not None:
        # The old deadline is void; x-resume sets the new one.
        waiting = status.routed(envelope.status, actor=names.RESUME, now=release.at)
        envelope = replace(envelope, status=replace(waiting, deadline_at=None))
    return Delivery(names.RESUME, encode(envelope), "next")


def unpaused() -> Frame:
    """At x-resume: the only frame of an envelope that no release has sent. It goes on as it is, whatever it says of a pause."""
    return Frame(None, headers=dict(_PAUSE_HEADERS), alone=True)


def restore(hop: Hop, pause: PauseHeader, stored: Envelope | None) -> tuple[Hop, Frame]:
    """At x-resume: the hop with its new deadline, and its only frame with the answers in the payload.

    Args:
        hop: the hop of the release, which has the answers.
        pause: the pause that ends.
        stored: the kept envelope, whose route and payload count; None if it is kept no longer, or under an earlier generation.

    Raises:
        ParseError: a header of the resume is malformed.
    """
    kept = hop.envelope if stored is None else replace(hop.envelope, route=stored.route, payload=stored.payload)
    envelope = kept.with_headers(dict(_PAUSE_HEADERS))
    at = hop.envelope.header(headers.RESUME_AT)
    deadline = new_deadline(pause, at if isinstance(at, str) else hop.status.updated_at or pause.paused_at)
    stamped = replace(hop.status, deadline_at=deadline)
    restarted = replace(
        hop,
        envelope=replace(envelope, status=stamped),
        deadline=parse_time(deadline) if deadline is not None else None,
    )
    try:
        answers = _answers_decoder.decode(hop.envelope.headers.get(headers.RESUME_INPUT, Raw(b"{}")))
        payload = merge_answers(envelope.payload, pause.fields, answers) if answers else None
    except (msgspec.MsgspecError, ApiError) as error:
        raise ParseError(f"headers.{headers.RESUME_INPUT}: {error}", hop.envelope.id) from None
    return restarted, Frame(payload, alone=True)


def new_deadline(pause: PauseHeader, resumed_at: str) -> str | None:
    """The deadline of an envelope resumed at this time; the time of the pause does not count.

    Raises:
        ParseError: `resumed_at` is not a time.
    """
    if pause.remaining is None:
        return None
    try:
        return format_time(deadline_after(parse_time(resumed_at), pause.remaining))
    except ValueError as error:
        raise ParseError(f"headers.{headers.RESUME_AT}: {error}") from None


def _end_status(paused: status.Status, release: PauseRelease) -> status.Status:
    failure = release.failure
    if failure is UNSET:
        return status.ended(paused, phase=states.CANCELED, reason="Canceled", now=release.at)
    return status.failed(paused, reason=failure.reason, now=release.at, error=failure.error)


def _pause_of(stored: Envelope) -> PauseHeader | None:
    try:
        return pause_of(stored)
    except ParseError:
        return None


def _encoded(answers: Answers) -> Raw:
    return Raw(msgspec.json.encode(answers))


def expire_pause(record: TaskRecord, limit: timedelta, *, now: datetime) -> TaskRecord:
    """The record of a task whose pause has lasted too long: failed, with a release of its envelope to x-sink.

    Another record stays unchanged: one that is not paused, or not for so long.
    """
    if not record.is_paused or record.pause is None or record.pause_epoch is None:
        return record
    if now - parse_time(record.pause.since) < limit:
        return record
    message = f"The pause at {record.actor} was not answered within {format_duration(limit.total_seconds())}"
    error, at = ErrorInfo(type="Timeout", message=message), format_time(now)
    failure = PauseFailure(reason="Timeout", error=error)
    return replace(
        record,
        status=states.FAILED,
        updated_at=max(record.updated_at, at),
        reason="Timeout",
        error=error,
        pause=None,
        handover=PauseRelease(to=names.SINK, epoch=record.pause_epoch, at=at, failure=failure),
    )
