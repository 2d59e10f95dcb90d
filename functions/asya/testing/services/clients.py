"""The clients of one process for S3, DynamoDB, EventBridge and CloudWatch; each call may have a fault."""

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

from botocore.exceptions import ClientError, ReadTimeoutError
from botocore.response import StreamingBody

from asya.capabilities.operations.aws.logs import LoggedPage
from asya.capabilities.operations.log_lines import LogLine
from asya.protocol.times import format_time
from asya.testing.dynamo.tables import MemoryDynamo, Paginator
from asya.testing.services.process import Process, Simulation

# Calls with a client token: AWS executes them once, also if the SDK repeats them.
_IDEMPOTENT_BY_TOKEN = frozenset({"transact_write_items"})
_CALLS = (
    *("get_item", "put_item", "update_item", "delete_item", "query"),
    *("batch_get_item", "batch_write_item", "transact_write_items"),
)


class ObjectObserver(Protocol):
    """Observes objects."""

    def put(self, key: str, body: bytes, by: Process, before: bytes | None) -> None:
        """An object was written; `before` is the content that it replaced."""

    def removed(self, key: str, body: bytes, by: Process) -> None:
        """An object with this content was deleted."""


def etag_of(content: bytes) -> str:
    """The ETag of an object."""
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


class Unobserved:
    """Observes nothing."""

    def put(self, key: str, body: bytes, by: Process, before: bytes | None) -> None:
        """See `ObjectObserver`."""

    def removed(self, key: str, body: bytes, by: Process) -> None:
        """See `ObjectObserver`."""


_LONGEST_KEY = 1024
_MOST_METADATA = 2048
"""Bytes of a key, and of the names and values of metadata together: the limits of S3."""
_SEALS = {"StorageClass": ("InvalidObjectState", None), "SSECustomerAlgorithm": ("InvalidRequest", "400")}
"""What makes an object that nobody can read as it is. An archived one has a head, one with a key of its writer has none."""


@dataclass
class Bucket:
    """The mesh's bucket: content and metadata by key.

    Attributes:
        name: refuses calls for another bucket; None for a bucket with any name.
        sealed: the errors of a read of objects that nobody can read, for GET and for HEAD.
    """

    observer: ObjectObserver = field(default_factory=Unobserved)
    objects: dict[str, bytes] = field(default_factory=dict)
    metadata: dict[str, Mapping[str, str]] = field(default_factory=dict)
    name: str | None = None
    sealed: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    def check_readable(self, key: str, *, head: bool = False) -> None:
        """Refuse to read an object that is archived, or encrypted with a key that its writer keeps."""
        code = self.sealed.get(key, (None, None))[head]
        if code is not None:
            raise _error(code, 400)

    def attributes(self, key: str) -> dict[str, Any]:
        """Return the ETag and the metadata of an object."""
        return {"ETag": etag_of(self.objects[key]), "Metadata": self.metadata.get(key, {})}

    def check_match(self, key: str, etag: str | None) -> None:
        """Refuse a call whose ETag is not that of the object."""
        if etag is None:
            return
        if key not in self.objects:
            raise _error("NoSuchKey", 404)
        if etag != self.attributes(key)["ETag"]:
            raise _error("PreconditionFailed", 412)


@dataclass
class S3Client:
    """The S3 client of one process."""

    process: Process
    bucket: Bucket

    def put_object(self, *, Bucket: str, Key: str, Body: bytes | IO[bytes], **more: Any) -> dict[str, Any]:  # noqa: N803
        """Write an object, on the condition of `IfNoneMatch` or `IfMatch`."""
        content = bytes(Body) if isinstance(Body, (bytes, bytearray, memoryview)) else Body.read()
        unknown = set(more) - {"ContentType", "IfMatch", "IfNoneMatch", "Metadata", *_SEALS}
        if unknown:
            raise TypeError(f"put_object does not support {sorted(unknown)}; add them to the simulation")

        def do() -> dict[str, Any]:
            if len(Key.encode()) > _LONGEST_KEY:
                raise _error("KeyTooLongError", 400)
            if sum(len(name) + len(value) for name, value in more.get("Metadata", {}).items()) > _MOST_METADATA:
                raise _error("MetadataTooLarge", 400)
            if more.get("IfNoneMatch") == "*" and Key in self.bucket.objects:
                raise _error("PreconditionFailed", 412)
            self.bucket.check_match(Key, more.get("IfMatch"))
            before = self.bucket.objects.get(Key)
            self.bucket.objects[Key] = content
            self.bucket.metadata[Key] = more.get("Metadata", {})
            self.bucket.sealed.pop(Key, None)
            for seal in _SEALS.keys() & more.keys():
                self.bucket.sealed[Key] = _SEALS[seal]
            self.bucket.observer.put(Key, content, self.process, before)
            return {"ETag": self.bucket.attributes(Key)["ETag"]}

        return self._call(Bucket, f"PutObject {Key}", do)

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Read an object."""

        def do() -> dict[str, Any]:
            if Key not in self.bucket.objects:
                raise _error("NoSuchKey", 404)
            self.bucket.check_readable(Key)
            content = self.bucket.objects[Key]
            body = StreamingBody(io.BytesIO(content), len(content))
            return {"Body": body, "ContentLength": len(content)} | self.bucket.attributes(Key)

        return self._call(Bucket, f"GetObject {Key}", do)

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Return the size, the ETag and the metadata of an object."""

        def do() -> dict[str, Any]:
            if Key not in self.bucket.objects:
                raise _error("404", 404)
            self.bucket.check_readable(Key, head=True)
            return {"ContentLength": len(self.bucket.objects[Key])} | self.bucket.attributes(Key)

        return self._call(Bucket, f"HeadObject {Key}", do)

    def delete_object(self, *, Bucket: str, Key: str, IfMatch: str | None = None) -> dict[str, Any]:  # noqa: N803
        """Delete an object, on the condition of `IfMatch`; do nothing if it does not exist."""

        def do() -> dict[str, Any]:
            self.bucket.check_match(Key, IfMatch)
            body = self.bucket.objects.pop(Key, None)
            if body is not None:
                self.bucket.observer.removed(Key, body, self.process)
            return {}

        return self._call(Bucket, f"DeleteObject {Key}", do)

    def get_paginator(self, action: str) -> "ObjectPages":
        """Return the paginator of a listing."""
        if action != "list_objects_v2":
            raise NotImplementedError(action)
        return ObjectPages(self)

    def list_objects(self, bucket: str, prefix: str, delimiter: str, after: str) -> dict[str, Any]:
        """List the objects below a prefix, grouped by the delimiter if there is one."""

        def do() -> dict[str, Any]:
            keys = sorted(key for key in self.bucket.objects if key.startswith(prefix) and key > after)
            folders: dict[str, None] = {}
            contents = []
            for key in keys:
                head, separator, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
                if separator:
                    folders[prefix + head + delimiter] = None
                else:
                    content = self.bucket.objects[key]
                    contents.append({"Key": key, "Size": len(content), "ETag": etag_of(content)})
            answer: dict[str, Any] = {"CommonPrefixes": [{"Prefix": folder} for folder in folders]} if folders else {}
            return answer | ({"Contents": contents} if contents else {})

        return self._call(bucket, f"ListObjectsV2 {prefix}", do)

    def _call(self, bucket: str, what: str, do: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if self.bucket.name not in (None, bucket):
            raise _error("NoSuchBucket", 404)
        return self.process.call(
            "s3",
            what,
            do,
            refusal=lambda: _error("SlowDown", 503),
            lost_response=lambda: ReadTimeoutError(endpoint_url="https://s3"),
        )


@dataclass(frozen=True)
class ObjectPages:
    """A listing in one page."""

    client: S3Client

    def paginate(
        self,
        *,
        Bucket: str,  # noqa: N803
        Prefix: str,  # noqa: N803
        Delimiter: str = "",  # noqa: N803
        StartAfter: str = "",  # noqa: N803
    ) -> Iterator[dict[str, Any]]:
        """Yield the page."""
        yield self.client.list_objects(Bucket, Prefix, Delimiter, StartAfter)


class DynamoClient:
    """The DynamoDB client of one process, over `MemoryDynamo`; batches may be executed in part."""

    exceptions = MemoryDynamo.exceptions

    def __init__(self, process: Process, tables: MemoryDynamo) -> None:
        self._process = process
        self._tables = tables

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        if name not in _CALLS:
            raise AttributeError(f"the simulated DynamoDB does not support {name}")
        return lambda **request: self._call(name, request)

    def get_paginator(self, action: str) -> Paginator:
        """Return the paginator of a query; each page is a call."""
        if action != "query":
            raise NotImplementedError(action)
        return Paginator(lambda **request: self._call("query", request))

    def _call(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        action: Callable[..., dict[str, Any]] = getattr(self._tables, name)
        return self._process.call(
            "dynamodb",
            f"{name} {_about(request)}",
            lambda: action(**request),
            in_part=(lambda: self._in_part(name, request)) if name.startswith("batch_") else None,
            refusal=lambda: _error("ThrottlingException", 400),
            lost_response=lambda: ReadTimeoutError(endpoint_url="https://dynamodb"),
            repeatable=name not in _IDEMPOTENT_BY_TOKEN,
        )

    def _in_part(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """Execute a random part of a batch."""
        ((table, content),) = request["RequestItems"].items()
        entries = content["Keys"] if name == "batch_get_item" else content
        is_executed = [self._process.random() < 0.5 for _ in entries]
        done = [entry for entry, is_done in zip(entries, is_executed, strict=True) if is_done]
        left = [entry for entry, is_done in zip(entries, is_executed, strict=True) if not is_done]
        rest = {table: content | {"Keys": left} if name == "batch_get_item" else left} if left else {}
        unprocessed = "UnprocessedKeys" if name == "batch_get_item" else "UnprocessedItems"
        if not done:
            return {"Responses": {}, unprocessed: rest}
        part = {table: content | {"Keys": done} if name == "batch_get_item" else done}
        action: Callable[..., dict[str, Any]] = getattr(self._tables, name)
        return action(RequestItems=part) | {unprocessed: rest}


def _about(request: dict[str, Any]) -> str:
    """Describe the items of a request, for the log."""
    if "TransactItems" in request:
        return f"({len(request['TransactItems'])} items)"
    if "RequestItems" in request:
        return " ".join(f"{table} ({len(entries)})" for table, entries in request["RequestItems"].items())
    key = request.get("Key") or request.get("Item") or request.get("ExpressionAttributeValues", {})
    return f"{request['TableName']} {' '.join(str(next(iter(value.values()))) for value in list(key.values())[:2])}"


def _error(code: str, status: int) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "simulated"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "simulated")


MAX_DELAY = 10.0


@dataclass
class EventBus:
    """The buses of the mesh.

    Attributes:
        subscriber: called with the detail of each event, soon after it was accepted.
    """

    subscriber: Callable[[str], None] = lambda _: None


@dataclass
class EventsClient:
    """The EventBridge client of one process."""

    process: Process
    bus: EventBus

    def put_events(self, *, Entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """Accept up to ten events."""

        def do() -> dict[str, Any]:
            # The rule of the mesh is on the bus for links where there is one; the default bus has a copy.
            own = [entry for entry in Entries if "EventBusName" in entry] or Entries
            for entry in own:
                self._deliver(entry["Detail"])
            return {"FailedEntryCount": 0, "Entries": [{"EventId": "simulated"} for _ in Entries]}

        return self.process.call(
            "events",
            f"PutEvents ({len(Entries)})",
            do,
            in_part=self._reject(len(Entries)),
            refusal=lambda: _event_error("ThrottlingException", 400),
            lost_response=lambda: ReadTimeoutError(endpoint_url="https://events"),
        )

    def _deliver(self, detail: str) -> None:
        simulation = self.process.simulation
        delay = simulation.random.uniform(0.0, MAX_DELAY)
        simulation.scheduler.start(lambda: self.bus.subscriber(detail), delay)

    @staticmethod
    def _reject(count: int) -> Callable[[], dict[str, Any]]:
        entry = {"ErrorCode": "InternalFailure", "ErrorMessage": "simulated"}
        return lambda: {"FailedEntryCount": count, "Entries": [entry] * count}


def _event_error(code: str, status: int) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "simulated"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "EventBridge")


@dataclass(frozen=True)
class SimulatedLines:
    """The newest lines that functions have logged; see `LoggedLines`."""

    simulation: Simulation

    def page(self, actor: str, start: float, pattern: str = "", token: str = "", limit: int = 10_000) -> LoggedPage:
        """See `LoggedLines`; a token is the id of the last line of the page before."""
        lines = [
            line
            for at, line in self._logged(actor, int(token or "-1"))
            if at >= start and pattern.strip('"') in line.line
        ]
        return LoggedPage(lines[:limit], lines[limit - 1].id if len(lines) > limit else None)

    def _logged(self, actor: str, after: int) -> Iterator[tuple[float, LogLine]]:
        scheduler = self.simulation.scheduler
        for number, noted in self.simulation.log.numbered:
            if number > after and noted.text.startswith("log: ") and noted.source.partition("/")[0] == actor:
                at = scheduler.at(noted.seconds)
                yield (
                    at.timestamp(),
                    LogLine(id=str(number), at=format_time(at), actor=actor, line=noted.text.removeprefix("log: ")),
                )


class NoMetrics:
    """The client of CloudWatch in a mesh that measures nothing."""

    def get_paginator(self, _action: str) -> "NoMetrics":
        """Return the paginator of an action."""
        return self

    def paginate(self, **_request: Any) -> list[dict[str, Any]]:
        """Return the only page."""
        return [{"MetricDataResults": []}]
