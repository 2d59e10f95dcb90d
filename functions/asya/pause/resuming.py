"""The end of a pause: what the gateway sends of the envelope that was kept, and what x-resume makes of it (`protocol §11`)."""

from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from asya.messaging.delivery import Delivery
from asya.messaging.hop import Hop
from asya.pause.pausing import pause_of
from asya.pause.resume_input import Answers, checked, merged
from asya.protocol import headers, names, status
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Envelope
from asya.protocol.frame import Frame
from asya.protocol.pause import PauseHeader, PauseRelease
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time, parse_time

_answers_decoder = msgspec.json.Decoder(dict[str, Raw])
_OVER = dict.fromkeys((headers.PAUSE, headers.RESUME_INPUT, headers.RESUME_AT))


def check_paused(record: TaskRecord) -> int:
    """The epoch of the pause that a task is in.

    Raises:
        ApiError: 409 if it is in none.
    """
    if record.status != "paused" or record.pause_epoch is None:
        said = "is no longer paused: it has been resumed" if record.resumed_epoch is not None else "is not paused"
        raise ApiError(409, "not_paused", f"task {record.id!r} {said}; its status is {record.status}")
    return record.pause_epoch


def resumed(record: TaskRecord, kept: Envelope, answers: Answers, *, now: datetime) -> TaskRecord:
    """The record of a task that goes on: running, its deadline as far away as when it paused, its input to be handed over.

    Raises:
        InvalidInputError: 422 if the answers do not fit; the task stays paused.
        ApiError: 409 if the task is not paused, or what was kept of it is of no pause.
    """
    epoch = check_paused(record)
    pause = _pause_of(kept)
    if pause is None:
        raise ApiError(409, "not_resumable", f"what is kept of task {record.id!r} does not say what it waits for")
    complete = checked(pause.fields, answers)
    merged(kept.payload, pause.fields, complete)
    at = format_time(now)
    return replace(
        record,
        status="running",
        updated_at=max(record.updated_at, at),
        deadline_at=deadline_after(pause, at),
        pause=None,
        resumed_epoch=epoch,
        handover=PauseRelease(to="x-resume", epoch=epoch, at=at, input=_encoded(complete)),
    )


def release_delivery(kept: Envelope, handover: PauseRelease) -> Delivery:
    """What is sent of the envelope that was kept: to x-resume with its input, or, canceled, to x-sink."""
    if handover.to == names.SINK:
        was = kept.status or status.Status()
        ended = status.ended(was, phase="canceled", reason="Canceled", now=handover.at)
        return Delivery(names.SINK, encode(replace(kept, status=ended).with_headers(_OVER)), "sink")
    answers = handover.input if handover.input is not UNSET else Raw(b"{}")
    envelope = kept.with_headers({headers.RESUME_INPUT: answers, headers.RESUME_AT: handover.at})
    if envelope.status is not None:
        # It stood still while the envelope was kept; x-resume sets the new one.
        waiting = status.routed(envelope.status, actor=names.RESUME, now=handover.at)
        envelope = replace(envelope, status=replace(waiting, deadline_at=None))
    return Delivery(names.RESUME, encode(envelope), "next")


def restored(hop: Hop) -> tuple[Hop, Frame]:
    """At x-resume: the hop with the deadline it has from now on, and its one frame, the answers in the payload.

    What comes from no pause goes on as it is.

    Raises:
        ParseError: if its headers are not what the gateway wrote.
    """
    pause = pause_of(hop.envelope)
    if pause is None:
        return hop, Frame(None, headers=dict(_OVER), alone=True)
    envelope = hop.envelope.with_headers(dict(_OVER))
    at = hop.envelope.header(headers.RESUME_AT)
    deadline = deadline_after(pause, at if isinstance(at, str) else hop.status.updated_at or pause.paused_at)
    stamped = replace(hop.status, deadline_at=deadline)
    restarted = Hop.of(
        replace(envelope, status=stamped),
        hop.actor,
        hop.spec,
        hop.mesh,
        hop.arrival,
        needs_registration=hop.needs_registration,
    )
    try:
        answers = _answers_decoder.decode(hop.envelope.headers.get(headers.RESUME_INPUT, Raw(b"{}")))
        payload = merged(envelope.payload, pause.fields, answers) if answers else None
    except (msgspec.MsgspecError, ApiError) as error:
        raise ParseError(f"headers.{headers.RESUME_INPUT}: {error}", hop.envelope.id) from None
    return restarted, Frame(payload, alone=True)


def deadline_after(pause: PauseHeader, resumed_at: str) -> str | None:
    """The deadline of an envelope resumed at this moment: time paused does not count.

    Raises:
        ParseError: if the moment is none.
    """
    if pause.remaining is None:
        return None
    try:
        return format_time(parse_time(resumed_at) + timedelta(seconds=pause.remaining))
    except (ValueError, OverflowError) as error:
        raise ParseError(f"headers.{headers.RESUME_AT}: {error}") from None


def _pause_of(kept: Envelope) -> PauseHeader | None:
    try:
        return pause_of(kept)
    except ParseError:
        return None


def _encoded(answers: Answers) -> Raw:
    return Raw(msgspec.json.encode(answers))
