"""Idempotency keys: a repeated request starts its task once (`protocol §13`, `Idempotency-Key`).

`asya.starts.aws.idempotency_keys` stores the items, `asya.starts.aws.task_starter` writes them.

A submission writes the item of its key first, and marks it as `sent` after SQS has accepted the message. The item tells a
repetition the state of the first request:

- `sent`: the repetition returns the same id and sends nothing.
- not `sent`, and the lease of `LEASE` seconds is valid: the first request is in progress.
- not `sent`, and the lease was released, because the message was not accepted: the repetition begins the task, with the same id.
- not `sent`, and the lease has expired, because the process crashed: the repetition finishes the submission, with the same id
  and the same times. After a crash between the send and the mark, this sends a second message with the same id. SQS may
  duplicate any message too: the records stay correct, and the handlers may run twice.
"""

from dataclasses import dataclass
from datetime import datetime

# Seconds; longer than any request, because API Gateway and the function time out after 30.
LEASE = 35.0


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
        lease_until: the end of the lease, in seconds since 1970.
        is_sent: whether SQS has accepted the message.
    """

    task_id: str
    digest: str
    lease_until: float
    is_sent: bool


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """The caller must start the task with this id and creation time, then `mark_sent` or `release` the key."""

    task_id: str
    created_at: datetime


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


def decide_repetition(stored: StoredKey, digest: str, now: datetime) -> StartedTask | InProgress | KeyMismatch | None:
    """The outcome of a repeated request; None if it must take over the expired lease."""
    if stored.digest != digest:
        return KeyMismatch()
    if stored.is_sent:
        return StartedTask(stored.task_id)
    return InProgress() if stored.lease_until > now.timestamp() else None
