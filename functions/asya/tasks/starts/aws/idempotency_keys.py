"""The items of idempotency keys in the tasks table (`protocol §13`, `Idempotency-Key`).

`asya.tasks.starts.idempotency` states what the items mean. Items: `pk` = `KEY#{digest of owner and key}`, `sk` = `key`.
"""

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, put, update
from asya.function.aws.table_items import Item, Key, Value
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws import items as task_items
from asya.tasks.aws.task_store import table_errors
from asya.tasks.starts.idempotency import (
    ClaimOutcome,
    IdempotencyKey,
    InProgress,
    KeyClaim,
    StoredKey,
    decide_repetition,
    lease_of,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


_RELEASED = 0
"""The end of a lease that was released."""


class IdempotencyKeys:
    """The idempotency keys of a mesh, in its tasks table.

    Args:
        client: the client of DynamoDB.
        table: the name of the table.
        retention: seconds until a key expires, as for tasks.
        function: the function that claims keys; one of `STARTERS`.
    """

    def __init__(self, client: "DynamoDBClient", table: str, retention: float, function: str) -> None:
        self._table = Table(client, table)
        self._retention = retention
        self._lease = lease_of(function)

    def claim(self, key: IdempotencyKey, task_id: str, now: datetime) -> ClaimOutcome:
        """Claim a key for a request.

        Args:
            key: the key; keys of different callers are independent.
            task_id: the id of the task if this is the first request.
            now: the creation time of the task if this is the first request.

        Raises:
            TaskStoreError: the table is unavailable; no task has been started.
        """
        first = KeyClaim(task_id, now)
        attributes: dict[str, Value] = {
            "task_id": task_id,
            "digest": key.digest,
            "created_at": format_time(now),
            "lease_until": self._lease_from(now),
            "attempt": first.attempt,
            "expires_at": int(now.timestamp() + self._retention),
        }
        claim = put(_key(key.owner, key.text), attributes)
        is_free = claim.only_if("attribute_not_exists(pk) OR expires_at <= :now", now=int(now.timestamp()))
        with table_errors("claim an idempotency key"):
            written = self._table.write(is_free, returns="ALL_OLD", shows_present=True)
        item = written.item
        if written:
            # The task of an expired key may be kept for longer than the key.
            is_same = bool(item) and item.text("digest") == key.digest
            return replace(first, expired=item.text("task_id")) if is_same else first
        return self._claim_again(key, _stored(item), now) if item else InProgress()

    def task_of(self, owner: str, key: str) -> str | None:
        """The id of the task of a key; None if the key is unused.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read an idempotency key"):
            return self._table.get(_key(owner, key)).text("task_id", None)

    def mark_sent(self, key: IdempotencyKey, claim: KeyClaim) -> None:
        """Mark the message as sent, so that repetitions send nothing. That holds whoever has the claim by now.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        sent = update(_key(key.owner, key.text), "SET sent = :yes", yes=True)
        with table_errors("update an idempotency key"):
            # A refused key has expired, and may stand for another task.
            self._table.write(sent.only_if("task_id = :task", task=claim.task_id))

    def undo(self, key: IdempotencyKey, claim: KeyClaim, *, removes_record: bool) -> None:
        """Release a claim that has sent nothing, so that a repetition may start the task at once.

        One write releases the key and removes the record, and only while the claim holds: a process that took it over needs
        both. A record that has changed since its creation stays.

        The task then begins with the repetition, which may come hours later: its time until the deadline has not run down.

        Args:
            key: the key.
            claim: the claim.
            removes_record: whether this claim has written the record of the task.

        Raises:
            TaskStoreError: the table is unavailable; nothing has changed.
        """
        release = update(_key(key.owner, key.text), "SET lease_until = :released", released=_RELEASED).only_if(
            "task_id = :task AND attempt = :mine AND attribute_not_exists(sent)", task=claim.task_id, mine=claim.attempt
        )
        with table_errors("release an idempotency key"):
            if removes_record and not claim.may_be_sent:
                released = self._table.transact([release, task_items.withdrawal(claim.task_id)])
                if released or 0 in released.failed:
                    return
            self._table.transact([release])

    def _claim_again(self, key: IdempotencyKey, stored: StoredKey, now: datetime) -> ClaimOutcome:
        outcome = decide_repetition(stored, key.digest, now)
        return self._take_over(key, stored, outcome, now) if isinstance(outcome, KeyClaim) else outcome

    def _take_over(self, key: IdempotencyKey, seen: StoredKey, claim: KeyClaim, now: datetime) -> ClaimOutcome:
        """Take over a key; the conditional write lets one of several concurrent requests win."""
        change = update(
            _key(key.owner, key.text),
            "SET lease_until = :lease, created_at = :created, attempt = :mine, may_be_sent = :may",
            lease=self._lease_from(now),
            created=format_time(claim.created_at),
            mine=claim.attempt,
            may=claim.may_be_sent,
        ).only_if("attempt = :seen AND attribute_not_exists(sent)", seen=seen.attempt)
        with table_errors("take over an idempotency key"):
            return claim if self._table.write(change) else InProgress()

    def _lease_from(self, now: datetime) -> float:
        return round(now.timestamp() + self._lease, 3)


def _stored(item: Item) -> StoredKey:
    return StoredKey(
        task_id=item.text("task_id"),
        digest=item.text("digest"),
        created_at=parse_time(item.text("created_at")),
        lease_until=item.number("lease_until"),
        is_sent="sent" in item,
        attempt=item.integer("attempt"),
        may_be_sent=item.flag("may_be_sent", False),
    )


def _key(owner: str, key: str) -> Key:
    # Owners contain no newline, so different pairs have different digests.
    digest = hashlib.sha256(f"{owner}\n{key}".encode()).hexdigest()
    return Key(f"KEY#{digest}", "key")
