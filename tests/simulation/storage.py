"""S3 and DynamoDB as one process sees them: every call may be its last, or go wrong."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from botocore.exceptions import ClientError, ReadTimeoutError
from botocore.response import StreamingBody

from tests.doubles.tables import MemoryDynamo, Paginator
from tests.simulation.process import Process

# Calls that AWS itself makes once only, however often the SDK repeats them.
_IDEMPOTENT_BY_TOKEN = frozenset({"transact_write_items"})
_CALLS = (
    *("get_item", "put_item", "update_item", "delete_item", "query"),
    *("batch_get_item", "batch_write_item", "transact_write_items"),
)


class ObjectObserver(Protocol):
    """Is told what happens to objects."""

    def put(self, key: str, body: bytes, by: Process, before: bytes | None) -> None:
        """An object was written, perhaps over another."""

    def removed(self, key: str, by: Process) -> None:
        """An object is there no more."""


@dataclass
class Bucket:
    """The objects of the mesh's bucket, by key."""

    observer: ObjectObserver
    objects: dict[str, bytes] = field(default_factory=dict)


@dataclass
class S3Client:
    """The calls that a process makes."""

    process: Process
    bucket: Bucket

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Write, unless `IfNoneMatch` says otherwise."""
        unknown = set(more) - {"ContentType", "IfNoneMatch", "Metadata"}
        if unknown:
            raise TypeError(f"{unknown} is not known here")

        def do() -> dict[str, Any]:
            if more.get("IfNoneMatch") == "*" and Key in self.bucket.objects:
                raise _error("PreconditionFailed", 412)
            before = self.bucket.objects.get(Key)
            self.bucket.objects[Key] = bytes(Body)
            self.bucket.observer.put(Key, bytes(Body), self.process, before)
            return {}

        return self._call(f"PutObject {Key}", do)

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Read."""

        def do() -> dict[str, Any]:
            if Key not in self.bucket.objects:
                raise _error("NoSuchKey", 404)
            content = self.bucket.objects[Key]
            return {"Body": StreamingBody(io.BytesIO(content), len(content)), "ContentLength": len(content)}

        return self._call(f"GetObject {Key}", do)

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """How large it is."""

        def do() -> dict[str, Any]:
            if Key not in self.bucket.objects:
                raise _error("404", 404)
            return {"ContentLength": len(self.bucket.objects[Key])}

        return self._call(f"HeadObject {Key}", do)

    def delete_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Remove; no object is fine too."""

        def do() -> dict[str, Any]:
            if self.bucket.objects.pop(Key, None) is not None:
                self.bucket.observer.removed(Key, self.process)
            return {}

        return self._call(f"DeleteObject {Key}", do)

    def get_paginator(self, operation: str) -> "ObjectPages":
        """Pages of a listing."""
        if operation != "list_objects_v2":
            raise NotImplementedError(operation)
        return ObjectPages(self)

    def list_objects(self, prefix: str, delimiter: str, after: str) -> dict[str, Any]:
        """All objects below a prefix, or what lies between it and the next delimiter."""

        def do() -> dict[str, Any]:
            keys = sorted(key for key in self.bucket.objects if key.startswith(prefix) and key > after)
            folders: dict[str, None] = {}
            contents = []
            for key in keys:
                head, found, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
                if found:
                    folders[prefix + head + delimiter] = None
                else:
                    contents.append({"Key": key, "Size": len(self.bucket.objects[key])})
            answer: dict[str, Any] = {"CommonPrefixes": [{"Prefix": folder} for folder in folders]} if folders else {}
            return answer | ({"Contents": contents} if contents else {})

        return self._call(f"ListObjectsV2 {prefix}", do)

    def _call(self, what: str, do: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return self.process.call(
            "s3",
            what,
            do,
            refused=lambda: _error("SlowDown", 503),
            lost=lambda: ReadTimeoutError(endpoint_url="https://s3"),
        )


@dataclass(frozen=True)
class ObjectPages:
    """Listings, each in one page."""

    client: S3Client

    def paginate(
        self,
        *,
        Bucket: str,  # noqa: N803
        Prefix: str,  # noqa: N803
        Delimiter: str = "",  # noqa: N803
        StartAfter: str = "",  # noqa: N803
    ) -> Iterator[dict[str, Any]]:
        """The page."""
        yield self.client.list_objects(Prefix, Delimiter, StartAfter)


class DynamoClient:
    """`MemoryDynamo`'s calls as a process makes them; batches may be done in part."""

    exceptions = MemoryDynamo.exceptions

    def __init__(self, process: Process, tables: MemoryDynamo) -> None:
        self._process = process
        self._tables = tables

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        if name not in _CALLS:
            raise AttributeError(f"the simulated DynamoDB has no {name}")
        return lambda **request: self._call(name, request)

    def get_paginator(self, operation: str) -> Paginator:
        """Pages of a query, each a call of its own."""
        if operation != "query":
            raise NotImplementedError(operation)
        return Paginator(lambda **request: self._call("query", request))

    def _call(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        operation: Callable[..., dict[str, Any]] = getattr(self._tables, name)
        return self._process.call(
            "dynamodb",
            f"{name} {_about(request)}",
            lambda: operation(**request),
            in_part=(lambda: self._in_part(name, request)) if name.startswith("batch_") else None,
            refused=lambda: _error("ThrottlingException", 400),
            lost=lambda: ReadTimeoutError(endpoint_url="https://dynamodb"),
            repeatable=name not in _IDEMPOTENT_BY_TOKEN,
        )

    def _in_part(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """A batch of which some is left undone."""
        ((table, asked),) = request["RequestItems"].items()
        entries = asked["Keys"] if name == "batch_get_item" else asked
        some = [self._process.random() < 0.5 for _ in entries]
        done = [entry for entry, is_done in zip(entries, some, strict=True) if is_done]
        left = [entry for entry, is_done in zip(entries, some, strict=True) if not is_done]
        rest = {table: asked | {"Keys": left} if name == "batch_get_item" else left} if left else {}
        unprocessed = "UnprocessedKeys" if name == "batch_get_item" else "UnprocessedItems"
        if not done:
            return {"Responses": {}, unprocessed: rest}
        part = {table: asked | {"Keys": done} if name == "batch_get_item" else done}
        operation: Callable[..., dict[str, Any]] = getattr(self._tables, name)
        return operation(RequestItems=part) | {unprocessed: rest}


def _about(request: dict[str, Any]) -> str:
    """Which item a request is about, for the log."""
    if "TransactItems" in request:
        return f"({len(request['TransactItems'])} items)"
    if "RequestItems" in request:
        return " ".join(f"{table} ({len(asked)})" for table, asked in request["RequestItems"].items())
    key = request.get("Key") or request.get("Item") or request.get("ExpressionAttributeValues", {})
    return f"{request['TableName']} {' '.join(str(next(iter(value.values()))) for value in list(key.values())[:2])}"


def _error(code: str, status: int) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "simulated"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "simulated")
