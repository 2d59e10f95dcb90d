"""Converts records and hops to items of the tasks table and back.

The keys must never change: `pk` = task id; `sk` = `record`, `hop#{generation:04d}#{position:06d}#{attempt:06d}#{stage}` for a hop,
or `hops#{generation:04d}#{position:06d}#{attempt:06d}#{digest}` for several, with the place of the first one.
`expires_at` is the TTL of the table, in epoch seconds. A task that is paused, or whose pause release is unfinished, has
`waits_in` and `waits_since`, the keys of the index `waiting`. So has a task that waits for a time, and there `waits_since` is the
time at which it is due. `asya.tasks.aws.index` defines the other indexes.
"""

import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from asya.function.aws.table import Change, delete, put
from asya.function.aws.table_items import Item, Key, Value
from asya.protocol import states
from asya.protocol.exact_json import encode_json, exact_decoder
from asya.protocol.hops import HopKey, HopRecord
from asya.protocol.pause import PauseRelease
from asya.protocol.task import TaskRecord
from asya.tasks import hop_groups
from asya.tasks.aws.index import index_attributes
from asya.tasks.aws.task_store import UnreadableRecordError

RECORD = "record"
HOP_PREFIX = "hop#"
HOPS_END = "hop$"
GROUP_PREFIX = "hops#"
GROUPS_END = "hops$"

_RECORD_TEXTS = (
    *("status", "created_at", "updated_at", "parent_id", "root_id", "owner"),
    *("deadline_at", "actor", "result_uri", "reason", "context", "tool", "due_at"),
    *("set_id", "letter"),
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
LASTS = "lasts"
# The time of the note on a running job, by which a write is conditioned.
NOTE_AT = "note_at"
# The keys of the index are spread over shards, because a hot key throttles the whole table.
WAITING_SHARDS = 8
_structure_decoder = exact_decoder(object)
_pause_release_decoder = msgspec.json.Decoder(PauseRelease)


def record_key(task_id: str) -> Key:
    """The key of a task's record."""
    return Key(task_id, RECORD)


def withdrawal(task_id: str) -> Change:
    """Delete a record that has not changed since its creation."""
    return delete(record_key(task_id)).only_if(
        "revision = :first AND #status = :pending", first=1, pending=states.PENDING
    )


def put_record(record: TaskRecord, revision: int, expires_at: int) -> Change:
    """Write a record. Structures are JSON text, because DynamoDB numbers do not preserve JSON numbers."""
    attributes: dict[str, Value] = {name: getattr(record, name) for name in (*_RECORD_TEXTS, *_RECORD_NUMBERS)}
    for name in (*_RECORD_STRUCTURES, "result", "handover"):
        value = getattr(record, name)
        if value is not None and value is not UNSET and value != ():
            attributes[name] = encode_json(value).decode()
    attributes |= {
        WATCHED: record.is_watched or None,
        PROVISIONAL: record.provisional or None,
        LASTS: record.lasts or None,
        "revision": revision,
        "expires_at": expires_at,
    }
    return put(record_key(record.id), attributes | _waiting(record) | index_attributes(record))


def record_of(item: Item) -> TaskRecord:
    """Decode a record.

    Raises:
        UnreadableRecordError: this version cannot decode the item.
    """
    try:
        return _record_of(item)
    except (msgspec.MsgspecError, KeyError, ValueError, TypeError) as error:
        problem = f"{type(error).__name__}: {error}"
        owner, created_at = (
            text if isinstance(text := item.get(name), str) else None for name in ("owner", "created_at")
        )
        raise UnreadableRecordError(item.key.pk, problem, owner, created_at) from error


def _record_of(item: Item) -> TaskRecord:
    fields: dict[str, object] = {name: item.text(name, None) for name in _RECORD_TEXTS}
    fields |= {name: item.integer(name) for name in _RECORD_NUMBERS if name in item}
    fields |= {name: _structure_decoder.decode(item.text(name)) for name in _RECORD_STRUCTURES if name in item}
    fields |= {name: name in item for name in (WATCHED, PROVISIONAL, LASTS)}
    record = msgspec.convert(fields | {"id": item.key.pk}, TaskRecord)
    if "handover" in item:
        record = replace(record, handover=_pause_release_decoder.decode(item.text("handover")))
    return replace(record, result=Raw(item.text("result").encode())) if "result" in item else record


def waiting_key(state: str, shard: int) -> str:
    """The partition key in the index `waiting`; the state is `paused`, `handover` or `wait`."""
    return f"{state}#{shard}"


def waiting_shards(moment: datetime) -> Iterator[int]:
    """The shards of the index `waiting` in the order of a sweep, which begins each minute with another one.

    A sweep has no time for an endless backlog. So what lies in one shard, and may never go, holds up the others for minutes only.
    """
    first = int(moment.timestamp() // 60)
    return ((first + number) % WAITING_SHARDS for number in range(WAITING_SHARDS))


def _waiting(record: TaskRecord) -> dict[str, Value]:
    if record.handover is not None:
        state, since = "handover", record.handover.at
    elif record.is_paused and record.pause is not None:
        until = record.pause.until
        state, since = (states.PAUSED, record.pause.since) if until is UNSET else ("wait", until)
    elif record.wait is not None and not record.wait.is_sent:
        state, since = "wait", record.wait.until
    else:
        return {}
    shard = zlib.crc32(record.id.encode("utf-8", "surrogatepass")) % WAITING_SHARDS
    return {"waits_in": waiting_key(state, shard), "waits_since": since}


def put_hops(group: Sequence[HopRecord], expires_at: int) -> Change:
    """Write a group of `hop_groups`.

    A hop alone has a key of its own, and a repeated execution replaces it. One that lacks an earlier time replaces none, because
    another record of its stage may have that time.
    """
    first = group[0]
    if len(group) == 1 and (first.has_own_item or first.is_whole):
        return _put_hop(first, expires_at)
    rounded = [
        msgspec.structs.replace(hop, **{name: _rounded(getattr(hop, name)) for name in _HOP_NUMBERS}) for hop in group
    ]
    sort_key = f"{_place(GROUP_PREFIX, first.key)}#{hop_groups.digest(rounded)}"
    return put(Key(first.id, sort_key), {"hops": hop_groups.packed(rounded), "expires_at": expires_at})


def _put_hop(hop: HopRecord, expires_at: int) -> Change:
    """Write a hop record; the item has less than 1 KB, except for very long routes."""
    sort_key = f"{_place(HOP_PREFIX, hop.key)}#{hop.stage}"
    attributes: dict[str, Value] = {name: getattr(hop, name) for name in _HOP_TEXTS}
    attributes |= {name: _rounded(getattr(hop, name)) for name in _HOP_NUMBERS}
    attributes |= {
        "next": hop.next,
        "prev": hop.prev,
        "run": None if hop.run is None else msgspec.json.encode(hop.run).decode(),
        NOTE_AT: hop.note_at,
        "problem": None if hop.problem is None else msgspec.json.encode(hop.problem).decode(),
        "expires_at": expires_at,
    }
    return put(Key(hop.id, sort_key), attributes)


def hops_of(item: Item) -> tuple[HopRecord, ...]:
    """Decode the hop records of an item, in order."""
    if is_group(item):
        return hop_groups.unpacked(item.data("hops"), item.key.pk)
    return (_hop_of(item),)


def _hop_of(item: Item) -> HopRecord:
    _, generation, position, attempt, stage = item.key.sk.split("#")
    fields: dict[str, object] = {name: item.text(name, None) for name in _HOP_TEXTS}
    fields |= {name: item.number(name) for name in _HOP_NUMBERS if name in item}
    return msgspec.convert(
        fields
        | {
            "id": item.key.pk,
            "generation": int(generation),
            "position": int(position),
            "attempt": int(attempt),
            "stage": stage,
            "percent": item.integer("percent"),
            "next": item.list_of(str, "next"),
            "prev": item.list_of(str, "prev") if "prev" in item else None,
            "run": msgspec.json.decode(item.text("run")) if "run" in item else None,
            "problem": msgspec.json.decode(item.text("problem")) if "problem" in item else None,
        },
        HopRecord,
    )


def after_hop(key: HopKey) -> str:
    """A sort key after all records of one attempt at a hop, and before the next attempt."""
    return f"{_place(HOP_PREFIX, key)}#~"


def first_group(after: HopKey) -> str:
    """A sort key before each group that may have hops after an attempt."""
    return _place(GROUP_PREFIX, hop_groups.first_place(after))


def is_hop(item: Item) -> bool:
    """Whether an item of a task's partition has hop records."""
    return item.key.sk.startswith((HOP_PREFIX, GROUP_PREFIX))


def is_group(item: Item) -> bool:
    """Whether an item of a task's partition is a group of hop records."""
    return item.key.sk.startswith(GROUP_PREFIX)


def _place(prefix: str, key: HopKey) -> str:
    return f"{prefix}{key.generation:04d}#{key.position:06d}#{key.attempt:06d}"


def is_expired(item: Item, now: int) -> bool:
    """Whether an item has expired; DynamoDB may take days to remove it."""
    return item.integer("expires_at") <= now


def _rounded(number: float | None) -> float | None:
    return number if number is None or isinstance(number, int) else round(number, 3)
