"""The table of sets, `asya-{namespace}-fan-in` (`protocol §9`): the items of the sets themselves.

A slice is stored first (`slice_store`) and counted second. The set's item counts slices in DynamoDB number sets, so adding a
slice is idempotent, and a redelivery after a crash repeats both writes. A transaction would conflict with the concurrent
slices of the same set. Each write returns the set after it, so exactly one of many concurrent arrivals completes the set.

The index `open` lists the unfinished sets by `open_in` (a shard) and `due_at`.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.fan_in.aws import items
from asya.fan_in.aws.items import OPEN_SHARDS, OpenSet, SetRecord
from asya.fan_in.sets import Decision
from asya.messaging.aws.conditional_writes import is_condition_failure
from asya.protocol.headers import MAX_SLICES
from asya.protocol.slices import TOO_MANY_SLICES
from asya.protocol.table_keys import OPEN_INDEX
from asya.protocol.times import format_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, UpdateItemInputTypeDef

    Item = dict[str, AttributeValueTypeDef]

# How long one process may take to finish a set before another one may try.
LEASE_SECONDS = 60.0


class SliceCountError(ValueError):
    """A slice states another `slice_count` than the earlier slices of its set, or one that no set may have."""


class UnknownSetError(LookupError):
    """The table has no such set, or it has expired."""


@dataclass(frozen=True, slots=True)
class SetTimes:
    """The timeout of a set, fixed by its first slice, and the expiry of its state.

    Attributes:
        expires_at: seconds since 1970.
        is_of_origin: whether slice 0 states this timeout, which then replaces that of another slice.
    """

    due_at: datetime
    expires_at: float
    is_of_origin: bool = False


class FanInSets:
    """Reads and writes the items of sets. Every write is idempotent.

    Raises:
        botocore.exceptions.ClientError: from every method, if a call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def count(
        self,
        set_id: str,
        slice_count: int,
        *,
        arrived: Set[int] = frozenset(),
        lost: Set[int] = frozenset(),
        actor: str,
        times: SetTimes,
    ) -> SetRecord:
        """Count stored slices and ended slices with one write; a delivered set stays unchanged.

        Args:
            slice_count: the number of slices that these slices state.
            arrived: the indices of stored slices.
            lost: the indices of slices that ended without a result.
            actor: the fan-in actor.

        Returns:
            The set after the write.

        Raises:
            SliceCountError: the set has another `slice_count`, or this one is too large.
        """
        if slice_count > MAX_SLICES:
            raise SliceCountError(f"set {set_id}: {TOO_MANY_SLICES}")
        counted = {":arrived": arrived, ":lost": lost}
        values: Item = {name: {"NS": [str(index) for index in sorted(each)]} for name, each in counted.items() if each}
        additions = ", ".join(f"{name.removeprefix(':')} {name}" for name in values)
        # The expiry stays with its timeout: a process that counts late has an older one.
        set_times = "due_at = if_not_exists(due_at, :due), expires_at = if_not_exists(expires_at, :expires)"
        if times.is_of_origin:
            set_times = "due_at = :due, expires_at = :expires"
        record, _ = self._update(
            set_id,
            f"SET slice_count = :count, actor = :actor, {set_times}, open_in = :shard ADD {additions}",
            {
                ":count": items.number(slice_count),
                ":actor": {"S": actor},
                ":expires": items.number(int(times.expires_at)),
                ":due": {"S": format_time(times.due_at)},
                ":shard": {"S": items.shard_of(set_id)},
                **values,
            },
            "attribute_not_exists(delivered) AND (attribute_not_exists(slice_count) OR slice_count = :count)",
        )
        known_count = record.state.slice_count
        if known_count != slice_count:
            first = min(arrived | lost)
            raise SliceCountError(f"set {set_id} has {known_count} slices, but slice {first} states {slice_count}")
        return record

    def get(self, set_id: str) -> SetRecord | None:
        """Read a set consistently; None if it is unknown."""
        item = self._dynamodb.get_item(TableName=self._table, Key=items.set_key(set_id), ConsistentRead=True).get(
            "Item"
        )
        return items.set_record(set_id, item) if item is not None else None

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

    def take_lease(self, set_id: str, *, epoch_seconds: float) -> float | None:
        """Lease a decided set in order to finish it, and return the end of the lease; None if it is leased or delivered.

        The lease only saves duplicate work. Correctness does not depend on it.
        """
        until = epoch_seconds + LEASE_SECONDS
        _, is_leased = self._change(
            set_id,
            "SET lease_until = :until",
            {":until": items.number(until), ":now": items.number(epoch_seconds)},
            condition="attribute_not_exists(delivered) AND lease_until < :now",
        )
        return until if is_leased else None

    def release_lease(self, set_id: str, *, until: float) -> None:
        """Release the lease after a failed attempt to finish the set, unless another process has taken it over.

        Args:
            until: the end of the lease.
        """
        values = {":never": items.number(0), ":mine": items.number(until)}
        self._change(set_id, "SET lease_until = :never", values, condition="lease_until = :mine")

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
