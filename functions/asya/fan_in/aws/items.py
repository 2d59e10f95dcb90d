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

OPEN_INDEX = "open"
# Open sets are spread over this many index keys: a single key would be a hot partition.
OPEN_SHARDS = 16

_SLICE, _ENDED = "slice#", "ended#"
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


def slice_key(set_id: str, index: int) -> "Item":
    """The key of a stored slice."""
    return {"pk": {"S": set_id}, "sk": {"S": f"{_SLICE}{index:06d}"}}


def ended_key(set_id: str, index: int) -> "Item":
    """The key of the mark that a slice ended without a result."""
    return {"pk": {"S": set_id}, "sk": {"S": f"{_ENDED}{index:06d}"}}


def slice_prefix() -> "AttributeValueTypeDef":
    """The sort key prefix of all stored slices."""
    return {"S": _SLICE}


def slice_index(item: "Item") -> int:
    """The index of a stored slice, from its sort key."""
    return int(item["sk"]["S"].removeprefix(_SLICE))


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
