"""Envelopes of heavy actors that wait for a job run (`protocol §10`).

Keys (they can never change), in the table `asya-{namespace}-pending`:

- claim: `CLAIM#{id}` / `{generation:04d}#{position:06d}#{attempt:06d}`: this attempt became pending once, and never again;
  with `#{run:010d}` at its end: that run gave it back, once.
- pending: `PENDING#{actor}#{shard:02d}` / `{admitted_at}#{id}#{generation}#{position}#{attempt}`: it waits; with `#{run}` at its
  end if that run gave it back, so that whoever still deletes what went into that run does not meet it.
"""

import hashlib
import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Raw
from msgspec.structs import replace

from asya.messaging.aws.conditional_writes import failed_conditions, is_precondition_failure
from asya.protocol.job_runs import NUMBER_DIGITS, PENDING_PREFIX, Member

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import (
        AttributeValueTypeDef,
        QueryOutputTypeDef,
        TransactWriteItemTypeDef,
        WriteRequestTypeDef,
    )
    from mypy_boto3_s3 import S3Client

SHARDS = 8
COUNT_LIMIT = 10_000
INLINE_BYTES = 4096
# A queue keeps a message for 14 days at most; a redelivery after that cannot be.
CLAIM_LIFETIME = timedelta(days=15)
_Select = Literal["ALL_ATTRIBUTES", "COUNT"]
_DELETE_BATCH = 25
_TRANSACTION_BATCH = 50  # a transaction takes 100 items, and each of these is two
_DELETE_TRIES = 8
_FIRST_PAUSE = 0.05  # seconds


class PendingError(RuntimeError):
    """The table is too busy for now."""


class Pending:
    """The envelopes that wait, of all heavy actors of a mesh.

    Args:
        pause: waits about so many seconds: those who were refused together shall not return together.
    """

    def __init__(
        self,
        dynamodb: "DynamoDBClient",
        s3: "S3Client",
        *,
        table: str,
        bucket: str,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._dynamodb = dynamodb
        self._s3 = s3
        self._table = table
        self._bucket = bucket
        self._pause = pause

    def enqueue(
        self, actor: str, envelopes: "Sequence[tuple[Member, bytes]]", *, now: datetime
    ) -> list[bool | Exception]:
        """Make envelopes pending, each once; bodies over 4 KB wait in S3. Together, so that a burst costs few calls.

        Args:
            envelopes: each member without its envelope, and the stamped envelope; no attempt twice.

        Returns:
            For each: False if this attempt became pending before (a redelivery), or why it could not be settled now.
        """
        answers: list[bool | Exception] = [False] * len(envelopes)
        placed: list[tuple[int, Member]] = []
        for place, (member, body) in enumerate(envelopes):
            try:
                placed.append((place, self._stored(actor, member, body)))
            except (ClientError, BotoCoreError) as error:
                answers[place] = error
        for start in range(0, len(placed), _TRANSACTION_BATCH):
            some = placed[start : start + _TRANSACTION_BATCH]
            enqueued = self._enqueue_together(actor, [member for _, member in some], now)
            for (place, _), answer in zip(some, enqueued, strict=True):
                answers[place] = answer
        return answers

    def _enqueue_together(self, actor: str, members: Sequence[Member], now: datetime) -> Sequence[bool | Exception]:
        """All at once; where that cannot be, because one is a redelivery or the table is busy, one by one."""
        try:
            if self._put(actor, members, now):
                return [True] * len(members)
            if len(members) == 1:
                return [False]
        except (ClientError, BotoCoreError) as error:
            if len(members) == 1:
                return [error]
        return [answer for member in members for answer in self._enqueue_together(actor, [member], now)]

    def requeue(self, actor: str, members: Sequence[Member], *, now: datetime) -> None:
        """Make members of a run pending again, each once for this run; where they lie already, nothing happens.

        Args:
            members: as they are to be in the next run; `returned_by` is the run that they were in.

        Raises:
            botocore.exceptions.ClientError: not now; what was given back stays so.
        """
        for start in range(0, len(members), _TRANSACTION_BATCH):
            some = members[start : start + _TRANSACTION_BATCH]
            if not self._put(actor, some, now):
                for member in some:
                    self._put(actor, [member], now)

    def _put(self, actor: str, members: Sequence[Member], now: datetime) -> bool:
        """Claim them and have them wait, all together; or none, because one was claimed before.

        Raises:
            botocore.exceptions.ClientError: not now.
        """
        expires: AttributeValueTypeDef = {"N": str(int((now + CLAIM_LIFETIME).timestamp()))}
        items: list[TransactWriteItemTypeDef] = []
        for member in members:
            claim: dict[str, AttributeValueTypeDef] = {**_claim_key(member), "expires_at": expires}
            condition = "attribute_not_exists(pk)"
            items.append({"Put": {"TableName": self._table, "Item": claim, "ConditionExpression": condition}})
            items.append({"Put": {"TableName": self._table, "Item": _item(actor, member)}})
        try:
            self._dynamodb.transact_write_items(TransactItems=items)
        except ClientError as error:
            if failed_conditions(error):
                return False
            raise
        return True

    def members(self, actor: str) -> Iterator[Member]:
        """Everything that waits for this actor, oldest first, as a consistent read that goes only as far as it is followed."""
        shards = [self._shard(actor, number) for number in range(SHARDS)]
        for _, member in heapq.merge(*shards, key=lambda pair: pair[0]):
            yield member

    def has_any(self, actor: str) -> bool:
        """Whether anything waits for this actor."""
        return next(self.members(actor), None) is not None

    def count(self, actor: str) -> int:
        """How many wait for this actor, for people to see; beyond `COUNTED_AT_MOST` nobody counts on."""
        counted = 0
        for number in range(SHARDS):
            for page in self._pages(actor, number, "COUNT"):
                counted += page["Count"]
                if counted >= COUNT_LIMIT:
                    return counted
        return counted

    def remove(self, actor: str, members: Sequence[Member]) -> None:
        """Delete pending items: their envelopes are in a manifest, or have left. Doing it again changes nothing.

        Raises:
            PendingError: if the table did not take all of it.
        """
        for start in range(0, len(members), _DELETE_BATCH):
            some = members[start : start + _DELETE_BATCH]
            self._delete([{"DeleteRequest": {"Key": _pending_key(actor, member)}} for member in some])

    def body(self, member: Member) -> bytes:
        """The stamped envelope of a member, from wherever it waits."""
        if member.envelope is not msgspec.UNSET:
            return bytes(member.envelope)
        if member.envelope_key is None:
            raise ValueError(f"member {member.id} has neither an envelope nor the key of one")
        return self._s3.get_object(Bucket=self._bucket, Key=member.envelope_key)["Body"].read()

    def _stored(self, actor: str, member: Member, body: bytes) -> Member:
        if len(body) <= INLINE_BYTES:
            return replace(member, envelope=Raw(body))
        # An id may hold anything, and keys of S3 and file systems may not.
        digest = hashlib.sha256(_identity(member).encode("utf-8", "surrogatepass")).hexdigest()
        key = f"{PENDING_PREFIX}{actor}/{digest}.json"
        try:
            # A redelivery stamps anew; what may be in a manifest already must not change under it.
            self._s3.put_object(
                Bucket=self._bucket, Key=key, Body=body, ContentType="application/json", IfNoneMatch="*"
            )
        except ClientError as error:
            if not is_precondition_failure(error):
                raise
        return replace(member, envelope_key=key)

    def _shard(self, actor: str, number: int) -> Iterator[tuple[str, Member]]:
        for page in self._pages(actor, number):
            for item in page["Items"]:
                yield item["sk"]["S"], _member(item)

    def _pages(self, actor: str, number: int, select: _Select = "ALL_ATTRIBUTES") -> "Iterable[QueryOutputTypeDef]":
        return self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :shard",
            ExpressionAttributeValues={":shard": {"S": _shard_key(actor, number)}},
            ConsistentRead=True,
            Select=select,
        )

    def _delete(self, requests: "Sequence[WriteRequestTypeDef]") -> None:
        for turn in range(_DELETE_TRIES):
            answer = self._dynamodb.batch_write_item(RequestItems={self._table: requests})
            left = answer["UnprocessedItems"].get(self._table)
            if not left:
                return
            requests = [{"DeleteRequest": {"Key": request["DeleteRequest"]["Key"]}} for request in left]
            self._pause(_FIRST_PAUSE * 2**turn)
        raise PendingError(f"the table {self._table} is too busy to delete pending envelopes")


def _identity(member: Member) -> str:
    return f"{member.id}#{member.generation}#{member.position}#{member.attempt}"


def _claim_key(member: Member) -> "dict[str, AttributeValueTypeDef]":
    sort = f"{member.generation:04d}#{member.position:06d}#{member.attempt:06d}"
    if member.returned_by:
        sort += f"#{member.returned_by:0{NUMBER_DIGITS}d}"
    return {"pk": {"S": f"CLAIM#{member.id}"}, "sk": {"S": sort}}


def _pending_key(actor: str, member: Member) -> "dict[str, AttributeValueTypeDef]":
    shard = hashlib.sha256(member.id.encode("utf-8", "surrogatepass")).digest()[0] % SHARDS
    returned = f"#{member.returned_by}" if member.returned_by else ""
    return {
        "pk": {"S": _shard_key(actor, shard)},
        "sk": {"S": f"{member.admitted_at}#{_identity(member)}{returned}"},
    }


def _shard_key(actor: str, number: int) -> str:
    return f"PENDING#{actor}#{number:02d}"


def _item(actor: str, member: Member) -> "dict[str, AttributeValueTypeDef]":
    """The item of a member: its envelope as bytes beside the rest as JSON, so that reading it parses no payload."""
    rest = replace(member, envelope=msgspec.UNSET)
    item: dict[str, AttributeValueTypeDef] = {**_pending_key(actor, member), "member": {"B": msgspec.json.encode(rest)}}
    if member.envelope is not msgspec.UNSET:
        item["envelope"] = {"B": bytes(member.envelope)}
    return item


def _member(item: "dict[str, AttributeValueTypeDef]") -> Member:
    member = msgspec.json.decode(bytes(item["member"]["B"]), type=Member)
    return replace(member, envelope=Raw(bytes(item["envelope"]["B"]))) if "envelope" in item else member
