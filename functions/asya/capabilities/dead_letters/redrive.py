"""Redrives a dead letter: reopens its task and builds the envelope of the next generation (`protocol §12`)."""

from dataclasses import dataclass
from datetime import datetime

import msgspec
from msgspec.structs import replace

from asya.capabilities.dead_letters.letters import DeadLetter
from asya.capabilities.fan_in.sets import ORIGIN, SetState
from asya.protocol import headers, states, status
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import GENERATION_LIMIT, Envelope
from asya.protocol.hops import HopFold
from asya.protocol.slices import slice_header
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import reopened
from asya.protocol.times import format_time, parse_time
from asya.tasks.view import is_overdue


@dataclass(frozen=True, slots=True)
class SliceOf:
    """Identifies a slice by its set, index and origin."""

    set_id: str
    slice_index: int
    origin_id: str


@dataclass(frozen=True, slots=True)
class Reopening:
    """What a redrive knows of its dead letter: generation and position, and its place in a set if it is a slice.

    Attributes:
        letter: its SQS message id.
        force: reopen the task even if it succeeded, is canceled or paused, runs at a later position, or was redriven from
            another dead letter since.
    """

    generation: int = 0
    position: int = 0
    slice: SliceOf | None = None
    letter: str | None = None
    force: bool = False


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """The response: the id of the envelope, and the generation in which it was sent.

    Attributes:
        id: None for a message that is no envelope.
        generation: None if the message was sent unchanged.
    """

    id: str | None
    generation: int | None


def reopening_of(envelope: Envelope, letter: str, *, force: bool) -> Reopening:
    """The reopening that the dead letter of an envelope asks for.

    Args:
        letter: its SQS message id.
    """
    return Reopening(envelope.generation, envelope.route.position, _slice_of(envelope), letter, force)


def reopen(
    record: TaskRecord, hops: HopFold, reopening: Reopening, *, now: datetime, by: str | None = None
) -> TaskRecord:
    """The reopened record; an unchanged record if an earlier redrive has reopened it without deleting the dead letter.

    Args:
        hops: the hops of the record's generation.
        by: the principal that redrives it.

    Raises:
        ApiError: 409 with the reason against the redrive.
    """
    task = f"task {record.id!r}"
    if is_overdue(replace(record, status=states.RUNNING), now):
        problem = f"the deadline of {task} has passed ({record.deadline_at}); replay it: that gives it a new one"
        raise ApiError(409, "deadline_passed", problem)
    is_of_this_letter = record.letter in (None, reopening.letter)
    if not record.is_terminal and record.generation > reopening.generation and is_of_this_letter:
        return record
    if not reopening.force:
        if record.generation > reopening.generation and not is_of_this_letter:
            problem = (
                f"{task} is in generation {record.generation} since another dead letter of it was redriven, and this one is of "
                f"generation {reopening.generation}; use `--force` to run it again from this one"
            )
            raise ApiError(409, "redriven", problem)
        _check_idle(record, hops, reopening)
    generation = max(record.generation, reopening.generation) + 1
    if generation > GENERATION_LIMIT:
        raise ApiError(409, "too_many_generations", f"{task} has been redriven {record.generation} times")
    return reopened(record, generation, at=format_time(now), by=by, letter=reopening.letter)


def _check_idle(record: TaskRecord, hops: HopFold, reopening: Reopening) -> None:
    task = f"task {record.id!r}"
    if record.status in (states.SUCCEEDED, states.CANCELED):
        where = f" in generation {record.generation}" if record.generation else ""
        problem = f"{task} was {record.status}" if record.is_canceled else f"{task} succeeded"
        raise ApiError(409, record.status, f"{problem}{where}; use `--force` to run it again")
    if record.is_paused:
        raise ApiError(409, "paused", f"{task} is paused; use `--force` to run it again from the dead letter")
    latest = hops.latest
    if not record.is_terminal and latest is not None and latest.position > reopening.position:
        problem = (
            f"{task} has left the dead letter's hop {reopening.position} and is at {latest.actor!r} (hop {latest.position}); "
            "use `--force` to run it again from the dead letter"
        )
        raise ApiError(409, "running", problem)


def check_set_is_open(place: SliceOf, state: SetState | None) -> None:
    """Check that a set still takes the result of a slice; `force` cannot override this check.

    Args:
        state: the state of the set; None if it is unknown or has expired.

    Raises:
        ApiError: 409 if the set is closed.
    """
    if state is None or state.decision is None:
        return
    awaited = place.slice_index == ORIGIN and not state.delivered and state.decision.how != "gone"
    if not awaited:
        problem = f"it is slice {place.slice_index} of a set that is closed ({state.decision.how})"
        problem += f"; replay its origin {place.origin_id!r}"
        raise ApiError(409, "set_closed", problem)


def is_at_rest(envelope: Envelope) -> bool:
    """Whether the envelope has ended or is paused; it is sent again unchanged, and no task is reopened."""
    # Only the end of such an envelope could not be recorded.
    return envelope.status is not None and envelope.status.phase in states.AT_REST


def is_past_deadline(envelope: Envelope, now: datetime) -> bool:
    """Whether the deadline has passed, so that the next actor would end the envelope (`protocol §5.3`)."""
    deadline = envelope.status.deadline_at if envelope.status else None
    return deadline is not None and parse_time(deadline) <= now


def redriven_envelope(letter: DeadLetter, envelope: Envelope, generation: int, *, now: datetime) -> Envelope:
    """The envelope to send: the same hop in a new generation, at its first attempt.

    The deadline stays (`protocol §2`), and so does the error that a `then_route` handler reads. An envelope without a status
    has passed no sidecar. It gets its first status and its owner here, because the gateway sends it in place of its sender.
    """
    received = envelope.status
    if received is None:
        new_status = status.created(letter.actor, format_time(letter.arrival.sent_at))
        envelope = envelope.with_headers({headers.OWNER: letter.arrival.sender or None})
    else:
        is_pending = received.phase == states.PENDING
        new_status = status.Status(
            phase=states.PENDING,
            reason=received.reason if is_pending else None,
            actor=received.actor or envelope.route.curr,
            attempt=1,
            max_attempts=1,
            created_at=received.created_at,
            updated_at=format_time(now),
            deadline_at=received.deadline_at,
            error=received.error if is_pending else None,
        )
    return replace(envelope, status=new_status).with_headers(
        {headers.GENERATION: generation, headers.FIRST_ATTEMPT: None, headers.NOT_BEFORE: None}
    )


def _slice_of(envelope: Envelope) -> SliceOf | None:
    try:
        header = slice_header(envelope)
    except ValueError:
        return None
    if header is None:
        return None
    return SliceOf(header.set_id, header.slice_index, header.origin_id)
