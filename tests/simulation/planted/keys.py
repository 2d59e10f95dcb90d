"""Planted mistakes about idempotency keys and starts (`protocol §13.start`)."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from asya.tasks.starts.aws import idempotency_keys
from asya.tasks.starts.aws.idempotency_keys import IdempotencyKeys
from asya.tasks.starts.idempotency import InProgress, KeyClaim, KeyMismatch, StartedTask, StoredKey
from asya.testing.dynamo.tables import MemoryDynamo
from tests.simulation.inputs.features import Features
from tests.simulation.mistake import Mistake, found_by, wrap

KEYS: Features = frozenset({"keys"})


def _take_over_unconditionally(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    if request["UpdateExpression"].startswith("SET lease_until = :lease"):
        del request["ConditionExpression"]
        request["ExpressionAttributeValues"] = dict(request["ExpressionAttributeValues"])
        del request["ExpressionAttributeValues"][":seen"]
    return real(self, **request)


def _ignore_the_lease(real: Any, stored: StoredKey, digest: str, now: datetime) -> Any:
    return real(replace(stored, lease_until=0.001) if stored.lease_until else stored, digest, now)


def _create_again(real: Any, stored: StoredKey, digest: str, now: datetime) -> Any:
    outcome = real(stored, digest, now)
    return replace(outcome, created_at=now) if isinstance(outcome, KeyClaim) else outcome


def _mark_with_the_claim(real: Any, self: IdempotencyKeys, key: Any, *args: Any) -> Any:
    outcome = real(self, key, *args)
    if isinstance(outcome, KeyClaim):
        self.mark_sent(key, outcome)
    return outcome


def _take_mismatches(real: Any, stored: StoredKey, digest: str, now: datetime) -> Any:
    outcome = real(stored, digest, now)
    return StartedTask(stored.task_id) if isinstance(outcome, KeyMismatch) else outcome


def _wait_for_ever(real: Any, stored: StoredKey, digest: str, now: datetime) -> Any:
    outcome = real(stored, digest, now)
    return InProgress() if isinstance(outcome, KeyClaim) else outcome


def _one_owner(real: Any, self: IdempotencyKeys, key: Any, *args: Any, **more: Any) -> Any:
    return real(self, replace(key, owner="anybody"), *args, **more)


_with_keys = partial(Mistake, features=KEYS)
_STARTS = "unit/asya/tasks/starts/aws/test_task_starter.py"

MISTAKES = (
    _with_keys(
        "takes over a key without a condition",
        wrap(MemoryDynamo, "update_item", _take_over_unconditionally),
        "crashes",
    ),
    _with_keys(
        "takes over a key while its claim holds", wrap(idempotency_keys, "decide_repetition", _ignore_the_lease)
    ),
    _with_keys(
        "gives a start that is taken over a new creation time",
        wrap(idempotency_keys, "decide_repetition", _create_again),
        "crashes",
    ),
    _with_keys("marks a start as sent with the claim of its key", wrap(IdempotencyKeys, "claim", _mark_with_the_claim)),
    _with_keys(
        "never takes over the key of a process that died",
        wrap(idempotency_keys, "decide_repetition", _wait_for_ever),
        "crashes",
    ),
    found_by(
        "answers another request under the same key with the first task",
        wrap(idempotency_keys, "decide_repetition", _take_mismatches),
        f"{_STARTS}::test_another_request_under_the_same_key_is_a_conflict",
    ),
    found_by(
        "shares keys between callers",
        tuple(wrap(IdempotencyKeys, name, _one_owner) for name in ("claim", "mark_sent", "undo")),
        f"{_STARTS}::test_keys_belong_to_their_callers[digest]",
    ),
)
