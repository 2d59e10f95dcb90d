"""The table of sets, `asya-{namespace}-fan-in` (`protocol §9`).

pk = set id; sk = `set` for what is known of the set, `slice#{index}` for each stored slice, `ended#{index}` for each that ended
without a result. The set's item lists the slices by number, in sets of numbers: adding one again changes nothing, so that a slice
is stored first and counted second, and a process that dies in between only has to do both again. (A transaction of the two would
conflict with those of the other slices of the same set, which arrive at the same time.) Each write answers with the set as it is
after it: of all that arrive at once exactly one sees the last one missing.

The index `open` holds the sets that something is still to come of: `open_in` (a shard) and `due_at`.
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

# An item holds 400 KB; slices beyond this lie in S3, so that what a report does not carry inline has an address.
INLINE_BYTES = INLINE_RESULT_LIMIT
# Whoever finishes a set has so long until another may try.
LEASE_SECONDS = 60.0


class SliceCountError(ValueError):
    """A slice that says another number of slices than those of its set that came before."""


class UnknownSetError(LookupError):
    """A set, or a slice of it, that the table does not know (any more)."""


@dataclass(frozen=True, slots=True)
class Times:
    """What the first arrival of a set fixes, and how long its state is kept.

    Attributes:
        expires_at: seconds since 1970.
    """

    due_at: datetime
    expires_at: float


class FanInSets:
    """Reads and writes sets and slices. Every write may be done again.

    Raises:
        botocore.exceptions.ClientError: from every method, if table or bucket cannot be used now.
    """

    def __init__(self, dynamodb: "DynamoDBClient", s3: "S3Client", *, table: str, bucket: str) -> None:
        self._dynamodb = dynamodb
        self._s3 = s3
        self._table = table
        self._bucket = bucket

    def arrive(self, header: SliceHeader, body: bytes, *, actor: str, times: Times) -> tuple[SetRecord, str | None]:
        """Store a slice, once, and count it. The first that comes under an index is the one that counts.

        Args:
            body: the slice's whole envelope.
            actor: the fan-in actor.

        Returns:
            The set after it, and the URI of the slice's object if it lies in S3.

        Raises:
            SliceCountError: it does not belong to the set as it is known.
        """
        content = self._content(header, body)
        self._put_once({**items.slice_key(header.set_id, header.slice_index), **content}, times)
        record = self._count("arrived", header, actor, times)
        return record, f"s3://{self._bucket}/{content['object']['S']}" if "object" in content else None

    def add_ended_slice(self, ended: SliceEnded, *, actor: str, times: Times) -> SetRecord:
        """Note that a slice ended without a result. The first word about a slice counts.

        Raises:
            SliceCountError: it does not belong to the set as it is known.
        """
        key = items.ended_key(ended.set_id, ended.slice_index)
        self._put_once({**key, "error": items.error_value(ended.error)}, times)
        return self._count("lost", ended, actor, times)

    def get(self, set_id: str) -> SetRecord | None:
        """What is known of a set, read consistently; None if nothing is."""
        item = self._get(items.set_key(set_id))
        return items.set_record(set_id, item) if item is not None else None

    def slice(self, set_id: str, index: int) -> bytes:
        """A stored slice's envelope.

        Raises:
            UnknownSetError: if it is not stored (any more).
        """
        item = self._get(items.slice_key(set_id, index))
        if item is None:
            raise UnknownSetError(f"slice {index} of set {set_id} is not stored any more")
        return self._body(item)

    def slices(self, set_id: str) -> Iterator[tuple[int, bytes]]:
        """Every stored slice's index and envelope, in numeric order."""
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :set AND begins_with(sk, :slice)",
            ExpressionAttributeValues={":set": {"S": set_id}, ":slice": items.slice_prefix()},
            ConsistentRead=True,
        )
        for page in pages:
            for item in page["Items"]:
                yield items.slice_index(item), self._body(item)

    def error(self, set_id: str, index: int) -> ErrorInfo | None:
        """What a slice that ended without a result ended with, if it said."""
        item = self._get(items.ended_key(set_id, index))
        return items.error_of(item) if item is not None else None

    def decide(self, set_id: str, decision: Decision, *, lease_from: float | None = None) -> tuple[SetRecord, bool]:
        """Write a decision down, unless there is one: that one stands.

        Args:
            lease_from: now, to take the lease for finishing the set along; None to leave it to others.

        Returns:
            The set after it, and whether this decision is the one.
        """
        until = 0.0 if lease_from is None else lease_from + LEASE_SECONDS
        return self._change(
            set_id,
            "SET decision = :decision, lease_until = :until",
            {":decision": items.decision_value(decision), ":until": items.number(until)},
            condition="attribute_not_exists(decision)",
        )

    def take_lease(self, set_id: str, *, epoch_seconds: float) -> bool:
        """Take a decided set for finishing it; False if another is at it, or it is done. Saves double work, guards nothing."""
        _, taken = self._change(
            set_id,
            "SET lease_until = :until",
            {":until": items.number(epoch_seconds + LEASE_SECONDS), ":now": items.number(epoch_seconds)},
            condition="attribute_not_exists(delivered) AND lease_until < :now",
        )
        return taken

    def release(self, set_id: str) -> None:
        """Give the lease back: finishing did not work out."""
        self._change(set_id, "SET lease_until = :never", {":never": items.number(0)})

    def mark_delivered(self, set_id: str, *, expires_at: float) -> None:
        """What had to leave has left: from here on the item is a tombstone."""
        self._change(
            set_id,
            "SET delivered = :yes, expires_at = :expires REMOVE open_in",
            {":yes": {"BOOL": True}, ":expires": items.number(int(expires_at))},
        )

    def retire(self, set_id: str) -> None:
        """Nothing is awaited any more, but for a slice 0 that might come late."""
        self._change(set_id, "REMOVE open_in", {})

    def note_look(self, set_id: str, until: float) -> None:
        """Note that a look at the clock is on its way, and by when it is expected."""
        self._change(set_id, "SET look_until = :until", {":until": items.number(until)})

    def open_sets(self) -> Iterator[OpenSet]:
        """The sets that something is still to come of, as the index knows them (a moment late)."""
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

    def _put_once(self, item: "Item", times: Times) -> None:
        """Write an item, unless there is one."""
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item={**item, "expires_at": items.number(int(times.expires_at))},
                ConditionExpression="attribute_not_exists(pk)",
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise

    def _count(self, where: str, counted: SliceHeader | SliceEnded, actor: str, times: Times) -> SetRecord:
        """Add a slice's number to a list of the set's item; a set that is done is left as it is."""
        set_id, count = counted.set_id, counted.slice_count
        record, _ = self._update(
            set_id,
            "SET slice_count = :count, actor = :actor, expires_at = :expires, "
            f"due_at = if_not_exists(due_at, :due), open_in = :shard ADD {where} :index",
            {
                ":count": items.number(count),
                ":actor": {"S": actor},
                ":expires": items.number(int(times.expires_at)),
                ":due": {"S": format_time(times.due_at)},
                ":shard": {"S": items.shard_of(set_id)},
                ":index": {"NS": [str(counted.slice_index)]},
            },
            "attribute_not_exists(delivered) AND (attribute_not_exists(slice_count) OR slice_count = :count)",
        )
        known = record.state.slice_count
        if known != count:
            raise SliceCountError(f"set {set_id} has {known} slices; slice {counted.slice_index} says {count}")
        return record

    def _change(
        self, set_id: str, expression: str, values: "Item", condition: str | None = None
    ) -> tuple[SetRecord, bool]:
        """Change a set that is known; as `_update`."""
        known = "attribute_exists(slice_count)"
        return self._update(set_id, expression, values, f"{known} AND {condition}" if condition else known)

    def _update(self, set_id: str, expression: str, values: "Item", condition: str) -> tuple[SetRecord, bool]:
        """The set's item as it is now, and whether it was changed: it is left alone if the condition does not hold.

        Raises:
            UnknownSetError: if there is none.
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
                raise UnknownSetError(f"set {set_id} is not known any more") from None
            return items.set_record(set_id, item), False

    def _content(self, header: SliceHeader, body: bytes) -> "Item":
        """The body, or where it lies. The key is made from the content too: what came first is not overwritten by another."""
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
