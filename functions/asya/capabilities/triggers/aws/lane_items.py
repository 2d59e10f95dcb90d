"""Converts lanes, decisions and payloads of starts to items of the tasks table and back (`protocol §16.lane.state`).

No sort key is one of a task, whose sender may choose any id.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from asya.capabilities.triggers.lanes import Entry, Lane, LaneKey, Start, check_time
from asya.capabilities.triggers.occurrences import Occurrence
from asya.protocol.task import StartedBy
from asya.protocol.times import format_time
from asya.tasks.aws.items import WAITING_SHARDS, waiting_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    from asya.tasks.aws.items import Item

    NewItem = dict[str, AttributeValueTypeDef]

LANE = "trigger#lane"
DECIDED = "trigger#decided"
QUEUED_PREFIX = "trigger#queued#"
WAITS_IN = "trigger"
"""The state in the index `waiting`."""
# An item may have 400 KB, and a message of SQS 1 MiB.
_PART = 256 * 1024
_PAYLOAD_PREFIX = "trigger#payload#"
_lane_decoder = msgspec.json.Decoder(Lane)
_start_decoder = msgspec.json.Decoder(Start)
_started_by_decoder = msgspec.json.Decoder(StartedBy)


@dataclass(frozen=True, slots=True)
class StoredLane:
    """A lane with the number of its writes; 0 for one that nobody has written."""

    lane: Lane
    revision: int
    expires_at: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """The lane that an occurrence, or a window, belongs to, and what was decided."""

    lane: LaneKey
    outcome: str


def partition(digest: str) -> str:
    """The partition of a lane, or of a decision."""
    return f"TRIGGER#{digest}"


def lane_key(key: LaneKey) -> "NewItem":
    """The key of the item of a lane."""
    return {"pk": {"S": partition(key.digest)}, "sk": {"S": LANE}}


def decision_key(task_id: str) -> "NewItem":
    """The key of the decision about an occurrence."""
    return {"pk": {"S": partition(task_id)}, "sk": {"S": DECIDED}}


def lane_item(key: LaneKey, lane: Lane, revision: int, now: datetime, expires_at: int) -> "NewItem":
    """The item of a lane. One that waits for something is in the index `waiting`."""
    item = lane_key(key) | {
        "trigger": {"S": key.trigger},
        "state": {"S": msgspec.json.encode(lane).decode()},
        "revision": {"N": str(revision)},
        "expires_at": {"N": str(expires_at)},
    }
    if (since := check_time(lane, format_time(now))) is not None:
        shard = zlib.crc32(key.digest.encode()) % WAITING_SHARDS
        item |= {"waits_in": {"S": waiting_key(WAITS_IN, shard)}, "waits_since": {"S": since}}
    return item


def stored_lane(item: "Item") -> StoredLane:
    """Decode a lane."""
    lane = _lane_decoder.decode(item["state"]["S"])
    return StoredLane(lane, int(item["revision"]["N"]), int(item["expires_at"]["N"]))


def key_of(item: "Item") -> LaneKey:
    """The key of the lane of an item."""
    return LaneKey(item["trigger"]["S"], item["pk"]["S"].removeprefix(partition("")))


def decision_item(task_id: str, key: LaneKey, outcome: str, expires_at: int) -> "NewItem":
    """The item of a decision."""
    return decision_key(task_id) | {
        "trigger": {"S": key.trigger},
        "lane": {"S": key.digest},
        "outcome": {"S": outcome},
        "expires_at": {"N": str(expires_at)},
    }


def decision_of(item: "Item") -> Decision:
    """Decode a decision."""
    return Decision(LaneKey(item["trigger"]["S"], item["lane"]["S"]), item["outcome"]["S"])


def queued_key(key: LaneKey, start: Start) -> "NewItem":
    """The key of a start that waits; the oldest comes first."""
    return {"pk": {"S": partition(key.digest)}, "sk": {"S": f"{QUEUED_PREFIX}{start.at}#{start.id}"}}


def queued_item(key: LaneKey, start: Start, expires_at: int) -> "NewItem":
    """The item of a start that waits."""
    return queued_key(key, start) | {
        "start": {"S": msgspec.json.encode(start).decode()},
        "expires_at": {"N": str(expires_at)},
    }


def queued_start(item: "Item") -> Start:
    """Decode a start that waits."""
    return _start_decoder.decode(item["start"]["S"])


def payload_prefix(start: Start) -> str:
    """What the sort keys of the payloads of a start begin with."""
    return f"{_PAYLOAD_PREFIX}{start.id}#"


def payload_items(key: LaneKey, start: Start, entry: Entry, expires_at: int) -> "Iterator[NewItem]":
    """The items of an occurrence that a start has. Only a batch has several; another one replaces the last.

    Args:
        key: the lane.
        start: the start.
        entry: the occurrence, with its order in a batch.
        expires_at: when the items expire, in seconds since 1970.
    """
    text = bytes(entry.occurrence.payload).decode("ascii")
    texts = [text[place : place + _PART] for place in range(0, len(text), _PART)] or [""]
    place = f"{entry.start.at}#{entry.start.id}" if start.window == "batch" else "last"
    for number, part in enumerate(texts):
        yield {
            "pk": {"S": partition(key.digest)},
            "sk": {"S": f"{payload_prefix(start)}{place}#{_part_name(number)}"},
            "key": {"S": entry.occurrence.key},
            "started_by": {"S": msgspec.json.encode(entry.occurrence.started_by).decode()},
            "parts": {"N": str(len(texts))},
            "payload": {"S": part},
            "expires_at": {"N": str(expires_at)},
        }


def _part_name(number: int) -> str:
    return f"{number:02d}"


def occurrences_of(key: LaneKey, items: "Iterator[Item]") -> list[Occurrence]:
    """The occurrences of a start from its items, which are in the order of their keys.

    One that lacks an item is left out: it has expired, or the process that has started the task is deleting it.
    """
    groups = [list(group) for _, group in groupby(items, _place)]
    return [_occurrence(key, group) for group in groups if _is_complete(group)]


def _place(item: Mapping[str, "AttributeValueTypeDef"]) -> str:
    return item["sk"]["S"].rpartition("#")[0]


def _is_complete(items: "list[Item]") -> bool:
    names = [item["sk"]["S"].rpartition("#")[2] for item in items]
    count = int(items[0]["parts"]["N"])
    return names[:count] == [_part_name(number) for number in range(count)]


def _occurrence(key: LaneKey, items: "list[Item]") -> Occurrence:
    # A shorter payload that replaced a longer one leaves the last parts of that one.
    first = items[0]
    text = "".join(item["payload"]["S"] for item in items[: int(first["parts"]["N"])])
    started_by = _started_by_decoder.decode(first["started_by"]["S"])
    return Occurrence(key.trigger, first["key"]["S"], Raw(text.encode()), started_by)
