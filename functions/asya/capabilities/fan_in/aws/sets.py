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

from asya.capabilities.fan_in.aws import items
from asya.capabilities.fan_in.aws.items import OPEN_SHARDS, OpenSet, SetRecord
from asya.capabilities.fan_in.sets import Decision
from asya.function.aws.table import Table, update, where
from asya.function.aws.table_items import Value
from asya.protocol.headers import MAX_SLICES
from asya.protocol.slices import TOO_MANY_SLICES
from asya.protocol.table_keys import OPEN_INDEX
from asya.protocol.times import format_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

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
        self._table = Table(dynamodb, table)

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
        counted = {name: each for name, each in (("arrived", arrived), ("lost", lost)) if each}
        additions = ", ".join(f"{name} :{name}" for name in counted)
        # The expiry stays with its timeout: a process that counts late has an older one.
        set_times = "due_at = if_not_exists(due_at, :due), expires_at = if_not_exists(expires_at, :expires)"
        if times.is_of_origin:
            set_times = "due_at = :due, expires_at = :expires"
        record, _ = self._update(
            set_id,
            f"SET slice_count = :count, actor = :actor, {set_times}, open_in = :shard ADD {additions}",
            "attribute_not_exists(delivered) AND (attribute_not_exists(slice_count) OR slice_count = :count)",
            count=slice_count,
            actor=actor,
            expires=int(times.expires_at),
            due=format_time(times.due_at),
            shard=items.shard_of(set_id),
            **counted,
        )
        known_count = record.state.slice_count
        if known_count != slice_count:
            first = min(arrived | lost)
            raise SliceCountError(f"set {set_id} has {known_count} slices, but slice {first} states {slice_count}")
        return record

    def get(self, set_id: str) -> SetRecord | None:
        """Read a set consistently; None if it is unknown."""
        item = self._table.get(items.set_key(set_id))
        return items.set_record(set_id, item) if item else None

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
            "attribute_not_exists(decision)",
            decision=items.json_text(decision),
            until=until,
        )

    def take_lease(self, set_id: str, *, epoch_seconds: float) -> float | None:
        """Lease a decided set in order to finish it, and return the end of the lease; None if it is leased or delivered.

        The lease only saves duplicate work. Correctness does not depend on it.
        """
        until = epoch_seconds + LEASE_SECONDS
        _, is_leased = self._change(
            set_id,
            "SET lease_until = :until",
            "attribute_not_exists(delivered) AND lease_until < :now",
            until=until,
            now=epoch_seconds,
        )
        return until if is_leased else None

    def release_lease(self, set_id: str, *, until: float) -> None:
        """Release the lease after a failed attempt to finish the set, unless another process has taken it over.

        Args:
            until: the end of the lease.
        """
        self._change(set_id, "SET lease_until = :never", "lease_until = :mine", never=0, mine=until)

    def mark_delivered(self, set_id: str, *, expires_at: float) -> None:
        """Mark a set as delivered: its item becomes a tombstone."""
        self._change(
            set_id,
            "SET delivered = :yes, expires_at = :expires REMOVE open_in",
            yes=True,
            expires=int(expires_at),
        )

    def leave_index(self, set_id: str) -> None:
        """Remove a set from the index of open sets; only a late slice 0 can still finish it."""
        self._change(set_id, "REMOVE open_in")

    def record_check(self, set_id: str, until: float) -> None:
        """Record when the pending timeout check is due at the latest (seconds since 1970)."""
        self._change(set_id, "SET look_until = :until", until=until)

    def open_sets(self) -> Iterator[OpenSet]:
        """The unfinished sets; the index is eventually consistent."""
        for shard in range(OPEN_SHARDS):
            query = where("open_in = :shard", shard=items.shard_name(shard), index=OPEN_INDEX)
            yield from map(items.open_set, self._table.query(query))

    def _change(self, set_id: str, expression: str, condition: str = "", /, **values: Value) -> tuple[SetRecord, bool]:
        """Change an existing set; results and errors as in `_update`."""
        exists = "attribute_exists(slice_count)"
        return self._update(set_id, expression, f"{exists} AND {condition}" if condition else exists, **values)

    def _update(self, set_id: str, expression: str, condition: str, /, **values: Value) -> tuple[SetRecord, bool]:
        """Update the set's item if the condition holds; returns the current item and whether it was updated.

        Raises:
            UnknownSetError: the set has no item.
        """
        change = update(items.set_key(set_id), expression).only_if(condition, **values)
        written = self._table.write(change, returns="ALL_NEW", shows_present=True)
        if not written.item:
            raise UnknownSetError(f"set {set_id} is not known; it may have expired")
        return items.set_record(set_id, written.item), written.is_written
