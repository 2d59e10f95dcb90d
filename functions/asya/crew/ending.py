"""What x-sink passes on of an envelope that ended (`protocol §11`)."""

from datetime import datetime

from msgspec.structs import replace

from asya.messaging.delivery import Delivery
from asya.protocol import headers, ids, names, status
from asya.protocol.codec import encode
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import Sink
from asya.protocol.route import Route
from asya.protocol.times import format_time

CLAIMED_PHASES = frozenset({"succeeded", "failed", "canceled"})
_HOOKED_PHASES = frozenset({"succeeded", "failed"})
_ENDS_WITH_THE_ROUTE = (headers.FIRST_ATTEMPT, headers.NOT_BEFORE, headers.PAUSE, headers.FAN_IN, headers.SUFFIXED_AT)


def with_end_status(envelope: Envelope, *, sent_at: datetime, now: datetime) -> Envelope:
    """An envelope that somebody sent straight to x-sink has no end yet: it ended well here."""
    was = envelope.status
    if was is not None and was.phase in CLAIMED_PHASES | {"paused"}:
        return envelope
    at = format_time(now)
    started = status.started(was, actor=names.SINK, now=at, sent_at=format_time(sent_at), max_attempts=1)
    return replace(envelope, status=status.succeeded(started, now=at))


def passed_on(envelope: Envelope, sink: Sink) -> tuple[Delivery, ...]:
    """A copy for each hook, then, if it failed, the envelope itself for x-sump."""
    phase = envelope.status.phase if envelope.status else None
    deliveries: list[Delivery] = []
    # A hook's own run triggers none: it would never end.
    wants_hooks = (
        not is_hook_copy(envelope)
        and not _is_internal(envelope)
        and (envelope.parent_id is None or sink.hooks_for_children)
    )
    if phase in _HOOKED_PHASES and wants_hooks:
        deliveries += [Delivery(hook, encode(_hook_copy(envelope, hook)), "next") for hook in sink.hooks]
    if phase == "failed":
        deliveries.append(Delivery(names.SUMP, encode(envelope), "sump"))
    return tuple(deliveries)


def end_actor_failure(
    envelope: Envelope, reason: status.Reason, error: ErrorInfo, *, actor: str, sent_at: datetime, now: datetime
) -> Delivery:
    """A user's own end actor failed on this envelope: it goes to x-sump as it came."""
    at = format_time(now)
    was = status.started(envelope.status, actor=actor, now=at, sent_at=format_time(sent_at), max_attempts=1)
    ended = status.failed(was, reason=reason, now=at, error=error)
    return Delivery(names.SUMP, encode(replace(envelope, status=ended)), "sump")


def is_reported(envelope: Envelope) -> bool:
    """Whether x-sink reports this end.

    The task already knows that it was canceled or paused. A child does not know that its root was canceled.
    """
    phase = envelope.status.phase if envelope.status else None
    return phase in ("succeeded", "failed") or (phase == "canceled" and envelope.root_id is not None)


def is_hook_copy(envelope: Envelope) -> bool:
    """Whether this is the run of a hook; such an envelope ends silently, or in x-sump if it failed."""
    return headers.HOOK in envelope.headers


def _is_internal(envelope: Envelope) -> bool:
    """Whether the mesh sent it to itself: users' hooks expect users' payloads."""
    return names.INDEX in (*envelope.route.prev, envelope.route.curr)


def _hook_copy(envelope: Envelope, hook: str) -> Envelope:
    """The envelope as it ended, at the start of a route of its own: the error is there to be read, no deadline hurries it."""
    was = envelope.status
    at = was.updated_at if was else None
    copy = replace(
        envelope,
        id=ids.hook_id(envelope.id, envelope.generation, hook),
        parent_id=envelope.id,
        route=Route((), hook, ()),
        status=status.Status(
            phase="pending",
            actor=hook,
            attempt=1,
            max_attempts=1,
            created_at=at,
            updated_at=at,
            error=was.error if was else None,
        ),
    )
    return copy.with_headers(dict.fromkeys(_ENDS_WITH_THE_ROUTE) | {headers.HOOK: hook, headers.MESH_STATUS: "off"})
