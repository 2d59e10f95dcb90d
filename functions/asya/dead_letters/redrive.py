"""Redriving a dead letter: whether its task may be reopened, and what is sent then (`protocol §12`)."""

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

# What has ended, or only rests, lies in a dead-letter queue because its end could not be written down: nothing is to run again.
_AT_REST = frozenset({"succeeded", "failed", "canceled", "paused"})

_Count = Annotated[int, msgspec.Meta(ge=0)]


class SliceOf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which slice of which set, opened by whom, an envelope is."""

    set_id: str
    slice_index: _Count
    origin_id: str


class Reopening(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an operator asks for: the dead letter's generation and position, and which slice it is, if it is one.

    Attributes:
        force: also if the task succeeded, was canceled, or goes on elsewhere.
    """

    generation: _Count = 0
    position: _Count = 0
    slice: SliceOf | None = None
    force: bool = False


class Reopened(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: the generation that the dead letter is to be sent in."""

    id: str
    generation: int


def read_reopening(body: bytes) -> Reopening:
    """Read the request `POST /api/v1/mesh/{id}/reopen`.

    Raises:
        ApiError: 400 naming the field.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=Reopening)
    except msgspec.ValidationError as error:
        place = str(error).partition(" - at `$.")[2]
        raise ApiError(400, "invalid_field", str(error), place.rstrip("`") or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "invalid_json", f"the body is no JSON: {error}") from None


def reopen(record: TaskRecord, hops: HopFold, asked: Reopening, *, now: datetime) -> TaskRecord:
    """The record to redrive in; the record as it is if that has been done before, and the message was not sent or deleted.

    Args:
        hops: of the record's generation.

    Raises:
        ApiError: 409, saying why the task is better left alone.
    """
    task = f"task {record.id!r}"
    if is_overdue(replace(record, status="running"), now):
        problem = f"the deadline of {task} has passed ({record.deadline_at}); replay it: that gives it a new one"
        raise ApiError(409, "deadline_passed", problem)
    if not record.is_terminal and record.generation > asked.generation:
        return record
    if not asked.force:
        _check_idle(record, hops, asked)
    generation = max(record.generation, asked.generation) + 1
    if generation > GENERATION_LIMIT:
        raise ApiError(409, "too_many_generations", f"{task} has been redriven {record.generation} times")
    return reopened(record, generation, at=format_time(now))


def _check_idle(record: TaskRecord, hops: HopFold, asked: Reopening) -> None:
    task = f"task {record.id!r}"
    if record.status in ("succeeded", "canceled"):
        where = f" in generation {record.generation}" if record.generation else ""
        problem = f"{task} was {record.status}" if record.status == "canceled" else f"{task} succeeded"
        raise ApiError(409, record.status, f"{problem}{where}; only by force it runs again")
    if record.status == "paused":
        raise ApiError(409, "paused", f"{task} is paused; only by force it runs again from the dead letter")
    latest = hops.latest
    if not record.is_terminal and latest is not None and latest.position > asked.position:
        problem = (
            f"{task} went on from the dead letter's hop {asked.position} and is at {latest.actor!r} (hop {latest.position}); "
            "only by force it runs from there again"
        )
        raise ApiError(409, "running", problem)


def check_set(asked: SliceOf, state: SetState | None) -> None:
    """Whether a set still has room for the result of a slice. No force helps: there is nowhere the result could go.

    Args:
        state: of the set; None if nothing is known of it (any more).

    Raises:
        ApiError: 409 if the set is closed.
    """
    if state is None or state.decision is None:
        return
    awaited = asked.slice_index == ORIGIN and not state.delivered and state.decision.how != "gone"
    if not awaited:
        problem = f"it is slice {asked.slice_index} of a set that is closed ({state.decision.how})"
        problem += f"; replay its origin {asked.origin_id!r}"
        raise ApiError(409, "set_closed", problem)


def is_at_rest(envelope: Envelope) -> bool:
    """Whether only its end is to be written down: it is sent again as it is, in its generation, and no task is reopened."""
    return envelope.status is not None and envelope.status.phase in _AT_REST


def is_past_deadline(envelope: Envelope, now: datetime) -> bool:
    """Whether it would only be ended by the first actor that sees it (`protocol §5.3`)."""
    deadline = envelope.status.deadline_at if envelope.status else None
    return deadline is not None and parse_time(deadline) <= now


def redriven(envelope: Envelope, generation: int, *, now: datetime) -> Envelope:
    """The dead letter as it is sent again: the same hop in a new generation, whose attempts start with the first.

    The deadline stays (`protocol §2`), and so does the error that a `then_route` handler is to read.
    """
    was = envelope.status
    fresh = None
    if was is not None:
        routed = was.phase == "pending"
        fresh = status.Status(
            phase="pending",
            reason=was.reason if routed else None,
            actor=was.actor or envelope.route.curr,
            attempt=1,
            max_attempts=1,
            created_at=was.created_at,
            updated_at=format_time(now),
            deadline_at=was.deadline_at,
            error=was.error if routed else None,
        )
    return replace(envelope, status=fresh).with_headers(
        {headers.GENERATION: generation, headers.FIRST_ATTEMPT: None, headers.NOT_BEFORE: None}
    )
