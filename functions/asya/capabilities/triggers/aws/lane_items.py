"""Converts lanes, decisions and payloads of starts to items of the tasks table and back (`protocol §16.lane.state`).

No sort key is one of a task, whose sender may choose any id.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

import msgspec
from msgspec import Raw

from asya.capabilities.triggers.lanes import Entry, Lane, LaneKey, Start, check_time
from asya.capabilities.triggers.occurrences import Occurrence
from asya.function.aws.table import Change, put
from asya.function.aws.table_items import Item, Key, Value
from asya.protocol.task import StartedBy
from asya.protocol.times import format_time
from asya.tasks.aws.items import WAITING_SHARDS, waiting_key

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


def lane_key(key: LaneKey) -> Key:
    """The key of the item of a lane."""
    return Key(partition(key.digest), LANE)


def decision_key(task_id: str) -> Key:
    """The key of the decision about an occurrence."""
    return Key(partition(task_id), DECIDED)


def put_lane(key: LaneKey, lane: Lane, revision: int, now: datetime, expires_at: int) -> Change:
    """Write a lane. One that waits for something is in the index `waiting`."""
    since = check_time(lane, format_time(now))
    shard = zlib.crc32(key.digest.encode()) % WAITING_SHARDS
    attributes: dict[str, Value] = {
        "trigger": key.trigger,
        "state": msgspec.json.encode(lane).decode(),
        "revision": revision,
        "expires_at": expires_at,
        "waits_in": None if since is None else waiting_key(WAITS_IN, shard),
        "waits_since": since,
    }
    return put(lane_key(key), attributes)


def stored_lane(item: Item) -> StoredLane:
    """Decode a lane."""
    lane = _lane_decoder.decode(item.text("state"))
    return StoredLane(lane, item.integer("revision"), item.integer("expires_at"))


def key_of(item: Item) -> LaneKey:
    """The key of the lane of an item."""
    return LaneKey(item.text("trigger"), item.key.pk.removeprefix(partition("")))


def put_decision(task_id: str, key: LaneKey, outcome: str, expires_at: int) -> Change:
    """Write a decision."""
    attributes: dict[str, Value] = {
        "trigger": key.trigger,
        "lane": key.digest,
        "outcome": outcome,
        "expires_at": expires_at,
    }
    return put(decision_key(task_id), attributes)


def decision_of(item: Item) -> Decision:
    """Decode a decision."""
    return Decision(LaneKey(item.text("trigger"), item.text("lane")), item.text("outcome"))


def queued_key(key: LaneKey, start: Start) -> Key:
    """The key of a start that waits; the oldest comes first."""
    return Key(partition(key.digest), f"{QUEUED_PREFIX}{start.at}#{start.id}")


def put_queued(key: LaneKey, start: Start, expires_at: int) -> Change:
    """Write a start that waits."""
    return put(queued_key(key, start), {"start": msgspec.json.encode(start).decode(), "expires_at": expires_at})


def queued_start(item: Item) -> Start:
    """Decode a start that waits."""
    return _start_decoder.decode(item.text("start"))


def payload_prefix(start: Start) -> str:
    """What the sort keys of the payloads of a start begin with."""
    return f"{_PAYLOAD_PREFIX}{start.id}#"


def put_payload(key: LaneKey, start: Start, entry: Entry, expires_at: int) -> Iterator[Change]:
    """Write the items of an occurrence that a start has. Only a batch has several; another one replaces the last.

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
        attributes: dict[str, Value] = {
            "key": entry.occurrence.key,
            "started_by": msgspec.json.encode(entry.occurrence.started_by).decode(),
            "parts": len(texts),
            "payload": part,
            "expires_at": expires_at,
        }
        yield put(Key(partition(key.digest), f"{payload_prefix(start)}{place}#{_part_name(number)}"), attributes)


def _part_name(number: int) -> str:
    return f"{number:02d}"


def occurrences_of(key: LaneKey, items: Iterator[Item]) -> list[Occurrence]:
    """The occurrences of a start from its items, which are in the order of their keys.

    One that lacks an item is left out: it has expired, or the process that has started the task is deleting it.
    """
    groups = [list(group) for _, group in groupby(items, _place)]
    return [_occurrence(key, group) for group in groups if _is_complete(group)]


def _place(item: Item) -> str:
    return item.key.sk.rpartition("#")[0]


def _is_complete(items: list[Item]) -> bool:
    names = [item.key.sk.rpartition("#")[2] for item in items]
    count = items[0].integer("parts")
    return names[:count] == [_part_name(number) for number in range(count)]


def _occurrence(key: LaneKey, items: list[Item]) -> Occurrence:
    # A shorter payload that replaced a longer one leaves the last parts of that one.
    first = items[0]
    text = "".join(item.text("payload") for item in items[: first.integer("parts")])
    started_by = _started_by_decoder.decode(first.text("started_by"))
    return Occurrence(key.trigger, first.text("key"), Raw(text.encode()), started_by)
