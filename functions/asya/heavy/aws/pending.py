"""The pending envelopes of heavy actors, and the rounds of their tenants (`protocol §10`, `§10.fair`).

Each envelope gets a round when it becomes pending: the one after the last round of its tenant, and after the last round that a
run has reached. So a tenant that was idle begins in the present round, and one with many envelopes is far ahead of it.

Keys in the table `asya-{namespace}-pending`:

- tenant: `ROUND#{actor}#{SHA-256 of the tenant}` / `tenant`, with its last round. Without it a tenant begins in the present
  round, so it may expire.
- actor: `ROUND#{actor}` / `reached`, with the highest round of a run.

Keys in the table `asya-{namespace}-pending`; stored items use them, so they never change:

- claim: `CLAIM#{id}` / `{generation:04d}#{position:06d}#{attempt:06d}`; it makes an attempt pending once. With a final
  `#{run:010d}` it makes an envelope that this run returned pending once.
- pending: `PENDING#{actor}#{shard:02d}` / `{admitted_at}#{id}#{generation}#{position}#{attempt}`. A returned envelope has a
  final `#{run}`, so a late deletion of that run's members does not delete it. With a round (`fair_by`) `{admitted_at}` is
  `round-{round:012d}#{admitted_at}`, so that the items of a shard are in the order of their rounds.
"""

import hashlib
import heapq
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Raw
from msgspec.structs import replace

from asya.function.aws.conditional_writes import put_if_absent
from asya.function.aws.table import Change, Query, Table, chunks, delete, in_partition, put, update, where
from asya.function.aws.table_items import Item, Key
from asya.function.nack import ServiceError
from asya.protocol.job_runs import NUMBER_DIGITS, Member, pending_prefix

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

_TRIES = 3
_LIFETIME = timedelta(days=15)


class TenantRounds:
    """The rounds of all heavy actors of a mesh."""

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str) -> None:
        self._table = Table(dynamodb, table)

    def take(self, actor: str, counts: Mapping[str, int], *, now: datetime) -> dict[str, int]:
        """Takes rounds for envelopes; a repetition takes later ones, which delays this tenant only.

        Args:
            counts: the number of envelopes of each tenant, 1 at least.

        Returns:
            The first round of each tenant; the next envelopes have the rounds after it.

        Raises:
            ClientError, BotoCoreError: the table cannot be read or written.
        """
        reached = self._table.get(_actor_key(actor), consistent=False).integer("round", 0)
        return {tenant: self._take(actor, tenant, count, reached, now) for tenant, count in counts.items()}

    def reach(self, actor: str, round_number: int) -> None:
        """Notes the highest round of a run that was formed.

        Raises:
            ClientError, BotoCoreError: the table cannot be written.
        """
        reached = update(_actor_key(actor), "SET #round = :round", round=round_number)
        self._table.write(reached.only_if("attribute_not_exists(#round) OR #round < :round"))

    def _take(self, actor: str, tenant: str, count: int, reached: int, now: datetime) -> int:
        key, expires = _tenant_key(actor, tenant), int((now + _LIFETIME).timestamp())
        further = update(key, "SET #round = #round + :count, expires_at = :expires", count=count, expires=expires)
        first = update(key, "SET #round = :last, expires_at = :expires", last=reached + count, expires=expires)
        for _ in range(_TRIES):  # two functions may begin with an idle tenant at the same time
            ahead = self._write(further.only_if("#round >= :reached", reached=reached))
            if ahead is not None:
                return ahead - count + 1
            begun = self._write(first.only_if("attribute_not_exists(#round) OR #round < :reached", reached=reached))
            if begun is not None:
                return reached + 1
        return reached + 1  # others won each write; the order is for fairness only

    def _write(self, change: Change) -> int | None:
        """The new round; None if the condition fails."""
        return self._table.write(change, returns="ALL_NEW").item.integer("round", None)


def _actor_key(actor: str) -> Key:
    return Key(f"ROUND#{actor}", "reached")


def _tenant_key(actor: str, tenant: str) -> Key:
    digest = hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()
    return Key(f"ROUND#{actor}#{digest}", "tenant")


SHARDS = 8
COUNT_LIMIT = 10_000
INLINE_BYTES = 4096
# A queue keeps a message for 14 days at most, so no redelivery comes later.
CLAIM_LIFETIME = timedelta(days=15)
_DELETE_BATCH = 25
_TRANSACTION_BATCH = 50  # a transaction takes 100 items, and an envelope has two
_ROUND = "round-"  # behind every time
_DELETE_TRIES = 8


class PendingError(ServiceError):
    """DynamoDB throttles the table; retry later."""


class Pending:
    """The pending envelopes of all heavy actors of a mesh.

    Args:
        pause: sleeps for about so many seconds, with jitter, so throttled callers do not retry in lockstep.
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
        self._table = Table(dynamodb, table)
        self._s3 = s3
        self._bucket = bucket
        self._pause = pause

    def store(self, actor: str, member: Member, body: bytes) -> Member:
        """The member with its stamped envelope: inline up to 4 KiB, otherwise as an object in S3.

        Args:
            member: a member without its envelope.

        Raises:
            ClientError, BotoCoreError: the object cannot be written.
        """
        if len(body) <= INLINE_BYTES:
            return replace(member, envelope=Raw(body))
        # An id may contain characters that keys of S3 and file names cannot.
        digest = hashlib.sha256(_identity(member).encode("utf-8", "surrogatepass")).hexdigest()
        key = f"{pending_prefix(actor)}{digest}.json"
        # A redelivery is stamped again, and a manifest may reference the first object: it must not change.
        put_if_absent(self._s3, bucket=self._bucket, key=key, body=body, pause=self._pause)
        return replace(member, envelope_key=key)

    def enqueue(self, actor: str, members: Sequence[Member], *, now: datetime) -> list[bool | Exception]:
        """Makes stored members pending, each attempt once, in few transactions.

        Args:
            members: members as `store` returned them; no attempt twice.

        Returns:
            For each member True, False if this attempt became pending before (a redelivery), or the error.
        """
        answers: list[bool | Exception] = []
        for batch in chunks(members, _TRANSACTION_BATCH):
            answers += self._enqueue_together(actor, batch, now)
        return answers

    def _enqueue_together(self, actor: str, members: Sequence[Member], now: datetime) -> Sequence[bool | Exception]:
        """Writes all in one transaction; if that fails (a redelivery, a throttled table), one by one."""
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
        """Makes members of a run pending again, each once for this run; idempotent.

        Args:
            members: the members of the next run; `returned_by` is the number of their last run.

        Raises:
            botocore.exceptions.ClientError: if a write fails; earlier batches stay pending.
        """
        for batch in chunks(members, _TRANSACTION_BATCH):
            if not self._put(actor, batch, now):
                for member in batch:
                    self._put(actor, [member], now)

    def _put(self, actor: str, members: Sequence[Member], now: datetime) -> bool:
        """Claims members and makes them pending in one transaction; False if one was claimed before.

        Raises:
            botocore.exceptions.ClientError: if the write fails for another reason.
        """
        expires_at = int((now + CLAIM_LIFETIME).timestamp())
        changes: list[Change] = []
        for member in members:
            changes.append(put(_claim_key(member), {"expires_at": expires_at}).if_absent())
            changes.append(_put_pending(actor, member))
        return bool(self._table.transact(changes))

    def members(self, actor: str) -> Iterator[Member]:
        """The pending envelopes of an actor, oldest first, or in the order of their rounds; consistent reads, page by page.

        If only some of them have rounds, because `fair_by` is new or was removed, both kinds take turns.
        """
        in_turns = (self._in_order(actor, condition) for condition in ("sk < :round", "sk >= :round"))
        for pair in zip_longest(*in_turns):
            yield from (member for member in pair if member is not None)

    def has_any(self, actor: str) -> bool:
        """Whether an envelope of this actor is pending."""
        return next(self.members(actor), None) is not None

    def count(self, actor: str) -> int:
        """The number of pending envelopes, for a metric; counting stops soon after `COUNT_LIMIT`."""
        counted = 0
        for number in range(SHARDS):
            for count in self._table.counts(_shard(actor, number)):
                counted += count
                if counted >= COUNT_LIMIT:
                    return counted
        return counted

    def remove(self, actor: str, members: Sequence[Member]) -> None:
        """Deletes pending items whose envelopes are in a manifest or diverted; idempotent.

        Raises:
            PendingError: if the table stays throttled.
        """
        for batch in chunks(members, _DELETE_BATCH):
            deletions = [delete(_pending_key(actor, member)) for member in batch]
            if self._table.write_many(deletions, pause=self._pause, tries=_DELETE_TRIES):
                raise PendingError(f"the table {self._table.name} is throttled; pending envelopes were not deleted")

    def body(self, member: Member) -> bytes:
        """The stamped envelope of a member, from its item or from S3."""
        if member.envelope is not msgspec.UNSET:
            return bytes(member.envelope)
        if member.envelope_key is None:
            raise ValueError(f"member {member.id} has neither 'envelope' nor 'envelope_key'")
        return self._s3.get_object(Bucket=self._bucket, Key=member.envelope_key)["Body"].read()

    def _in_order(self, actor: str, condition: str) -> Iterator[Member]:
        """The envelopes whose sort keys meet a condition, in the order of these keys."""
        shards = [self._shard(_shard(actor, number, condition)) for number in range(SHARDS)]
        for _, member in heapq.merge(*shards, key=lambda pair: pair[0]):
            yield member

    def _shard(self, query: Query) -> Iterator[tuple[str, Member]]:
        return ((item.key.sk, _member(item)) for item in self._table.query(query))


def _shard(actor: str, number: int, condition: str = "") -> Query:
    if not condition:
        return in_partition(_shard_key(actor, number))
    return where(f"pk = :shard AND {condition}", shard=_shard_key(actor, number), round=_ROUND)


def _identity(member: Member) -> str:
    return f"{member.id}#{member.generation}#{member.position}#{member.attempt}"


def _claim_key(member: Member) -> Key:
    sort = f"{member.generation:04d}#{member.position:06d}#{member.attempt:06d}"
    if member.returned_by:
        sort += f"#{member.returned_by:0{NUMBER_DIGITS}d}"
    return Key(f"CLAIM#{member.id}", sort)


def _pending_key(actor: str, member: Member) -> Key:
    shard = hashlib.sha256(member.id.encode("utf-8", "surrogatepass")).digest()[0] % SHARDS
    returned = f"#{member.returned_by}" if member.returned_by else ""
    turn = f"{_ROUND}{member.round:012d}#" if member.round else ""
    return Key(_shard_key(actor, shard), f"{turn}{member.admitted_at}#{_identity(member)}{returned}")


def _shard_key(actor: str, number: int) -> str:
    return f"PENDING#{actor}#{number:02d}"


def _put_pending(actor: str, member: Member) -> Change:
    """Write the item of a member: the envelope as bytes beside the other fields, so that a read parses no payload."""
    rest = msgspec.json.encode(replace(member, envelope=msgspec.UNSET))
    envelope = None if member.envelope is msgspec.UNSET else bytes(member.envelope)
    return put(_pending_key(actor, member), {"member": rest, "envelope": envelope})


def _member(item: Item) -> Member:
    member = msgspec.json.decode(item.data("member"), type=Member)
    return replace(member, envelope=Raw(item.data("envelope"))) if "envelope" in item else member
