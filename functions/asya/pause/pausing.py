"""Pausing: the envelope as it is kept until somebody resumes it (`protocol §11`)."""

from datetime import datetime

import msgspec
from msgspec.structs import replace

from asya.messaging.delivery import Diversion
from asya.messaging.hop import Hop
from asya.protocol import headers, names, status
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause, PauseHeader
from asya.protocol.times import format_time
from asya.sidecar.arrival import divert

_UNHEARD = "nothing is reported of this envelope ({header}: off), so nobody could resume it: it cannot pause"


def refused(hop: Hop, *, is_reported: bool, now: datetime) -> Diversion | None:
    """A pause that nobody would hear of would never end: the envelope fails instead, saying so."""
    if is_reported:
        return None
    error = ErrorInfo(type="RuntimeError", message=_UNHEARD.format(header=headers.MESH_STATUS))
    failed = status.failed(hop.status, reason="RuntimeError", now=format_time(now), error=error)
    return divert(hop, names.SINK, failed, why="CannotPause")


def kept(hop: Hop, *, now: datetime) -> Envelope:
    """The envelope to keep: its route shifted towards x-resume, its pause and the time it has left in `x-asya-pause`.

    The deadline stands still from here on: what was left of it counts again from the moment it is resumed.
    """
    route = hop.envelope.route
    ahead = route.next if route.next[:1] == (names.RESUME,) else (names.RESUME, *route.next)
    at = format_time(now)
    asked = _asked(hop.spec)
    deadline = hop.deadline
    pause = PauseHeader(
        epoch=route.position,
        paused_at=at,
        prompt=asked.prompt,
        fields=asked.fields,
        remaining=None if deadline is None else max(0.0, (deadline - now).total_seconds()),
    )
    envelope = replace(
        hop.envelope,
        route=route.shifted(ahead),
        status=status.ended(hop.status, phase="paused", reason="Paused", now=at),
    )
    return envelope.with_headers(
        {headers.PAUSE: pause, headers.FIRST_ATTEMPT: None, headers.NOT_BEFORE: None, headers.RESUME_INPUT: None}
    )


def pause_of(envelope: Envelope) -> PauseHeader | None:
    """The pause that an envelope comes from; None if from none.

    Raises:
        ParseError: if its header is no such thing.
    """
    raw = envelope.headers.get(headers.PAUSE)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=PauseHeader | None)
    except msgspec.MsgspecError as error:
        raise ParseError(f"headers.{headers.PAUSE}: {error}", envelope.id) from None


def paused(hop: Hop, pause: PauseHeader) -> TaskEvent:
    """The report of a pause; repeated, it is the same."""
    envelope = hop.envelope
    data = EventData(
        actor=hop.actor,
        route=envelope.route,
        attempt=hop.attempt,
        deadline_at=hop.status.deadline_at,
        prompt=pause.prompt,
        fields=pause.fields,
    )
    return TaskEvent(
        id=envelope.id,
        status="paused",
        at=pause.paused_at,
        generation=envelope.generation,
        position=pause.epoch,
        attempt=hop.attempt,
        parent_id=envelope.parent_id,
        root_id=envelope.root_id,
        data=data,
    )


def _asked(spec: Actor) -> Pause:
    return spec.pause or Pause()
