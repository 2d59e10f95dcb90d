"""Idempotency keys: a repeated request starts its task once (`protocol §13`, `Idempotency-Key`).

A submission writes the item of its key first, and marks it as `sent` after SQS has accepted the message. The item tells a
repetition the state of the first request:

- `sent`: the repetition returns the same id and sends nothing.
- not `sent`, and the lease of `LEASE` seconds is valid: the first request is in progress.
- not `sent`, and the lease has expired, because the process crashed: the repetition finishes the submission, with the same id
  and the same times. After a crash between the send and the mark, this sends a second message with the same id. SQS may
  duplicate any message too: the records stay correct, and the handlers may run twice.

Items: `pk` = `KEY#{digest of owner and key}`, `sk` = `key`.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    from asya.tasks.aws.items import Item

# Seconds; longer than any request, because API Gateway and the function time out after 30.
LEASE = 35.0


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


class IdempotencyKeys:
    """The idempotency keys of a mesh, in its tasks table.

    Args:
        client: the client of DynamoDB.
        table: the name of the table.
        retention: seconds until a key expires, as for tasks.
    """

    def __init__(self, client: "DynamoDBClient", table: str, retention: float) -> None:
        self._client = client
        self._table = table
        self._retention = retention

    def claim(self, owner: str, key: str, digest: str, task_id: str, now: datetime) -> ClaimOutcome:
        """Claim a key for a request.

        Args:
            owner: the principal of the caller; keys of different callers are independent.
            key: the text of the key.
            digest: the digest of the request.
            task_id: the id of the task if this is the first request.
            now: the creation time of the task if this is the first request.

        Raises:
            TaskStoreError: the table is unavailable; no task has been started.
        """
        lease = now.timestamp() + LEASE
        with table_errors("claim an idempotency key"):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=_key(owner, key)
                    | {
                        "task_id": {"S": task_id},
                        "digest": {"S": digest},
                        "created_at": {"S": format_time(now)},
                        "lease_until": {"N": f"{lease:.3f}"},
                        "expires_at": {"N": str(int(now.timestamp() + self._retention))},
                    },
                    ConditionExpression="attribute_not_exists(pk) OR expires_at <= :now",
                    ExpressionAttributeValues={":now": {"N": str(int(now.timestamp()))}},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except self._client.exceptions.ConditionalCheckFailedException as conflict:
                item = cast("Item | None", conflict.response.get("Item"))
            else:
                return KeyClaim(task_id, now)
        return self._claim_again(owner, key, digest, item, now) if item else InProgress()

    def task_of(self, owner: str, key: str) -> str | None:
        """The id of the task of a key; None if the key is unused.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read an idempotency key"):
            item = self._client.get_item(TableName=self._table, Key=_key(owner, key), ConsistentRead=True).get("Item")
        return item["task_id"]["S"] if item else None

    def mark_sent(self, owner: str, key: str) -> None:
        """Mark the message as sent, so that repetitions send nothing.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        self._update(owner, key, "SET sent = :value", {"BOOL": True})

    def release(self, owner: str, key: str) -> None:
        """Release the lease, so that a repetition may retry at once.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        self._update(owner, key, "SET lease_until = :value", {"N": "0"})

    def _claim_again(self, owner: str, key: str, digest: str, item: "Item", now: datetime) -> ClaimOutcome:
        if item["digest"]["S"] != digest:
            return KeyMismatch()
        if "sent" in item:
            return StartedTask(item["task_id"]["S"])
        if float(item["lease_until"]["N"]) > now.timestamp():
            return InProgress()
        return self._take_over(owner, key, item, now)

    def _take_over(self, owner: str, key: str, item: "Item", now: datetime) -> ClaimOutcome:
        """Take over an expired lease; the conditional write lets one of several concurrent requests win."""
        with table_errors("take over an idempotency key"):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(owner, key),
                    UpdateExpression="SET lease_until = :lease",
                    ConditionExpression="lease_until = :seen AND attribute_not_exists(sent)",
                    ExpressionAttributeValues={
                        ":lease": {"N": f"{now.timestamp() + LEASE:.3f}"},
                        ":seen": {"N": item["lease_until"]["N"]},
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return InProgress()
        return KeyClaim(item["task_id"]["S"], parse_time(item["created_at"]["S"]))

    def _update(self, owner: str, key: str, expression: str, value: "AttributeValueTypeDef") -> None:
        with table_errors("update an idempotency key"):
            self._client.update_item(
                TableName=self._table,
                Key=_key(owner, key),
                UpdateExpression=expression,
                ConditionExpression="attribute_exists(pk)",
                ExpressionAttributeValues={":value": value},
            )


def _key(owner: str, key: str) -> "dict[str, AttributeValueTypeDef]":
    # Owners contain no newline, so different pairs have different digests.
    digest = hashlib.sha256(f"{owner}\n{key}".encode()).hexdigest()
    return {"pk": {"S": f"KEY#{digest}"}, "sk": {"S": "key"}}
