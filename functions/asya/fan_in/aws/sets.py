"""The table of sets, `asya-{namespace}-fan-in` (`protocol §9`).

pk = set id; sk = `set` for the set's own item, `slice#{index}` for a stored slice, `ended#{index}` for a slice that ended
without a result.

A slice is stored first and counted second. The set's item counts slices in DynamoDB number sets, so adding a slice is
idempotent, and a redelivery after a crash repeats both writes. A transaction would conflict with the concurrent slices of
the same set. Each write returns the set after it, so exactly one of many concurrent arrivals completes the set.

The index `open` lists the unfinished sets by `open_in` (a shard) and `due_at`.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.fan_in.aws import items
from asya.fan_in.aws.items import OPEN_INDEX, OPEN_SHARDS, OpenSet, SetRecord
from asya.fan_in.sets import Decision
from asya.messaging.aws.conditional_writes import is_condition_failure
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import INLINE_RESULT_LIMIT
from asya.protocol.keys import FRAMES_PREFIX, safe_segment
from asya.protocol.slices import SliceEnded, SliceHeader
from asya.protocol.times import format_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, UpdateItemInputTypeDef
    from mypy_boto3_s3 import S3Client

    Item = dict[str, AttributeValueTypeDef]

# Larger slices are stored in S3. A result that a report cannot carry inline therefore has an address.
INLINE_BYTES = INLINE_RESULT_LIMIT
# How long one process may take to finish a set before another one may try.
LEASE_SECONDS = 60.0


class SliceCountError(ValueError):
    """A slice states another `slice_count` than the earlier slices of its set."""


class UnknownSetError(LookupError):
    """The table has no such set or slice, or it has expired."""


@dataclass(frozen=True, slots=True)
class SetTimes:
    """The timeout of a set, fixed by its first slice, and the expiry of its state.

    Attributes:
        expires_at: seconds since 1970.
    """

    due_at: datetime
    expires_at: float


class FanInSets:
    """Reads and writes sets and slices. Every write is idempotent.

    Raises:
        botocore.exceptions.ClientError: from every method, if a call to the table or the bucket fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", s3: "S3Client", *, table: str, bucket: str) -> None:
        self._dynamodb = dynamodb
        self._s3 = s3
        self._table = table
        self._bucket = bucket

    def add_slice(
        self, header: SliceHeader, body: bytes, *, actor: str, times: SetTimes
    ) -> tuple[SetRecord, str | None]:
        """Store a slice once and count it. The first slice with an index wins.

        Args:
            body: the slice's whole envelope.
            actor: the fan-in actor.

        Returns:
            The set after the write, and the URI of the slice's object if it is in S3.

        Raises:
            SliceCountError: the slice states another `slice_count` than its set.
        """
        content = self._content(header, body)
        self._put_once({**items.slice_key(header.set_id, header.slice_index), **content}, times)
        record = self._count("arrived", header, actor, times)
        return record, f"s3://{self._bucket}/{content['object']['S']}" if "object" in content else None

    def add_ended_slice(self, ended: SliceEnded, *, actor: str, times: SetTimes) -> SetRecord:
        """Record that a slice ended without a result. The first error of a slice is kept.

        Raises:
            SliceCountError: the slice states another `slice_count` than its set.
        """
        key = items.ended_key(ended.set_id, ended.slice_index)
        self._put_once({**key, "error": items.error_value(ended.error)}, times)
        return self._count("lost", ended, actor, times)

    def get(self, set_id: str) -> SetRecord | None:
        """Read a set consistently; None if it is unknown."""
        item = self._get(items.set_key(set_id))
        return items.set_record(set_id, item) if item is not None else None

    def load_slice(self, set_id: str, index: int) -> bytes:
        """Read the envelope of a stored slice.

        Raises:
            UnknownSetError: the slice was never stored, or has expired.
        """
        item = self._get(items.slice_key(set_id, index))
        if item is None:
            raise UnknownSetError(f"slice {index} of set {set_id} is not stored; it may have expired")
        return self._body(item)

    def load_slices(self, set_id: str) -> Iterator[tuple[int, bytes]]:
        """Read the index and envelope of every stored slice, in numeric order."""
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :set AND begins_with(sk, :slice)",
            ExpressionAttributeValues={":set": {"S": set_id}, ":slice": items.slice_prefix()},
            ConsistentRead=True,
        )
        for page in pages:
            for item in page["Items"]:
                yield items.slice_index(item), self._body(item)

    def load_error(self, set_id: str, index: int) -> ErrorInfo | None:
        """Read the error of a slice that ended without a result; None if it has none."""
        item = self._get(items.ended_key(set_id, index))
        return items.error_of(item) if item is not None else None

    def save_decision(
        self, set_id: str, decision: Decision, *, lease_from: float | None = None
    ) -> tuple[SetRecord, bool]:
        """Save the decision about a set, unless the set has one already.

        Args:
            lease_from: now (seconds since 1970) to take the lease with the same write; None to take no lease.

        Returns:
            The set after the write, and whether this decision was saved.
        """
        until = 0.0 if lease_from is None else lease_from + LEASE_SECONDS
        return self._change(
            set_id,
            "SET decision = :decision, lease_until = :until",
            {":decision": items.decision_value(decision), ":until": items.number(until)},
            condition="attribute_not_exists(decision)",
        )

    def take_lease(self, set_id: str, *, epoch_seconds: float) -> bool:
        """Lease a decided set in order to finish it; False if it is leased or delivered.

        The lease only saves duplicate work. Correctness does not depend on it.
        """
        _, is_leased = self._change(
            set_id,
            "SET lease_until = :until",
            {":until": items.number(epoch_seconds + LEASE_SECONDS), ":now": items.number(epoch_seconds)},
            condition="attribute_not_exists(delivered) AND lease_until < :now",
        )
        return is_leased

    def release_lease(self, set_id: str) -> None:
        """Release the lease after a failed attempt to finish the set."""
        self._change(set_id, "SET lease_until = :never", {":never": items.number(0)})

    def mark_delivered(self, set_id: str, *, expires_at: float) -> None:
        """Mark a set as delivered: its item becomes a tombstone."""
        self._change(
            set_id,
            "SET delivered = :yes, expires_at = :expires REMOVE open_in",
            {":yes": {"BOOL": True}, ":expires": items.number(int(expires_at))},
        )

    def leave_index(self, set_id: str) -> None:
        """Remove a set from the index of open sets; only a late slice 0 can still finish it."""
        self._change(set_id, "REMOVE open_in", {})

    def record_check(self, set_id: str, until: float) -> None:
        """Record when the pending timeout check is due at the latest (seconds since 1970)."""
        self._change(set_id, "SET look_until = :until", {":until": items.number(until)})

    def open_sets(self) -> Iterator[OpenSet]:
        """The unfinished sets; the index is eventually consistent."""
        paginator = self._dynamodb.get_paginator("query")
        for shard in range(OPEN_SHARDS):
            pages = paginator.paginate(
                TableName=self._table,
                IndexName=OPEN_INDEX,
                KeyConditionExpression="open_in = :shard",
                ExpressionAttributeValues={":shard": {"S": items.shard_name(shard)}},
            )
            for page in pages:
                yield from map(items.open_set, page["Items"])

    def _put_once(self, item: "Item", times: SetTimes) -> None:
        """Write an item unless it exists."""
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item={**item, "expires_at": items.number(int(times.expires_at))},
                ConditionExpression="attribute_not_exists(pk)",
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise

    def _count(self, attribute: str, slice_info: SliceHeader | SliceEnded, actor: str, times: SetTimes) -> SetRecord:
        """Add a slice's index to a number set of the set's item; a delivered set stays unchanged."""
        set_id, count = slice_info.set_id, slice_info.slice_count
        record, _ = self._update(
            set_id,
            "SET slice_count = :count, actor = :actor, expires_at = :expires, "
            f"due_at = if_not_exists(due_at, :due), open_in = :shard ADD {attribute} :index",
            {
                ":count": items.number(count),
                ":actor": {"S": actor},
                ":expires": items.number(int(times.expires_at)),
                ":due": {"S": format_time(times.due_at)},
                ":shard": {"S": items.shard_of(set_id)},
                ":index": {"NS": [str(slice_info.slice_index)]},
            },
            "attribute_not_exists(delivered) AND (attribute_not_exists(slice_count) OR slice_count = :count)",
        )
        known_count = record.state.slice_count
        if known_count != count:
            raise SliceCountError(
                f"set {set_id} has {known_count} slices, but slice {slice_info.slice_index} states {count}"
            )
        return record

    def _change(
        self, set_id: str, expression: str, values: "Item", condition: str | None = None
    ) -> tuple[SetRecord, bool]:
        """Change an existing set; results and errors as in `_update`."""
        exists = "attribute_exists(slice_count)"
        return self._update(set_id, expression, values, f"{exists} AND {condition}" if condition else exists)

    def _update(self, set_id: str, expression: str, values: "Item", condition: str) -> tuple[SetRecord, bool]:
        """Update the set's item if the condition holds; returns the current item and whether it was updated.

        Raises:
            UnknownSetError: the set has no item.
        """
        request: UpdateItemInputTypeDef = {
            "TableName": self._table,
            "Key": items.set_key(set_id),
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if values:
            request["ExpressionAttributeValues"] = values
        try:
            return items.set_record(set_id, self._dynamodb.update_item(**request)["Attributes"]), True
        except ClientError as error:
            if not is_condition_failure(error):
                raise
            item: Item | None = error.response.get("Item")  # type: ignore[assignment]
            if not item:
                raise UnknownSetError(f"set {set_id} is not known; it may have expired") from None
            return items.set_record(set_id, item), False

    def _content(self, header: SliceHeader, body: bytes) -> "Item":
        """The body itself, or the key of its object. The key contains a digest, so a duplicate overwrites nothing."""
        if len(body) <= INLINE_BYTES:
            return {"body": {"B": body}}
        digest = hashlib.sha256(body).hexdigest()[:16]
        key = f"{FRAMES_PREFIX}fan-in/{safe_segment(header.set_id)}/{header.slice_index:06d}-{digest}.json"
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType="application/json")
        return {"object": {"S": key}}

    def _body(self, item: "Item") -> bytes:
        if "body" in item:
            return bytes(item["body"]["B"])
        return self._s3.get_object(Bucket=self._bucket, Key=item["object"]["S"])["Body"].read()

    def _get(self, key: "Item") -> "Item | None":
        return self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")
