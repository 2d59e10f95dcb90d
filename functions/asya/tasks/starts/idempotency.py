"""Idempotency keys: a repeated request starts its task once (`protocol §13`, `Idempotency-Key`).

`asya.tasks.starts.aws.idempotency_keys` stores the items, `asya.tasks.starts.aws.task_starter` writes them.

A submission writes the item of its key first, and marks it as `sent` after SQS has accepted the message. The item tells a
repetition the state of the first request:

- `sent`: the repetition returns the same id and sends nothing.
- not `sent`, and the lease is valid: the first request is in progress.
- not `sent`, and the lease was released, because the message was not accepted: the repetition begins the task, with the same id.
- not `sent`, and the lease has expired, because the process crashed: the repetition finishes the submission, with the same id
  and the same times. After a crash between the send and the mark, this sends a second message with the same id. SQS may
  duplicate any message too: the records stay correct, and the handlers may run twice.

Each claim has a number. A process whose claim was taken over undoes nothing, however late its send is refused. The process that
took it over does not remove the record either: the first process may have sent the message.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from asya.protocol import names

STARTERS: Mapping[str, int] = MappingProxyType({names.GATEWAY_API: 29, names.TRIGGERS: 60})
"""The functions that start tasks, with the seconds after which Lambda ends an invocation; the stacks take them from here."""

_MARGIN = 10.0
"""Seconds by which the clocks of two processes may differ."""


def lease_of(function: str) -> float:
    """Seconds for which a claim holds: longer than the function that made it can be at work."""
    return STARTERS[function] + _MARGIN


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """The idempotency key of one caller, with the digest of the request."""

    owner: str
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class StoredKey:
    """What the first request with a key has stored.

    Attributes:
        lease_until: the end of the lease, in seconds since 1970; 0 once it was released.
        is_sent: whether SQS has accepted the message.
        attempt: the number of the latest claim.
        may_be_sent: whether a process that did not release its claim may have sent the message.
    """

    task_id: str
    digest: str
    created_at: datetime
    lease_until: float
    is_sent: bool
    attempt: int = 0
    may_be_sent: bool = False


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """The caller must start the task with this id and creation time, then `mark_sent` or `undo` the claim.

    Attributes:
        attempt: the number of the claim.
        may_be_sent: whether another process may have sent the message; then the record stays.
        expired: the task of the same request whose key has expired; None without one.
    """

    task_id: str
    created_at: datetime
    attempt: int = 1
    may_be_sent: bool = False
    expired: str | None = None


@dataclass(frozen=True, slots=True)
class StartedTask:
    """An earlier request has started the task."""

    task_id: str


@dataclass(frozen=True, slots=True)
class InProgress:
    """Another request with this key is in progress."""


@dataclass(frozen=True, slots=True)
class KeyMismatch:
    """The key belongs to a different request."""


ClaimOutcome = KeyClaim | StartedTask | InProgress | KeyMismatch


def decide_repetition(stored: StoredKey, digest: str, now: datetime) -> ClaimOutcome:
    """The outcome of a repeated request. A `KeyClaim` has yet to be written, if the key is still as it was read."""
    if stored.digest != digest:
        return KeyMismatch()
    if stored.is_sent:
        return StartedTask(stored.task_id)
    if stored.lease_until > now.timestamp():
        return InProgress()
    # A claim that was not released is that of a process which died, perhaps after it had sent the message.
    may_be_sent = stored.may_be_sent or stored.lease_until > 0
    # A second message must be equal to the first. A task that has sent none begins now.
    created_at = stored.created_at if may_be_sent else now
    return KeyClaim(stored.task_id, created_at, stored.attempt + 1, may_be_sent)
