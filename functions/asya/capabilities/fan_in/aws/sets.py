"""The table of sets, `asya-{namespace}-fan-in` (`protocol §9`): items, sets, and repeats of fan-outs.

A slice is stored first (`slice_store`) and counted second. The set's item counts slices in DynamoDB number sets, so adding a
slice is idempotent, and a redelivery after a crash repeats both writes. A transaction would conflict with the concurrent
slices of the same set. Each write returns the set after it, so exactly one of many concurrent arrivals completes the set.

The index `open` lists the unfinished sets by `open_in` (a shard) and `due_at`.

Only the gateway writes the records of repeated fan-outs (`protocol §12.set`). So nobody who can send to a queue can
read the results of another task.
"""

import zlib
from collections.abc import Iterator, Set
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from asya.capabilities.fan_in.sets import Decision, SetRepeat, SetState
from asya.function.aws.table import Query, Table, in_partition, put, update, where
from asya.function.aws.table_items import Item, Key, Value
from asya.protocol.errors import ErrorInfo
from asya.protocol.headers import MAX_SLICES
from asya.protocol.slices import TOO_MANY_SLICES
from asya.protocol.table_keys import OPEN_INDEX
from asya.protocol.times import format_time, parse_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Open sets are spread over this many index keys: a single key would be a hot partition.
OPEN_SHARDS = 16

# So many slices of a set share a partition key. At 5 write units for each, that is 2 seconds of what a key takes.
SLICES_PER_SHARD = 320
# The shards of the largest fan-out; a made-up `slice_count` causes no more reads than these.
SHARD_LIMIT = 16

# The sort keys in the first shard, whose partition key is the set's own, and in the others.
_SLICE, _ENDED = ("slice#", "part#"), ("ended#", "part-ended#")
_decision_decoder = msgspec.json.Decoder(Decision)
_error_decoder: msgspec.json.Decoder[ErrorInfo | None] = msgspec.json.Decoder(ErrorInfo | None)


@dataclass(frozen=True, slots=True)
class SetRecord:
    """A set's own item.

    Attributes:
        check_until: when the pending timeout check is due at the latest (seconds since 1970).
        lease_until: when the lease for finishing the set ends (seconds since 1970).
    """

    set_id: str
    state: SetState
    check_until: float = 0.0
    lease_until: float = 0.0


@dataclass(frozen=True, slots=True)
class OpenSet:
    """An entry of the index of open sets."""

    set_id: str
    actor: str
    due_at: datetime


def set_key(set_id: str) -> Key:
    """The key of the set's own item."""
    return Key(set_id, "set")


def repeat_key(record_id: str) -> Key:
    """The key of the record that a set repeats a fan-out."""
    return Key(record_id, "repeat")


def shard_count(slice_count: int) -> int:
    """The partition keys over which the slices of a set are spread."""
    return min(SHARD_LIMIT, max(1, -(-slice_count // SLICES_PER_SHARD)))


def slice_key(set_id: str, index: int, slice_count: int) -> Key:
    """The key of a stored slice."""
    return _key(set_id, _SLICE, index, index % shard_count(slice_count))


def ended_key(set_id: str, index: int, slice_count: int) -> Key:
    """The key of the mark that a slice ended without a result."""
    return _key(set_id, _ENDED, index, index % shard_count(slice_count))


def slices_of(set_id: str, shard: int) -> Query:
    """The stored slices of a shard."""
    return in_partition(_partition(set_id, shard), _SLICE[shard > 0])


def slice_index(item: Item) -> int:
    """The index of a stored slice, from its sort key."""
    return int(item.key.sk.partition("#")[2])


def _key(set_id: str, prefixes: tuple[str, str], index: int, shard: int) -> Key:
    return Key(_partition(set_id, shard), f"{prefixes[shard > 0]}{index:06d}")


def _partition(set_id: str, shard: int) -> str:
    """The partition key of a shard. Another set may have this id, so the sort keys differ too."""
    return f"{set_id}#{shard}" if shard else set_id


def shard_of(set_id: str) -> str:
    """The index key of a set."""
    return shard_name(zlib.crc32(set_id.encode("utf-8", "surrogatepass")) % OPEN_SHARDS)


def shard_name(shard: int) -> str:
    """The index key of a shard."""
    return f"{shard:02d}"


def set_record(set_id: str, item: Item) -> SetRecord:
    """Read a set's item."""
    state = SetState(
        slice_count=item.integer("slice_count"),
        arrived=item.integers("arrived"),
        lost=item.integers("lost"),
        due_at=parse_time(item.text("due_at")),
        decision=_decision_decoder.decode(item.text("decision")) if "decision" in item else None,
        delivered="delivered" in item,
    )
    return SetRecord(set_id, state, item.number("look_until", 0.0), item.number("lease_until", 0.0))


def json_text(value: Decision | ErrorInfo | SetRepeat | None) -> str:
    """A structure as the text of an attribute."""
    return msgspec.json.encode(value).decode()


def error_of(item: Item) -> ErrorInfo | None:
    """Read the error of a slice that ended without a result."""
    return _error_decoder.decode(item.text("error"))


def open_set(item: Item) -> OpenSet:
    """Read an entry of the index of open sets."""
    return OpenSet(item.key.pk, item.text("actor"), parse_time(item.text("due_at")))


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
            shard=shard_of(set_id),
            **counted,
        )
        known_count = record.state.slice_count
        if known_count != slice_count:
            first = min(arrived | lost)
            raise SliceCountError(f"set {set_id} has {known_count} slices, but slice {first} states {slice_count}")
        return record

    def get(self, set_id: str) -> SetRecord | None:
        """Read a set consistently; None if it is unknown."""
        item = self._table.get(set_key(set_id))
        return set_record(set_id, item) if item else None

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
            decision=json_text(decision),
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
            query = where("open_in = :shard", shard=shard_name(shard), index=OPEN_INDEX)
            yield from map(open_set, self._table.query(query))

    def _change(self, set_id: str, expression: str, condition: str = "", /, **values: Value) -> tuple[SetRecord, bool]:
        """Change an existing set; results and errors as in `_update`."""
        exists = "attribute_exists(slice_count)"
        return self._update(set_id, expression, f"{exists} AND {condition}" if condition else exists, **values)

    def _update(self, set_id: str, expression: str, condition: str, /, **values: Value) -> tuple[SetRecord, bool]:
        """Update the set's item if the condition holds; returns the current item and whether it was updated.

        Raises:
            UnknownSetError: the set has no item.
        """
        change = update(set_key(set_id), expression).only_if(condition, **values)
        written = self._table.write(change, returns="ALL_NEW", shows_present=True)
        if not written.item:
            raise UnknownSetError(f"set {set_id} is not known; it may have expired")
        return set_record(set_id, written.item), written.is_written


_decoder = msgspec.json.Decoder(SetRepeat)


class SetRepeats:
    """Writes and reads the record of a new set; idempotent.

    Raises:
        botocore.exceptions.ClientError: from both methods, if the call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str) -> None:
        self._table = Table(dynamodb, table)

    def save(self, record_id: str, repeat: SetRepeat, *, expires_at: float) -> None:
        """Record what a new set repeats.

        Args:
            record_id: see `repeats.record_id`.
            expires_at: seconds since 1970.
        """
        key = repeat_key(record_id)
        self._table.write(put(key, {"repeat": json_text(repeat), "expires_at": int(expires_at)}))

    def load(self, record_id: str) -> SetRepeat | None:
        """Read what a new set repeats; None if nothing is recorded."""
        item = self._table.get(repeat_key(record_id))
        return _decoder.decode(item.text("repeat")) if item else None
