"""The items of idempotency keys in the tasks table (`protocol §13`, `Idempotency-Key`).

`asya.starts.idempotency` states what the items mean. Items: `pk` = `KEY#{digest of owner and key}`, `sk` = `key`.
"""

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, cast

from asya.protocol.times import format_time, parse_time
from asya.starts.idempotency import LEASE, ClaimOutcome, InProgress, KeyClaim, StoredKey, decide_repetition
from asya.tasks.aws.table_calls import table_errors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    from asya.tasks.aws.items import Item


_RELEASED = "0"
"""The end of the lease of a request that has sent nothing."""


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
        """Release the lease of a request that has sent nothing, so that a repetition may retry at once.

        The task then begins with the repetition, which may come hours later: its time until the deadline has not run down.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        self._update(owner, key, "SET lease_until = :value", {"N": _RELEASED})

    def _claim_again(self, owner: str, key: str, digest: str, item: "Item", now: datetime) -> ClaimOutcome:
        stored = StoredKey(
            task_id=item["task_id"]["S"],
            digest=item["digest"]["S"],
            lease_until=float(item["lease_until"]["N"]),
            is_sent="sent" in item,
        )
        outcome = decide_repetition(stored, digest, now)
        return self._take_over(owner, key, item, now) if outcome is None else outcome

    def _take_over(self, owner: str, key: str, item: "Item", now: datetime) -> ClaimOutcome:
        """Take over an expired lease; the conditional write lets one of several concurrent requests win."""
        # After a crash the message may have been sent, and a second one must be equal.
        is_released = item["lease_until"]["N"] == _RELEASED
        created_at = now if is_released else parse_time(item["created_at"]["S"])
        with table_errors("take over an idempotency key"):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(owner, key),
                    UpdateExpression="SET lease_until = :lease, created_at = :created",
                    ConditionExpression="lease_until = :seen AND attribute_not_exists(sent)",
                    ExpressionAttributeValues={
                        ":lease": {"N": f"{now.timestamp() + LEASE:.3f}"},
                        ":seen": {"N": item["lease_until"]["N"]},
                        ":created": {"S": format_time(created_at)},
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return InProgress()
        return KeyClaim(item["task_id"]["S"], created_at)

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
