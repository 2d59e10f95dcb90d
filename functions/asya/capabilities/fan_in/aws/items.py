"""Keys and attributes of the items in the table of sets (`protocol §9`)."""

import zlib
from dataclasses import dataclass
from datetime import datetime

import msgspec

from asya.capabilities.fan_in.repeats import SetRepeat
from asya.capabilities.fan_in.sets import Decision, SetState
from asya.function.aws.table import Query, in_partition
from asya.function.aws.table_items import Item, Key
from asya.protocol.errors import ErrorInfo
from asya.protocol.times import parse_time

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
