"""The status block: where an envelope stands in its life (`protocol §2`)."""

from typing import Annotated, Literal, get_args

import msgspec

from asya.protocol.errors import ErrorInfo

Phase = Literal["pending", "processing", "retrying", "succeeded", "failed", "paused", "canceled"]
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
    "Canceled",
    "Paused",
]
REASONS: frozenset[str] = frozenset(get_args(Reason))
TERMINAL_PHASES: frozenset[str] = frozenset({"succeeded", "failed", "canceled"})

# With as many digits as the keys made of an attempt have.
_Count = Annotated[int, msgspec.Meta(ge=1, le=999_999)]


class Status(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A status as it came, possibly partial, or as the runtime stamped it, then complete but for what does not apply.

    Times are RFC 3339 text: they are carried on exactly as they were set.
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


def created(actor: str, at: str, deadline_at: str | None = None) -> Status:
    """The status an envelope is born with at the gateway (`protocol §2`, creation)."""
    return Status(
        phase="pending", actor=actor, attempt=1, max_attempts=1, created_at=at, updated_at=at, deadline_at=deadline_at
    )


def started(received: Status | None, *, actor: str, now: str, sent_at: str, max_attempts: int) -> Status:
    """The start of a hop: attempt kept only if the phase was `retrying`; a missing or partial status is completed.

    Args:
        received: the status as it came, if any.
        sent_at: when the message was sent; `created_at` of an envelope that came without one.
        max_attempts: of the actor's default policy. A retry keeps those of the policy that asked for it.
    """
    was = received or Status()
    retrying = was.phase == "retrying"
    return Status(
        phase="processing",
        actor=actor,
        attempt=(was.attempt or 1) if retrying else 1,
        max_attempts=(was.max_attempts or max_attempts) if retrying else max_attempts,
        created_at=was.created_at or sent_at,
        updated_at=now,
        deadline_at=was.deadline_at,
        # A then_route handler reads the error that brought the envelope to it; its success clears it.
        error=was.error,
    )


def routed(status: Status, *, actor: str, now: str) -> Status:
    """Ordinary routing to the next actor: pending, attempt 1, error and reason cleared."""
    return Status(
        phase="pending",
        actor=actor,
        attempt=1,
        max_attempts=1,
        created_at=status.created_at,
        updated_at=now,
        deadline_at=status.deadline_at,
    )


def succeeded(status: Status, *, now: str) -> Status:
    """Success at the end of the route, with the attempt that succeeded and no error."""
    return msgspec.structs.replace(status, phase="succeeded", reason="Completed", updated_at=now, error=None)


def failed(status: Status, *, reason: Reason, now: str, error: ErrorInfo | None) -> Status:
    """Failure for good: the attempt and max_attempts it came to, and the error."""
    return msgspec.structs.replace(status, phase="failed", reason=reason, updated_at=now, error=error)


def ended(status: Status, *, phase: Phase, reason: Reason, now: str) -> Status:
    """Another end that is no failure: canceled or paused."""
    return msgspec.structs.replace(status, phase=phase, reason=reason, updated_at=now)


def retrying(status: Status, *, now: str, error: ErrorInfo) -> Status:
    """One more try: attempt + 1, the error kept."""
    return msgspec.structs.replace(
        status, phase="retrying", reason=None, attempt=(status.attempt or 1) + 1, updated_at=now, error=error
    )


def policy_routed(status: Status, *, actor: str, now: str, error: ErrorInfo) -> Status:
    """Handed to the first actor of a policy's `then_route`; the error stays readable there (`protocol §8`)."""
    return Status(
        phase="pending",
        reason="PolicyRouted",
        actor=actor,
        attempt=1,
        max_attempts=1,
        created_at=status.created_at,
        updated_at=now,
        deadline_at=status.deadline_at,
        error=error,
    )
