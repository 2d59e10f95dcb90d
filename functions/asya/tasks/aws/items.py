"""Converts records and hops to items of the tasks table and back.

The keys must never change: `pk` = task id; `sk` = `record` or `hop#{generation:04d}#{position:06d}#{attempt:06d}#{stage}`.
`expires_at` is the TTL of the table, in epoch seconds. A task that is paused, or whose pause release is unfinished, has
`waits_in` and `waits_since`, the keys of the index `waiting`. So has a task that waits for a time, and there `waits_since` is the
time at which it is due. `asya.tasks.aws.index` defines the other indexes.
"""

import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime
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
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, DeleteTypeDef

Item = Mapping[str, "AttributeValueTypeDef"]

RECORD = "record"
HOP_PREFIX = "hop#"
HOPS_END = "hop$"
LARGEST_GENERATION = 9_999
LARGEST_COUNT = 999_999  # of positions and attempts

_RECORD_TEXTS = (
    *("status", "created_at", "updated_at", "parent_id", "root_id", "owner"),
    *("deadline_at", "actor", "result_uri", "reason", "context", "tool", "due_at"),
    "set_id",
)
_RECORD_NUMBERS = ("generation", "attempt", "pause_epoch", "resumed_epoch")
_RECORD_STRUCTURES = (
    "route",
    "error",
    "earlier",
    "pause",
    "wait",
    "retry",
    "started_by",
    "canceled",
    "replayed",
    "dismissed",
    "overtaken",
)
# The attributes of a record that the filters of lists use; `expires_at` and the key come with them.
SUMMARY = (
    *("pk", "sk", "status", "created_at", "updated_at", "parent_id", "owner", "tool", "actor", "deadline_at"),
    *("error", "reason", "provisional", "retry", "generation", "expires_at"),
    # What became of a failure.
    *("started_by", "set_id", "replayed", "dismissed", "overtaken"),
)
_HOP_TEXTS = ("actor", "curr", "at", "received_at", "processing_at", "completed_at", "trace_id")
_HOP_NUMBERS = ("percent", "message_size_kb", "duration_ms")

# The event source mapping of the table's stream filters by this attribute.
WATCHED = "is_watched"
PROVISIONAL = "provisional"
# The time of the note on a running job, by which a write is conditioned.
NOTE_AT = "note_at"
# The keys of the index are spread over shards, because a hot key throttles the whole table.
WAITING_SHARDS = 8
_pause_release_decoder = msgspec.json.Decoder(PauseRelease)


def record_key(task_id: str) -> "dict[str, AttributeValueTypeDef]":
    """The key of a task's record."""
    return {"pk": {"S": task_id}, "sk": {"S": RECORD}}


def withdrawal(table: str, task_id: str) -> "DeleteTypeDef":
    """The deletion of a record that has not changed since its creation."""
    return {
        "TableName": table,
        "Key": record_key(task_id),
        "ConditionExpression": "revision = :first AND #status = :pending",
        "ExpressionAttributeNames": {"#status": "status"},
        "ExpressionAttributeValues": {":first": {"N": "1"}, ":pending": {"S": "pending"}},
    }


def hop_prefix(generation: int) -> str:
    """The prefix of the sort keys of a generation's hops."""
    return f"{HOP_PREFIX}{generation:04d}#"


def record_item(record: TaskRecord, revision: int, expires_at: int) -> "dict[str, AttributeValueTypeDef]":
    """Encode a record. Structures are JSON text, because DynamoDB numbers do not preserve JSON numbers."""
    item = record_key(record.id) | _attributes(record, _RECORD_TEXTS, _RECORD_NUMBERS)
    item |= {"revision": {"N": str(revision)}, "expires_at": {"N": str(expires_at)}}
    for name in (*_RECORD_STRUCTURES, "result", "handover"):
        value = getattr(record, name)
        if value is not None and value is not UNSET and value != ():
            item[name] = {"S": msgspec.json.encode(value).decode()}
    if record.is_watched:
        item[WATCHED] = {"BOOL": True}
    if record.provisional:
        item[PROVISIONAL] = {"BOOL": True}
    return item | _waiting(record) | index_attributes(record)


def record_of(item: Item) -> TaskRecord:
    """Decode a record.

    Raises:
        UnreadableRecordError: this version cannot decode the item.
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
    fields |= {name: name in item for name in (WATCHED, PROVISIONAL)}
    record = msgspec.convert(fields | {"id": item["pk"]["S"]}, TaskRecord)
    if "handover" in item:
        record = replace(record, handover=_pause_release_decoder.decode(item["handover"]["S"]))
    return replace(record, result=Raw(item["result"]["S"].encode())) if "result" in item else record


def waiting_key(state: str, shard: int) -> str:
    """The partition key in the index `waiting`; the state is `paused`, `handover` or `wait`."""
    return f"{state}#{shard}"


def waiting_shards(moment: datetime) -> Iterator[int]:
    """The shards of the index `waiting` in the order of a sweep, which begins each minute with another one.

    A sweep has no time for an endless backlog. So what lies in one shard, and may never go, holds up the others for minutes only.
    """
    first = int(moment.timestamp() // 60)
    return ((first + number) % WAITING_SHARDS for number in range(WAITING_SHARDS))


def _waiting(record: TaskRecord) -> "dict[str, AttributeValueTypeDef]":
    if record.handover is not None:
        state, since = "handover", record.handover.at
    elif record.status == "paused" and record.pause is not None:
        until = record.pause.until
        state, since = ("paused", record.pause.since) if until is UNSET else ("wait", until)
    elif record.wait is not None and not record.wait.is_sent:
        state, since = "wait", record.wait.until
    else:
        return {}
    shard = zlib.crc32(record.id.encode("utf-8", "surrogatepass")) % WAITING_SHARDS
    return {"waits_in": {"S": waiting_key(state, shard)}, "waits_since": {"S": since}}


def hop_item(hop: HopRecord, expires_at: int) -> "dict[str, AttributeValueTypeDef]":
    """Encode a hop record; the item has less than 1 KB, except for very long routes."""
    sort_key = f"{hop_prefix(hop.generation)}{hop.position:06d}#{hop.attempt:06d}#{hop.stage}"
    item: dict[str, AttributeValueTypeDef] = {"pk": {"S": hop.id}, "sk": {"S": sort_key}}
    item |= _attributes(hop, _HOP_TEXTS, _HOP_NUMBERS)
    item["next"] = {"L": [{"S": actor} for actor in hop.next]}
    if hop.prev is not None:
        item["prev"] = {"L": [{"S": actor} for actor in hop.prev]}
    if hop.run is not None:
        item["run"] = {"S": msgspec.json.encode(hop.run).decode()}
    if hop.note_at is not None:
        item[NOTE_AT] = {"S": hop.note_at}
    if hop.problem is not None:
        item["problem"] = {"S": msgspec.json.encode(hop.problem).decode()}
    item["expires_at"] = {"N": str(expires_at)}
    return item


def hop_of(item: Item) -> HopRecord:
    """Decode a hop record."""
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
            "problem": msgspec.json.decode(item["problem"]["S"]) if "problem" in item else None,
        },
        HopRecord,
    )


def after_hop(key: HopKey) -> str:
    """A sort key after all records of one attempt at a hop, and before the next attempt."""
    return f"{hop_prefix(key.generation)}{key.position:06d}#{key.attempt:06d}#~"


def is_hop(item: Item) -> bool:
    """Whether an item of a task's partition is a hop record."""
    return item["sk"]["S"].startswith(HOP_PREFIX)


def is_expired(item: Item, now: int) -> bool:
    """Whether an item has expired; DynamoDB may take days to remove it."""
    return int(item["expires_at"]["N"]) <= now


def _attributes(source: object, texts: tuple[str, ...], numbers: tuple[str, ...]) -> "dict[str, AttributeValueTypeDef]":
    attributes: dict[str, AttributeValueTypeDef] = {}
    for name in texts:
        if (text := getattr(source, name)) is not None:
            attributes[name] = {"S": text}
    for name in numbers:
        if (number := getattr(source, name)) is not None:
            attributes[name] = {"N": str(number if isinstance(number, int) else round(number, 3))}
    return attributes


def _text(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None
