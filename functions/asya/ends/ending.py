"""The end of an envelope: its status, its report and the copies that x-sink sends (`protocol §11`)."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from asya.function.hop import Delivery
from asya.protocol import headers, ids, names, states, status
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import UNKNOWN_HOP, Envelope, Route
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import COUNT_LIMIT
from asya.protocol.mesh_table import MeshTable, Sink
from asya.protocol.times import format_time

# The report of an end may wait for 28 days, and its time be 31 days old (`protocol §5`, report times).
CLAIM_AGE_LIMIT = timedelta(days=3)
_HOOKED_PHASES = frozenset({states.SUCCEEDED, states.FAILED})
_ENDS_WITH_THE_ROUTE = (headers.FIRST_ATTEMPT, headers.NOT_BEFORE, headers.PAUSE, headers.FAN_IN)


def with_end_status(envelope: Envelope, *, sent_at: datetime, now: datetime, actor: str = names.SINK) -> Envelope:
    """The envelope with the status of its end: one without an end succeeds at `actor`, x-sink or a user's end actor."""
    received = envelope.status
    if received is not None and received.phase in states.AT_REST:
        return envelope
    at = format_time(now)
    started = status.started(received, actor=actor, now=at, sent_at=format_time(sent_at), max_attempts=1)
    return replace(envelope, status=status.succeeded(started, now=at))


def as_canceled(envelope: Envelope, at: datetime) -> Envelope:
    """The envelope with the end of a task that was canceled while it was on its way (`protocol §11.sink.canceled`)."""
    received = envelope.status or status.Status()
    return replace(
        envelope, status=status.ended(received, phase=states.CANCELED, reason="Canceled", now=format_time(at))
    )


def copies(envelope: Envelope, sink: Sink) -> tuple[Delivery, ...]:
    """The copies that x-sink sends: one for each hook, and a failed envelope for x-sump."""
    phase = envelope.status.phase if envelope.status else None
    deliveries: list[Delivery] = []
    # The end of a hook's run triggers no hook; otherwise hooks would run forever.
    triggers_hooks = (
        not is_hook_copy(envelope)
        and not _is_internal(envelope)
        and (envelope.parent_id is None or sink.hooks_for_children)
    )
    if phase in _HOOKED_PHASES and triggers_hooks:
        deliveries += [Delivery(hook, encode(_hook_copy(envelope, hook)), "next") for hook in sink.hooks]
    if phase == states.FAILED:
        deliveries.append(Delivery(names.SUMP, encode(envelope), "sump"))
    return tuple(deliveries)


def end_position(envelope: Envelope) -> int:
    """The number of hops done at an end; beyond every pause if the hop is unknown."""
    return COUNT_LIMIT if envelope.route == UNKNOWN_HOP else envelope.route.position


def report_time(claimed_at: datetime | None, now: datetime) -> datetime:
    """The time of the report of an end: that of its claim, also if the report is repeated later (`protocol §11`).

    Args:
        claimed_at: None if the time of the claim is unknown.
    """
    return now if claimed_at is None else max(claimed_at, now - CLAIM_AGE_LIMIT)


def leaves_as_child(envelope: Envelope, holder_generation: int, mesh: MeshTable) -> bool:
    """Whether an end that another phase of its envelope refused, or that is stale, leaves as a failed child (`protocol §11`).

    The id has ended in another way or paused further on, so frame 0 of the failed hop has left, and its other frames may be
    missing. A hop with one frame has none: its failure is that of a late duplicate.

    Args:
        holder_generation: the generation of the end or pause that holds.
    """
    phase = envelope.status.phase if envelope.status else None
    is_of_holder = holder_generation == envelope.generation
    return phase == states.FAILED and is_of_holder and not _gives_one_frame(envelope, mesh)


def failed_child(envelope: Envelope) -> Envelope:
    """The failed child of a hop whose frame 0 has left: its slice header has left with that frame (`protocol §6`)."""
    child = ids.child_id(envelope.id, envelope.generation, envelope.route.position, "error")
    root = envelope.root_id or envelope.id
    return replace(envelope, id=child, parent_id=envelope.id).with_headers({headers.ROOT: root, headers.FAN_IN: None})


def _gives_one_frame(envelope: Envelope, mesh: MeshTable) -> bool:
    """Whether the actor at which an envelope failed gives one frame; an unknown actor may give several."""
    actor = envelope.status.actor if envelope.status else None
    spec = mesh.actors.get(actor or "")
    if spec is None:
        return False
    return spec.gives_one_frame if spec.kind in ("handler", "spark") else True


def end_actor_failure(
    envelope: Envelope, reason: status.Reason, error: ErrorInfo, *, actor: str, sent_at: datetime, now: datetime
) -> Delivery:
    """Send an envelope to x-sump on which a user's end actor failed, with its route and payload as received."""
    at = format_time(now)
    started = status.started(envelope.status, actor=actor, now=at, sent_at=format_time(sent_at), max_attempts=1)
    failed = status.failed(started, reason=reason, now=at, error=error)
    return Delivery(names.SUMP, encode(replace(envelope, status=failed)), "sump")


def without_payload(envelope: Envelope, error: ParseError, *, sent_at: datetime, now: datetime) -> Delivery:
    """Send an envelope whose stored payload is gone from x-sink to x-sump; a failed one keeps its own reason."""
    if envelope.has_failed:
        return Delivery(names.SUMP, encode(envelope), "sump")
    info = ErrorInfo(type="ParseError", message=str(error))
    return end_actor_failure(envelope, "ParseError", info, actor=names.SINK, sent_at=sent_at, now=now)


def is_reported(envelope: Envelope) -> bool:
    """Whether x-sink reports this end.

    The gateway knows that a task was canceled or paused. It does not know which children a canceled root stopped.
    """
    phase = envelope.status.phase if envelope.status else None
    return phase in (states.SUCCEEDED, states.FAILED) or (phase == states.CANCELED and envelope.root_id is not None)


def is_hook_copy(envelope: Envelope) -> bool:
    """Whether the envelope is a hook's copy; x-sink does not store its end."""
    return headers.HOOK in envelope.headers


def _is_internal(envelope: Envelope) -> bool:
    """Whether the mesh sent the envelope to itself; hooks expect users' payloads."""
    return names.INDEX in (*envelope.route.prev, envelope.route.curr)


def _hook_copy(envelope: Envelope, hook: str) -> Envelope:
    """The envelope for a hook: a route of its own, the error to read, no deadline and no reports."""
    final_status = envelope.status
    at = final_status.updated_at if final_status else None
    copy = replace(
        envelope,
        id=ids.hook_id(envelope.id, envelope.generation, hook),
        parent_id=envelope.id,
        route=Route((), hook, ()),
        status=replace(status.created(hook, at), error=final_status.error if final_status else None),
    )
    return copy.with_headers(dict.fromkeys(_ENDS_WITH_THE_ROUTE) | {headers.HOOK: hook, headers.MESH_STATUS: "off"})
