"""New objects of buckets and filters of their keys, and the occurrences of triggers (`protocol §16.objects`).

S3 refuses filters that overlap: of two with one event, neither the prefixes nor the suffixes may both begin or end alike. So the
filters of a bucket may cover more keys than the triggers ask for, and the function compares each key itself.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise, takewhile
from urllib.parse import unquote_plus

import msgspec

from asya.capabilities.triggers.occurrences import Occurrence, encode_payload, fill_in
from asya.protocol.data_references import is_folder_marker
from asya.protocol.keys import S3Prefix, task_of_key
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import StartedBy
from asya.protocol.times import format_time, parse_time
from asya.protocol.triggers import ObjectSource, Trigger

MOST_FILTERS = 100
"""The notifications that a bucket may have."""
_MOST_CHARACTERS = 1024
# S3 wants other characters URL-encoded, and the documentation leaves open which.
_PLAIN = r"[A-Za-z0-9!_.'()/=-]*"
_PLAIN_START, _PLAIN_END = re.compile(_PLAIN), re.compile(f"{_PLAIN}$")


@dataclass(frozen=True, slots=True, order=True)
class KeyFilter:
    """The keys that begin with `prefix` and end with `suffix`."""

    prefix: str = ""
    suffix: str = ""

    def matches(self, key: str) -> bool:
        """Whether a key is one of these."""
        return key.startswith(self.prefix) and key.endswith(self.suffix)

    def overlaps(self, other: "KeyFilter") -> bool:
        """Whether S3 takes the two for overlapping."""
        joined = self.joined(other)
        return joined.prefix in (self.prefix, other.prefix) and joined.suffix in (self.suffix, other.suffix)

    def joined(self, other: "KeyFilter") -> "KeyFilter":
        """The narrowest filter that has the keys of both."""
        return KeyFilter(_common(self.prefix, other.prefix), _common(self.suffix[::-1], other.suffix[::-1])[::-1])

    @property
    def acceptable(self) -> "KeyFilter":
        """The narrowest filter with these keys that S3 takes as it is written."""
        start, end = _PLAIN_START.match(self.prefix), _PLAIN_END.search(self.suffix)
        return KeyFilter((start[0] if start else "")[:_MOST_CHARACTERS], (end[0] if end else "")[-_MOST_CHARACTERS:])


def notification_filters(wanted: Iterable[KeyFilter]) -> tuple[KeyFilter, ...]:
    """The filters for the notifications of one bucket: 100 at most, none overlaps another, and they have all wanted keys."""
    filters = _apart(each.acceptable for each in wanted)
    while len(filters) > MOST_FILTERS:
        closest = max(pairwise(filters), key=lambda pair: len(_common(pair[0].prefix, pair[1].prefix)))
        filters = _apart([*(each for each in filters if each not in closest), closest[0].joined(closest[1])])
    return filters


def _apart(filters: Iterable[KeyFilter]) -> tuple[KeyFilter, ...]:
    """Join those that overlap, until none does."""
    apart: list[KeyFilter] = []
    for each in sorted(set(filters)):
        joined = each
        while other := next((found for found in apart if found.overlaps(joined)), None):
            apart.remove(other)
            joined = joined.joined(other)
        apart.append(joined)
    return tuple(sorted(apart))


def _common(one: str, other: str) -> str:
    """What both begin with."""
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


_CREATED = "ObjectCreated:"
# What S3 writes as the version of an object in a bucket without versions.
_NO_VERSION = "null"


@dataclass(frozen=True, slots=True)
class NewObject:
    """An object that was created or replaced.

    Attributes:
        key: the whole key, as it is.
        version: the id of its version; empty in a bucket without versions.
        sequencer: orders the writes of one key; empty if the event has none.
        at: when S3 had written it.
    """

    bucket: str
    key: str
    size: int
    etag: str
    version: str
    sequencer: str
    at: datetime

    @property
    def is_folder_marker(self) -> bool:
        """Whether it is an empty object that consoles and Hadoop write for a folder."""
        return is_folder_marker(self.key, self.size)

    @property
    def occurrence_key(self) -> str:
        """The key of its occurrences: bucket, key, and the version or else the sequencer, neither of which has a blank."""
        return f"object {self.bucket}/{self.key} {self.version or self.sequencer}"


@dataclass(frozen=True, slots=True)
class Buckets:
    """What the buckets of triggers stand for.

    Attributes:
        data, results: the URIs of the buckets `data` and `results`; each ends with `/`.
    """

    data: str
    results: str

    def base(self, bucket: str) -> str:
        """The URI of a bucket of the mesh file, with the prefix of its keys."""
        return {"data": self.data, "results": self.results}.get(bucket) or f"s3://{bucket}/"

    def place(self, bucket: str) -> S3Prefix:
        """The place of a bucket of the mesh file."""
        # At synthesis the name of a bucket has placeholders that no parser of URIs takes.
        name, _, prefix = self.base(bucket).partition("://")[2].partition("/")
        return S3Prefix(name, prefix)

    def wanted_keys(self, source: ObjectSource) -> KeyFilter:
        """The whole keys that a trigger asks for."""
        return KeyFilter(self.place(source.bucket).prefix + source.prefix, source.suffix)

    def relative_key(self, source: ObjectSource, new: NewObject) -> str | None:
        """The key of an object below the place of a trigger's bucket; None if the trigger does not ask for it."""
        place = self.place(source.bucket)
        if new.bucket != place.bucket or not new.key.startswith(place.prefix):
            return None
        key = new.key.removeprefix(place.prefix)
        return key if KeyFilter(source.prefix, source.suffix).matches(key) else None

    def may_notify_of(self, new: NewObject, mesh: MeshTable) -> bool:
        """Whether the notifications of a mesh cover an object, be it only because filters are coarser than triggers."""
        wanted = [
            self.wanted_keys(source)
            for trigger in mesh.triggers.values()
            if (source := trigger.objects) is not None and self.place(source.bucket).bucket == new.bucket
        ]
        return any(each.matches(new.key) for each in notification_filters(wanted))


def object_values(source: ObjectSource, base: str, key: str, new: NewObject) -> dict[str, str]:
    """The values for the payload of a trigger.

    Args:
        base: the URI of the bucket, with the prefix of its keys.
        key: the key below it.
    """
    name = key.rstrip("/").rpartition("/")[2]
    return {
        "bucket": source.bucket,
        "key": key,
        "name": name,
        "stem": stem_of(name),
        "uri": f"{base}{key}",
        "size": str(new.size),
        "etag": new.etag,
        "version": new.version,
        "date": new.at.strftime("%Y-%m-%d"),
        "time": new.at.strftime("%H:%M"),
        "occurred_at": format_time(new.at),
    }


def stem_of(name: str) -> str:
    """A name without its last suffix: `sales-2026.01` for `sales-2026.01.csv`; `.env` and `notes.` have none."""
    stem, _, suffix = name.rpartition(".")
    return stem if suffix and stem.strip(".") else name


def object_occurrence(name: str, trigger: Trigger, new: NewObject, buckets: Buckets) -> Occurrence | None:
    """The occurrence of an object; None if the trigger does not ask for it, or if it stands for a folder."""
    source = trigger.objects
    key = buckets.relative_key(source, new) if source is not None and not new.is_folder_marker else None
    if source is None or key is None:
        return None
    base = buckets.base(source.bucket)
    if trigger.payload is not None:
        payload = fill_in(trigger.payload, object_values(source, base, key, new))
    else:
        version = {"version_id": new.version} if new.version else {}
        payload = {
            "bucket": source.bucket,
            "key": key,
            "uri": f"{base}{key}",
            "size": new.size,
            "etag": new.etag,
            **version,
            "sequencer": new.sequencer,
        }
    cause = task_of_key(key) if source.bucket == "results" else None
    return Occurrence(name, new.occurrence_key, encode_payload(payload), StartedBy(kind="trigger", name=name), cause)


class _Named(msgspec.Struct, frozen=True):
    name: str


class _NotifiedObject(msgspec.Struct, frozen=True):
    key: str
    size: int = 0
    etag: str = msgspec.field(name="eTag", default="")
    version: str = msgspec.field(name="versionId", default="")
    sequencer: str = ""


class _NotifiedPlace(msgspec.Struct, frozen=True):
    bucket: _Named
    object: _NotifiedObject


class _Notification(msgspec.Struct, frozen=True):
    name: str = msgspec.field(name="eventName")
    at: str = msgspec.field(name="eventTime")
    s3: _NotifiedPlace


class _EventObject(msgspec.Struct, frozen=True):
    key: str
    size: int = 0
    etag: str = ""
    version: str = msgspec.field(name="version-id", default="")
    sequencer: str = ""


class _EventDetail(msgspec.Struct, frozen=True):
    bucket: _Named
    object: _EventObject


class _ObjectEvent(msgspec.Struct, frozen=True):
    at: str = msgspec.field(name="time")
    detail: _EventDetail


def notified_objects(records: msgspec.Raw) -> Iterator[NewObject]:
    """The objects of a direct notification, whose keys are URL-encoded. Records of other events are left out.

    Raises:
        msgspec.MsgspecError, ValueError: the records have no form of S3.
    """
    for record in msgspec.json.decode(records, type=list[_Notification]):
        if record.name.startswith(_CREATED):
            new = record.s3.object
            yield _new_object(record.s3.bucket, new, unquote_plus(new.key, errors="strict"), record.at)


def event_object(event: msgspec.Raw) -> NewObject:
    """The object of an event of EventBridge.

    Raises:
        msgspec.MsgspecError, ValueError: the event has no form of S3.
    """
    created = msgspec.json.decode(event, type=_ObjectEvent)
    return _new_object(created.detail.bucket, created.detail.object, created.detail.object.key, created.at)


def _new_object(bucket: _Named, new: _NotifiedObject | _EventObject, key: str, at: str) -> NewObject:
    version = "" if new.version == _NO_VERSION else new.version
    if not version and not new.sequencer:
        raise ValueError(f"the event of {key!r} has neither a version nor a sequencer")
    return NewObject(bucket.name, key, new.size, new.etag, version, new.sequencer, parse_time(at))
