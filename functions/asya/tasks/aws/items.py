"""Tasks and hops as items of the tasks table.

Keys (they can never change): `pk` = task id; `sk` = `record`, or
`hop#{generation:04d}#{position:06d}#{attempt:06d}#{stage}`. `expires_at` is the table's TTL, in epoch seconds.
While a task is paused, or something is still to be sent of its pause, `waits_in` and `waits_since` place it in the index `waiting`;
the other indexes are `asya.tasks.aws.index`'s.
"""

import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from asya.protocol.hops import HopKey, HopRecord
from asya.protocol.pause import PauseRelease
from asya.protocol.task import TaskRecord
from asya.tasks.aws.index import index_attributes
from asya.tasks.aws.task_store import UnreadableRecordError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

Item = Mapping[str, "AttributeValueTypeDef"]

RECORD = "record"
HOP_PREFIX = "hop#"
HOPS_END = "hop$"
LARGEST_GENERATION = 9_999
LARGEST_COUNT = 999_999  # of positions and attempts

_RECORD_TEXTS = (
    *("status", "created_at", "updated_at", "parent_id", "root_id", "owner"),
    *("deadline_at", "actor", "result_uri", "reason", "context"),
)
_RECORD_NUMBERS = ("generation", "attempt", "pause_epoch", "resumed_epoch")
_RECORD_STRUCTURES = ("route", "error", "earlier", "pause")
_HOP_TEXTS = ("actor", "curr", "at", "received_at", "processing_at", "completed_at")
_HOP_NUMBERS = ("percent", "message_size_kb", "duration_ms")

# The table's changes are filtered by this attribute before anybody is woken by them.
WATCHED = "is_watched"
WAITING_INDEX = "waiting"
# Waiting tasks are spread over so many keys of the index: a single one would be a bottleneck of the whole table.
WAITING_SHARDS = 8
_handover_decoder = msgspec.json.Decoder(PauseRelease)


def record_key(task_id: str) -> "dict[str, AttributeValueTypeDef]":
    """The key of a task's record."""
    return {"pk": {"S": task_id}, "sk": {"S": RECORD}}


def hop_prefix(generation: int) -> str:
    """What the sort keys of a generation's hops begin with."""
    return f"{HOP_PREFIX}{generation:04d}#"


def record_item(record: TaskRecord, revision: int, expires_at: int) -> "dict[str, AttributeValueTypeDef]":
    """A record as an item. Route, result and error are JSON text: DynamoDB's own numbers would not keep theirs."""
    item = record_key(record.id) | _attributes(record, _RECORD_TEXTS, _RECORD_NUMBERS)
    item |= {"revision": {"N": str(revision)}, "expires_at": {"N": str(expires_at)}}
    for name in (*_RECORD_STRUCTURES, "result", "handover"):
        value = getattr(record, name)
        if value is not None and value is not UNSET and value != ():
            item[name] = {"S": msgspec.json.encode(value).decode()}
    if record.is_watched:
        item[WATCHED] = {"BOOL": True}
    return item | _waiting(record) | index_attributes(record)


def record_of(item: Item) -> TaskRecord:
    """Read a record back.

    Raises:
        UnreadableRecordError: if it is none that this version knows.
    """
    try:
        return _record_of(item)
    except (msgspec.MsgspecError, KeyError, ValueError, TypeError) as error:
        owner, created_at = (item.get(name, {}).get("S") for name in ("owner", "created_at"))
        raise UnreadableRecordError(item["pk"]["S"], f"{type(error).__name__}: {error}", owner, created_at) from error


def _record_of(item: Item) -> TaskRecord:
    fields: dict[str, object] = {name: _text(item, name) for name in _RECORD_TEXTS}
    fields |= {name: int(item[name]["N"]) for name in _RECORD_NUMBERS if name in item}
    fields |= {name: msgspec.json.decode(item[name]["S"]) for name in _RECORD_STRUCTURES if name in item}
    record = msgspec.convert(fields | {"id": item["pk"]["S"], WATCHED: WATCHED in item}, TaskRecord)
    if "handover" in item:
        record = replace(record, handover=_handover_decoder.decode(item["handover"]["S"]))
    return replace(record, result=Raw(item["result"]["S"].encode())) if "result" in item else record


def waiting_key(how: str, shard: int) -> str:
    """A key of the index: of tasks that are `paused`, or of those with a `handover`."""
    return f"{how}#{shard}"


def _waiting(record: TaskRecord) -> "dict[str, AttributeValueTypeDef]":
    if record.handover is not None:
        how, since = "handover", record.handover.at
    elif record.status == "paused" and record.pause is not None:
        how, since = "paused", record.pause.since
    else:
        return {}
    shard = zlib.crc32(record.id.encode("utf-8", "surrogatepass")) % WAITING_SHARDS
    return {"waits_in": {"S": waiting_key(how, shard)}, "waits_since": {"S": since}}


def hop_item(hop: HopRecord, expires_at: int) -> "dict[str, AttributeValueTypeDef]":
    """A part of a hop as an item, below 1 KB but for very long routes."""
    sort_key = f"{hop_prefix(hop.generation)}{hop.position:06d}#{hop.attempt:06d}#{hop.stage}"
    item: dict[str, AttributeValueTypeDef] = {"pk": {"S": hop.id}, "sk": {"S": sort_key}}
    item |= _attributes(hop, _HOP_TEXTS, _HOP_NUMBERS)
    item["next"] = {"L": [{"S": actor} for actor in hop.next]}
    if hop.prev is not None:
        item["prev"] = {"L": [{"S": actor} for actor in hop.prev]}
    if hop.run is not None:
        item["run"] = {"S": msgspec.json.encode(hop.run).decode()}
    item["expires_at"] = {"N": str(expires_at)}
    return item


def hop_of(item: Item) -> HopRecord:
    """Read a part of a hop back."""
    _, generation, position, attempt, stage = item["sk"]["S"].split("#")
    fields: dict[str, object] = {name: _text(item, name) for name in _HOP_TEXTS}
    fields |= {name: float(item[name]["N"]) for name in _HOP_NUMBERS if name in item}
    return msgspec.convert(
        fields
        | {
            "id": item["pk"]["S"],
            "generation": int(generation),
            "position": int(position),
            "attempt": int(attempt),
            "stage": stage,
            "percent": int(item["percent"]["N"]),
            "next": [actor["S"] for actor in item["next"]["L"]],
            "prev": [actor["S"] for actor in item["prev"]["L"]] if "prev" in item else None,
            "run": msgspec.json.decode(item["run"]["S"]) if "run" in item else None,
        },
        HopRecord,
    )


def after_hop(place: HopKey) -> str:
    """What sorts behind all parts of an attempt at a hop, and before the next."""
    return f"{hop_prefix(place.generation)}{place.position:06d}#{place.attempt:06d}#~"


def is_hop(item: Item) -> bool:
    """Whether an item of a task's partition is part of a hop."""
    return item["sk"]["S"].startswith(HOP_PREFIX)


def is_expired(item: Item, now: int) -> bool:
    """Whether an item has outlived its retention; DynamoDB may take days to remove it."""
    return int(item["expires_at"]["N"]) <= now


def _attributes(source: object, texts: tuple[str, ...], numbers: tuple[str, ...]) -> "dict[str, AttributeValueTypeDef]":
    found: dict[str, AttributeValueTypeDef] = {}
    for name in texts:
        if (text := getattr(source, name)) is not None:
            found[name] = {"S": text}
    for name in numbers:
        if (number := getattr(source, name)) is not None:
            found[name] = {"N": str(number if isinstance(number, int) else round(number, 3))}
    return found


def _text(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None
