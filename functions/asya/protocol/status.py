"""The status block of an envelope, and its transitions (`protocol §2`)."""

from typing import Annotated, Literal, cast, get_args

import msgspec

from asya.protocol import states
from asya.protocol.errors import ErrorInfo
from asya.protocol.states import Phase

Reason = Literal[
    "Completed",
    "RuntimeError",
    "Timeout",
    "ParseError",
    "RouteMismatch",
    "PolicyExhausted",
    "PolicyRouted",
    "CircuitOpen",
    "RuntimeCrash",
    "DeliveryExhausted",
    "SparkJobFailed",
    "FanInTimeout",
    "SliceFailed",
    "MaxHops",
    "MaxChildren",
    "Canceled",
    "Paused",
]
REASONS: frozenset[str] = frozenset(get_args(Reason))


def known_reason(text: str | None) -> Reason:
    """The reason of a failure as it was reported; `RuntimeError` for a text that is no reason."""
    return cast(Reason, text) if text in REASONS else "RuntimeError"


# Keys have six digits for an attempt.
_Count = Annotated[int, msgspec.Meta(ge=1, le=999_999)]


class Status(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A status: possibly partial as received, complete as stamped by a sidecar.

    Times are RFC 3339 text, so every hop carries them unchanged.
    """

    phase: Phase | None = None
    reason: str | None = None
    actor: str | None = None
    attempt: _Count | None = None
    max_attempts: _Count | None = None
    created_at: str | None = None
    updated_at: str | None = None
    deadline_at: str | None = None
    error: ErrorInfo | None = None


def created(actor: str, at: str | None, deadline_at: str | None = None) -> Status:
    """The status of a new task at the gateway (`protocol §2`, creation)."""
    return Status(
        phase=states.PENDING,
        actor=actor,
        attempt=1,
        max_attempts=1,
        created_at=at,
        updated_at=at,
        deadline_at=deadline_at,
    )


def end_phase(status: Status | None) -> Phase:
    """The phase of an envelope at its end: success unless its status names a phase."""
    return (status.phase if status is not None else None) or states.SUCCEEDED


def started(received: Status | None, *, actor: str, now: str, sent_at: str, max_attempts: int) -> Status:
    """The status at the start of a hop. It completes a missing or partial status.

    Args:
        received: the received status; None if the envelope had none.
        sent_at: the time at which the message was sent; the default of `created_at`.
        max_attempts: the limit of the actor's default policy. A retry keeps its attempt and the limit of its own policy.
    """
    before = received or Status()
    retrying = before.phase == states.RETRYING
    return Status(
        phase=states.PROCESSING,
        actor=actor,
        attempt=(before.attempt or 1) if retrying else 1,
        max_attempts=(before.max_attempts or max_attempts) if retrying else max_attempts,
        created_at=before.created_at or sent_at,
        updated_at=now,
        deadline_at=before.deadline_at,
        # The handler of a then_route reads this error; its success clears the error.
        error=before.error,
    )


def routed(status: Status, *, actor: str, now: str) -> Status:
    """The status after ordinary routing: pending at the next actor, attempt 1, without error and reason."""
    return Status(
        phase=states.PENDING,
        actor=actor,
        attempt=1,
        max_attempts=1,
        created_at=status.created_at,
        updated_at=now,
        deadline_at=status.deadline_at,
    )


def succeeded(status: Status, *, now: str) -> Status:
    """The status of success: it keeps the attempt and clears the error."""
    return msgspec.structs.replace(status, phase=states.SUCCEEDED, reason="Completed", updated_at=now, error=None)


def failed(status: Status, *, reason: Reason, now: str, error: ErrorInfo | None) -> Status:
    """The status of a final failure: it keeps the attempt and carries the error."""
    return msgspec.structs.replace(status, phase=states.FAILED, reason=reason, updated_at=now, error=error)


def ended(status: Status, *, phase: Phase, reason: Reason, now: str) -> Status:
    """The status of another end: canceled or paused."""
    return msgspec.structs.replace(status, phase=phase, reason=reason, updated_at=now)


def retrying(status: Status, *, now: str, error: ErrorInfo) -> Status:
    """The status of a retry: the next attempt, with the error of the failed one."""
    return msgspec.structs.replace(
        status, phase=states.RETRYING, reason=None, attempt=(status.attempt or 1) + 1, updated_at=now, error=error
    )


def policy_routed(status: Status, *, actor: str, now: str, error: ErrorInfo) -> Status:
    """The status for the first actor of a policy's `then_route`, which can read the error (`protocol §8`)."""
    return Status(
        phase=states.PENDING,
        reason="PolicyRouted",
        actor=actor,
        attempt=1,
        max_attempts=1,
        created_at=status.created_at,
        updated_at=now,
        deadline_at=status.deadline_at,
        error=error,
    )
