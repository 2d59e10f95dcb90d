"""The items of idempotency keys in the tasks table (`protocol §13`, `Idempotency-Key`).

`asya.tasks.starts.idempotency` states what the items mean. Items: `pk` = `KEY#{digest of owner and key}`, `sk` = `key`.
"""

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, cast

from botocore.exceptions import ClientError

from asya.function.aws.conditional_writes import failed_conditions, is_condition_failure
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws import items as task_items
from asya.tasks.aws.table_calls import table_errors
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
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, TransactWriteItemTypeDef, UpdateTypeDef

    from asya.tasks.aws.items import Item


_RELEASED = "0"
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
        self._client = client
        self._table = table
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
        with table_errors("claim an idempotency key"):
            try:
                replaced = self._client.put_item(
                    TableName=self._table,
                    Item=_key(key.owner, key.text)
                    | {
                        "task_id": {"S": task_id},
                        "digest": {"S": key.digest},
                        "created_at": {"S": format_time(now)},
                        "lease_until": self._lease_from(now),
                        "attempt": {"N": str(first.attempt)},
                        "expires_at": {"N": str(int(now.timestamp() + self._retention))},
                    },
                    ConditionExpression="attribute_not_exists(pk) OR expires_at <= :now",
                    ExpressionAttributeValues={":now": {"N": str(int(now.timestamp()))}},
                    ReturnValues="ALL_OLD",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                ).get("Attributes")
            except self._client.exceptions.ConditionalCheckFailedException as conflict:
                item = cast("Item | None", conflict.response.get("Item"))
            else:
                # The task of an expired key may be kept for longer than the key.
                is_same = replaced is not None and replaced["digest"]["S"] == key.digest
                return replace(first, expired=replaced["task_id"]["S"]) if replaced is not None and is_same else first
        return self._claim_again(key, _stored(item), now) if item else InProgress()

    def task_of(self, owner: str, key: str) -> str | None:
        """The id of the task of a key; None if the key is unused.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("read an idempotency key"):
            item = self._client.get_item(TableName=self._table, Key=_key(owner, key), ConsistentRead=True).get("Item")
        return item["task_id"]["S"] if item else None

    def mark_sent(self, key: IdempotencyKey, claim: KeyClaim) -> None:
        """Mark the message as sent, so that repetitions send nothing. That holds whoever has the claim by now.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        with table_errors("update an idempotency key"):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(key.owner, key.text),
                    UpdateExpression="SET sent = :yes",
                    ConditionExpression="task_id = :task",
                    ExpressionAttributeValues={":yes": {"BOOL": True}, ":task": {"S": claim.task_id}},
                )
            except ClientError as error:
                # The key has expired, and may stand for another task.
                if not is_condition_failure(error):
                    raise

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
        release: UpdateTypeDef = {
            "TableName": self._table,
            "Key": _key(key.owner, key.text),
            "UpdateExpression": "SET lease_until = :released",
            "ConditionExpression": "task_id = :task AND attempt = :mine AND attribute_not_exists(sent)",
            "ExpressionAttributeValues": {
                ":released": {"N": _RELEASED},
                ":task": {"S": claim.task_id},
                ":mine": {"N": str(claim.attempt)},
            },
        }
        remove = task_items.withdrawal(self._table, claim.task_id)
        with table_errors("release an idempotency key"):
            if removes_record and not claim.may_be_sent:
                failed = self._transact([{"Update": release}, {"Delete": remove}])
                if failed is None or 0 in failed:
                    return
            self._transact([{"Update": release}])

    def _claim_again(self, key: IdempotencyKey, stored: StoredKey, now: datetime) -> ClaimOutcome:
        outcome = decide_repetition(stored, key.digest, now)
        return self._take_over(key, stored, outcome, now) if isinstance(outcome, KeyClaim) else outcome

    def _take_over(self, key: IdempotencyKey, seen: StoredKey, claim: KeyClaim, now: datetime) -> ClaimOutcome:
        """Take over a key; the conditional write lets one of several concurrent requests win."""
        with table_errors("take over an idempotency key"):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(key.owner, key.text),
                    UpdateExpression="SET lease_until = :lease, created_at = :created, attempt = :mine, may_be_sent = :may",
                    ConditionExpression="attempt = :seen AND attribute_not_exists(sent)",
                    ExpressionAttributeValues={
                        ":lease": self._lease_from(now),
                        ":created": {"S": format_time(claim.created_at)},
                        ":mine": {"N": str(claim.attempt)},
                        ":may": {"BOOL": claim.may_be_sent},
                        ":seen": {"N": str(seen.attempt)},
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return InProgress()
        return claim

    def _lease_from(self, now: datetime) -> "AttributeValueTypeDef":
        return {"N": f"{now.timestamp() + self._lease:.3f}"}

    def _transact(self, parts: "list[TransactWriteItemTypeDef]") -> set[int] | None:
        """Write all or nothing; the indexes of the failed conditions, or None if all was written."""
        try:
            self._client.transact_write_items(TransactItems=parts)
        except ClientError as error:
            failed = failed_conditions(error)
            if not failed:
                raise
            return failed
        return None


def _stored(item: "Item") -> StoredKey:
    return StoredKey(
        task_id=item["task_id"]["S"],
        digest=item["digest"]["S"],
        created_at=parse_time(item["created_at"]["S"]),
        lease_until=float(item["lease_until"]["N"]),
        is_sent="sent" in item,
        attempt=int(item["attempt"]["N"]),
        may_be_sent="may_be_sent" in item and item["may_be_sent"]["BOOL"],
    )


def _key(owner: str, key: str) -> "dict[str, AttributeValueTypeDef]":
    # Owners contain no newline, so different pairs have different digests.
    digest = hashlib.sha256(f"{owner}\n{key}".encode()).hexdigest()
    return {"pk": {"S": f"KEY#{digest}"}, "sk": {"S": "key"}}
