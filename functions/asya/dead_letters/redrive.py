"""Redrives a dead letter: reopens its task and builds the envelope of the next generation (`protocol §12`)."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec.structs import replace

from asya.fan_in.sets import ORIGIN, SetState
from asya.protocol import headers, status
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import GENERATION_LIMIT, Envelope
from asya.protocol.hops import HopFold
from asya.protocol.task import TaskRecord, reopened
from asya.protocol.times import format_time, parse_time
from asya.tasks.view import is_overdue

# Only the end of such an envelope could not be recorded. Nothing runs again.
_AT_REST = frozenset({"succeeded", "failed", "canceled", "paused"})

_Count = Annotated[int, msgspec.Meta(ge=0)]


class SliceOf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Identifies a slice by its set, index and origin."""

    set_id: str
    slice_index: _Count
    origin_id: str


class Reopening(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The request of an operator: the generation and position of the dead letter, and its slice if it is one.

    Attributes:
        force: reopen the task even if it succeeded, is canceled or paused, or runs at a later position.
    """

    generation: _Count = 0
    position: _Count = 0
    slice: SliceOf | None = None
    force: bool = False


class Reopened(msgspec.Struct, frozen=True, kw_only=True):
    """The response: the generation in which to send the dead letter."""

    id: str
    generation: int


def read_reopen_request(body: bytes) -> Reopening:
    """Read the request `POST /api/v1/mesh/{id}/reopen`.

    Raises:
        ApiError: 400 with the field at fault.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=Reopening)
    except msgspec.ValidationError as error:
        place = str(error).partition(" - at `$.")[2]
        raise ApiError(400, "invalid_field", str(error), place.rstrip("`") or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "invalid_json", f"the body is no JSON: {error}") from None


def reopen(record: TaskRecord, hops: HopFold, reopening: Reopening, *, now: datetime) -> TaskRecord:
    """The reopened record; an unchanged record if an earlier redrive has reopened it without deleting the dead letter.

    Args:
        hops: the hops of the record's generation.

    Raises:
        ApiError: 409 with the reason against the redrive.
    """
    task = f"task {record.id!r}"
    if is_overdue(replace(record, status="running"), now):
        problem = f"the deadline of {task} has passed ({record.deadline_at}); replay it: that gives it a new one"
        raise ApiError(409, "deadline_passed", problem)
    if not record.is_terminal and record.generation > reopening.generation:
        return record
    if not reopening.force:
        _check_idle(record, hops, reopening)
    generation = max(record.generation, reopening.generation) + 1
    if generation > GENERATION_LIMIT:
        raise ApiError(409, "too_many_generations", f"{task} has been redriven {record.generation} times")
    return reopened(record, generation, at=format_time(now))


def _check_idle(record: TaskRecord, hops: HopFold, reopening: Reopening) -> None:
    task = f"task {record.id!r}"
    if record.status in ("succeeded", "canceled"):
        where = f" in generation {record.generation}" if record.generation else ""
        problem = f"{task} was {record.status}" if record.status == "canceled" else f"{task} succeeded"
        raise ApiError(409, record.status, f"{problem}{where}; use `--force` to run it again")
    if record.status == "paused":
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
    return envelope.status is not None and envelope.status.phase in _AT_REST


def is_past_deadline(envelope: Envelope, now: datetime) -> bool:
    """Whether the deadline has passed, so that the next actor would end the envelope (`protocol §5.3`)."""
    deadline = envelope.status.deadline_at if envelope.status else None
    return deadline is not None and parse_time(deadline) <= now


def redriven_envelope(envelope: Envelope, generation: int, *, now: datetime) -> Envelope:
    """The envelope to send: the same hop in a new generation, at its first attempt.

    The deadline stays (`protocol §2`), and so does the error that a `then_route` handler reads.
    """
    received = envelope.status
    new_status = None
    if received is not None:
        is_pending = received.phase == "pending"
        new_status = status.Status(
            phase="pending",
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
