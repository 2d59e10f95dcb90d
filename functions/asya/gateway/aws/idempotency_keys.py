"""Idempotency keys: a request that is repeated starts its task once (`protocol §13`, `Idempotency-Key`).

A key's item in the tasks table is written before anything else of a submission, and marked `sent` after its message has been
accepted. So a repetition knows where the first try came to:

- `sent`: the answer is the same id, and nothing is sent.
- not `sent`, and somebody has been at it for less than `LEASE` seconds: come again later.
- not `sent`, and nobody is at it any more (the process died): the repetition finishes it, with the same id and the
  same times. If the process died between the sending and the mark, this sends a second message of the same id, which is what
  SQS itself may do with any message: what the mesh records stays right, the handlers may run twice.

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

# Longer than any request lives: API Gateway gives up after 30 seconds, and the function with it.
LEASE = 35.0


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """The caller is to start the task, under this id and as of this time; then to `finish` or `release` the key."""

    task_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StartedTask:
    """The task has been started before."""

    task_id: str


@dataclass(frozen=True, slots=True)
class InProgress:
    """Another request with this key is at it."""


@dataclass(frozen=True, slots=True)
class KeyMismatch:
    """The key was used before, for something else."""


ClaimOutcome = KeyClaim | StartedTask | InProgress | KeyMismatch


class IdempotencyKeys:
    """The keys of a mesh, in its tasks table.

    Args:
        retention: seconds a key is honoured for: as long as its task is kept.
    """

    def __init__(self, client: "DynamoDBClient", table: str, retention: float) -> None:
        self._client = client
        self._table = table
        self._retention = retention

    def claim(self, owner: str, key: str, digest: str, task_id: str, now: datetime) -> ClaimOutcome:
        """Find out what to do about a request with a key.

        Args:
            owner: principal of the caller; keys of different callers have nothing to do with each other.
            digest: of what is asked for.
            task_id: the id to give the task if this is the first request.

        Raises:
            TaskStoreError: if the table cannot be read or written; nothing has been started then.
        """
        lease = now.timestamp() + LEASE
        with table_errors("note an idempotency key"):
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
                found = cast("Item | None", conflict.response.get("Item"))
            else:
                return KeyClaim(task_id, now)
        return self._follow_up(owner, key, digest, found, now) if found else InProgress()

    def task_of(self, owner: str, key: str) -> str | None:
        """The task that a key has started, or is about to; None if nobody has used it.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        with table_errors("look an idempotency key up"):
            found = self._client.get_item(TableName=self._table, Key=_key(owner, key), ConsistentRead=True).get("Item")
        return found["task_id"]["S"] if found else None

    def finish(self, owner: str, key: str) -> None:
        """The message has been accepted: from now on repetitions send nothing.

        Raises:
            TaskStoreError: if the table does not take it.
        """
        self._update(owner, key, "SET sent = :value", {"BOOL": True})

    def release(self, owner: str, key: str) -> None:
        """The message has been refused: a repetition may try again at once.

        Raises:
            TaskStoreError: if the table does not take it.
        """
        self._update(owner, key, "SET lease_until = :value", {"N": "0"})

    def _follow_up(self, owner: str, key: str, digest: str, found: "Item", now: datetime) -> ClaimOutcome:
        if found["digest"]["S"] != digest:
            return KeyMismatch()
        if "sent" in found:
            return StartedTask(found["task_id"]["S"])
        if float(found["lease_until"]["N"]) > now.timestamp():
            return InProgress()
        return self._take_over(owner, key, found, now)

    def _take_over(self, owner: str, key: str, found: "Item", now: datetime) -> ClaimOutcome:
        """Of several who find that nobody is at it any more, one goes on."""
        with table_errors("take an idempotency key over"):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(owner, key),
                    UpdateExpression="SET lease_until = :lease",
                    ConditionExpression="lease_until = :seen AND attribute_not_exists(sent)",
                    ExpressionAttributeValues={
                        ":lease": {"N": f"{now.timestamp() + LEASE:.3f}"},
                        ":seen": {"N": found["lease_until"]["N"]},
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return InProgress()
        return KeyClaim(found["task_id"]["S"], parse_time(found["created_at"]["S"]))

    def _update(self, owner: str, key: str, expression: str, value: "AttributeValueTypeDef") -> None:
        with table_errors("note what became of an idempotency key"):
            self._client.update_item(
                TableName=self._table,
                Key=_key(owner, key),
                UpdateExpression=expression,
                ConditionExpression="attribute_exists(pk)",
                ExpressionAttributeValues={":value": value},
            )


def _key(owner: str, key: str) -> "dict[str, AttributeValueTypeDef]":
    # Owners hold no newline, so that no two pairs run together.
    digest = hashlib.sha256(f"{owner}\n{key}".encode()).hexdigest()
    return {"pk": {"S": f"KEY#{digest}"}, "sk": {"S": "key"}}
