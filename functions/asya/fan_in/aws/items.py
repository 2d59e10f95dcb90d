"""The items of the table of sets: their keys, and what stands in a set's own item (`protocol §9`)."""

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
# Open sets are spread over so many keys of the index: a single one would be a bottleneck of the whole table.
OPEN_SHARDS = 16

_SLICE, _ENDED = "slice#", "ended#"
_decision_decoder = msgspec.json.Decoder(Decision)
_error_decoder: msgspec.json.Decoder[ErrorInfo | None] = msgspec.json.Decoder(ErrorInfo | None)


@dataclass(frozen=True, slots=True)
class SetRecord:
    """A set's own item.

    Attributes:
        look_until: a look at the clock is on its way until then (seconds since 1970).
        lease_until: somebody is finishing the set until then.
    """

    set_id: str
    state: SetState
    look_until: float = 0.0
    lease_until: float = 0.0


@dataclass(frozen=True, slots=True)
class OpenSet:
    """An entry of the index of open sets."""

    set_id: str
    actor: str
    due_at: datetime


def set_key(set_id: str) -> "Item":
    """The set's own item."""
    return {"pk": {"S": set_id}, "sk": {"S": "set"}}


def slice_key(set_id: str, index: int) -> "Item":
    """A stored slice."""
    return {"pk": {"S": set_id}, "sk": {"S": f"{_SLICE}{index:06d}"}}


def ended_key(set_id: str, index: int) -> "Item":
    """The note that a slice ended without a result."""
    return {"pk": {"S": set_id}, "sk": {"S": f"{_ENDED}{index:06d}"}}


def slice_prefix() -> "AttributeValueTypeDef":
    """What the sort keys of all stored slices begin with."""
    return {"S": _SLICE}


def slice_index(item: "Item") -> int:
    """Which slice a stored slice's item is."""
    return int(item["sk"]["S"].removeprefix(_SLICE))


def shard_of(set_id: str) -> str:
    """Where in the index a set is."""
    return shard_name(zlib.crc32(set_id.encode("utf-8", "surrogatepass")) % OPEN_SHARDS)


def shard_name(shard: int) -> str:
    """A key of the index."""
    return f"{shard:02d}"


def number(value: float) -> "AttributeValueTypeDef":
    """Seconds since 1970, or a count."""
    return {"N": str(value)}


def set_record(set_id: str, item: "Item") -> SetRecord:
    """What a set's item says."""
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
    """A decision as text."""
    return {"S": msgspec.json.encode(decision).decode()}


def error_value(error: ErrorInfo | None) -> "AttributeValueTypeDef":
    """An error as text."""
    return {"S": msgspec.json.encode(error).decode()}


def error_of(item: "Item") -> ErrorInfo | None:
    """The error of a slice that ended without a result."""
    return _error_decoder.decode(item["error"]["S"])


def open_set(item: "Item") -> OpenSet:
    """An entry of the index."""
    return OpenSet(item["pk"]["S"], item["actor"]["S"], parse_time(item["due_at"]["S"]))


def _numbers(item: "Item", name: str) -> frozenset[int]:
    return frozenset(int(text) for text in item[name]["NS"]) if name in item else frozenset()


def _seconds(item: "Item", name: str) -> float:
    return float(item[name]["N"]) if name in item else 0.0
