"""Keys and attributes of the items in the table of sets (`protocol §9`)."""

import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from asya.fan_in.sets import Decision, SetState
from asya.protocol.errors import ErrorInfo
from asya.protocol.times import parse_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    Item = dict[str, AttributeValueTypeDef]

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


def set_key(set_id: str) -> "Item":
    """The key of the set's own item."""
    return {"pk": {"S": set_id}, "sk": {"S": "set"}}


def repeat_key(record_id: str) -> "Item":
    """The key of the record that a set repeats a fan-out."""
    return {"pk": {"S": record_id}, "sk": {"S": "repeat"}}


def shard_count(slice_count: int) -> int:
    """The partition keys over which the slices of a set are spread."""
    return min(SHARD_LIMIT, max(1, -(-slice_count // SLICES_PER_SHARD)))


def slice_key(set_id: str, index: int, slice_count: int) -> "Item":
    """The key of a stored slice."""
    return _key(set_id, _SLICE, index, index % shard_count(slice_count))


def ended_key(set_id: str, index: int, slice_count: int) -> "Item":
    """The key of the mark that a slice ended without a result."""
    return _key(set_id, _ENDED, index, index % shard_count(slice_count))


def slice_prefix(set_id: str, shard: int) -> "Item":
    """The partition key of a shard and the sort key prefix of its stored slices."""
    return {"pk": {"S": _partition(set_id, shard)}, "sk": {"S": _SLICE[shard > 0]}}


def slice_index(item: "Item") -> int:
    """The index of a stored slice, from its sort key."""
    return int(item["sk"]["S"].partition("#")[2])


def _key(set_id: str, prefixes: tuple[str, str], index: int, shard: int) -> "Item":
    return {"pk": {"S": _partition(set_id, shard)}, "sk": {"S": f"{prefixes[shard > 0]}{index:06d}"}}


def _partition(set_id: str, shard: int) -> str:
    """The partition key of a shard. Another set may have this id, so the sort keys differ too."""
    return f"{set_id}#{shard}" if shard else set_id


def shard_of(set_id: str) -> str:
    """The index key of a set."""
    return shard_name(zlib.crc32(set_id.encode("utf-8", "surrogatepass")) % OPEN_SHARDS)


def shard_name(shard: int) -> str:
    """The index key of a shard."""
    return f"{shard:02d}"


def number(value: float) -> "AttributeValueTypeDef":
    """A number as an attribute value."""
    return {"N": str(value)}


def set_record(set_id: str, item: "Item") -> SetRecord:
    """Read a set's item."""
    state = SetState(
        slice_count=int(item["slice_count"]["N"]),
        arrived=_numbers(item, "arrived"),
        lost=_numbers(item, "lost"),
        due_at=parse_time(item["due_at"]["S"]),
        decision=_decision_decoder.decode(item["decision"]["S"]) if "decision" in item else None,
        delivered="delivered" in item,
    )
    return SetRecord(set_id, state, _seconds(item, "look_until"), _seconds(item, "lease_until"))


def decision_value(decision: Decision) -> "AttributeValueTypeDef":
    """A decision as JSON text."""
    return {"S": msgspec.json.encode(decision).decode()}


def error_value(error: ErrorInfo | None) -> "AttributeValueTypeDef":
    """An error as JSON text."""
    return {"S": msgspec.json.encode(error).decode()}


def error_of(item: "Item") -> ErrorInfo | None:
    """Read the error of a slice that ended without a result."""
    return _error_decoder.decode(item["error"]["S"])


def open_set(item: "Item") -> OpenSet:
    """Read an entry of the index of open sets."""
    return OpenSet(item["pk"]["S"], item["actor"]["S"], parse_time(item["due_at"]["S"]))


def _numbers(item: "Item", name: str) -> frozenset[int]:
    return frozenset(int(text) for text in item[name]["NS"]) if name in item else frozenset()


def _seconds(item: "Item", name: str) -> float:
    return float(item[name]["N"]) if name in item else 0.0
