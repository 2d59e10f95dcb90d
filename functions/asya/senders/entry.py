"""How a message of a sender outside enters the mesh: what is removed, and which ids it may not have (`protocol §4.entry`)."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from msgspec import Raw
from msgspec.structs import replace

from asya.function.claim_check import read_reference
from asya.function.hop import Arrival
from asya.protocol import headers, ids, status
from asya.protocol.codec import ParseError, encode, readable_headers
from asya.protocol.envelope import NO_UNKNOWN_MEMBERS, NULL, UNKNOWN_HOP, Envelope
from asya.protocol.keys import INBOX_PREFIX
from asya.protocol.mesh_table import Retention
from asya.protocol.times import deadline_after, format_time, parse_time

_KEPT = headers.PRODUCER_HEADERS | {headers.TRACEPARENT, headers.TRACESTATE, headers.PAYLOAD_REF}
TAKEN_ID = "id: another sender, or the mesh itself, has a task of this id; choose one of your own, such as a new UUID"
RESERVED_ID = (
    "id: only the mesh gives out UUIDs of version 8, with and without numbers; choose one of your own, such as a UUID version 4, "
    "or let an operator redrive or replay the task"
)
ENDS_ARE_OF_THE_MESH = "only roles of the mesh send ends to this queue; start the task at an actor"


def user_headers(members: Mapping[str, Raw]) -> dict[str, Raw]:
    """The headers that a sender outside may set: its own, and the managed ones of producers and of the transport."""
    return {name: raw for name, raw in members.items() if name in _KEPT or not headers.is_managed(name)}


def bears_state(envelope: Envelope) -> bool:
    """Whether an envelope bears what only the mesh writes, so that it loses something when it enters."""
    own = envelope.status
    is_bare = own is None or own == status.Status(deadline_at=own.deadline_at)
    return envelope.parent_id is not None or not is_bare or len(user_headers(envelope.headers)) < len(envelope.headers)


def starting(envelope: Envelope) -> Envelope:
    """The envelope of a new task, which says nothing about another one: without parent and managed headers."""
    return replace(envelope, parent_id=None, headers=user_headers(envelope.headers))


def entering(envelope: Envelope, actor: str, owner: str, sent_at: datetime) -> Envelope:
    """The first envelope of a task: without parent, root, status and managed headers, but with its deadline and its owner.

    A deadline is at most as late as the gateway takes one.

    Args:
        actor: the actor on whose queue the message lay; its sender has written the route.
        owner: the principal that sent the message.
        sent_at: the time at which the message was sent, which is the creation of the task.
    """
    deadline_at = envelope.status.deadline_at if envelope.status is not None else None
    latest = deadline_after(sent_at)
    if deadline_at is not None and parse_time(deadline_at) > latest:
        deadline_at = format_time(latest)
    return replace(
        starting(envelope),
        status=status.created(actor, format_time(sent_at), deadline_at),
        status_extra=NO_UNKNOWN_MEMBERS,
    ).with_headers({headers.OWNER: owner or None})


def end_of_claim(envelope: Envelope, now: datetime, retention: Retention) -> datetime | None:
    """How long the sender keeps the id: as long as anything may live that the id names; None for ever.

    The task ends at its deadline, or as long after it as a record lives without a write. What it leaves then lives for
    its own retention. A deadline counts up to the longest timeout.
    """
    if retention.results is None:
        return None
    longest = max(retention.tasks, retention.payloads, retention.runs, retention.results)
    deadline_at = envelope.status.deadline_at if envelope.status is not None else None
    deadline = parse_time(deadline_at) if deadline_at is not None else now
    return min(max(now, deadline), deadline_after(now)) + timedelta(seconds=retention.tasks + longest)


def enter(
    arrival: Arrival, actor: str, claim: Callable[[Envelope], bool], with_key: Callable[[Envelope, str], Envelope]
) -> Arrival:
    """The message of a sender outside as the first envelope of a task, or as refused. A refused one keeps its body.

    Args:
        actor: the actor on whose queue the message lay.
        claim: takes the id of an envelope for this sender; False if it is another sender's.
        with_key: gives an envelope the key of the task that it starts, from the SQS message id.
    """
    new = replace(arrival, is_new=True)
    try:
        envelope = entering(arrival.envelope(), actor, arrival.sender, arrival.sent_at)
        _check_reference(envelope, actor)
    except ParseError as error:
        return replace(new, refusal=_with_own_id(error, claim))
    # A legacy message without an id has one that derives from its own, and so no other message.
    is_derived = envelope.id == ids.id_of_message(arrival.message_id)
    refusal = None if is_derived else refusal_of(envelope, claim)
    if refusal is not None:
        return replace(new, refusal=refusal)
    return replace(new, body=encode(with_key(envelope, arrival.message_id)))


def refuse(arrival: Arrival, problem: str) -> Arrival:
    """The message of a sender outside on a queue that takes none, or that of a sender that may not say what it says."""
    return replace(arrival, is_new=True, refusal=ParseError(problem))


def kept_headers(arrival: Arrival) -> dict[str, Raw]:
    """The headers of an unreadable message, as far as they can be read and its sender may set them (`protocol §5.1`)."""
    members = readable_headers(arrival.body)
    return user_headers(members) if arrival.is_new else members


def refusal_of(envelope: Envelope, claim: Callable[[Envelope], bool]) -> ParseError | None:
    """Why a task may not start under the id of an envelope; None if it may.

    Args:
        claim: takes the id of an envelope for its sender; False if it is another sender's.
    """
    if ids.is_reserved(envelope.id):
        return ParseError(RESERVED_ID)
    return None if claim(envelope) else ParseError(TAKEN_ID)


def _check_reference(envelope: Envelope, actor: str) -> None:
    """Check that the reference to a payload leads to the inbox of its actor: all else belongs to other envelopes.

    x-sink reads the payloads of all actors, and gets an envelope whose deadline has passed with its reference.
    """
    raw = envelope.headers.get(headers.PAYLOAD_REF)
    if raw is not None and not read_reference(raw, envelope.id, actor).key.startswith(INBOX_PREFIX):
        problem = f"headers.{headers.PAYLOAD_REF}: a sender outside stores payloads under {INBOX_PREFIX} only"
        raise ParseError(problem, envelope.id)


def _with_own_id(error: ParseError, claim: Callable[[Envelope], bool]) -> ParseError:
    """The error, with the id of the message only if the sender may have that id."""
    if error.envelope_id is not None:
        probe = Envelope(id=error.envelope_id, route=UNKNOWN_HOP, payload=NULL)
        if refusal_of(probe, claim) is not None:
            error.envelope_id = None
    return error
