"""S3 in memory, with faults on demand."""

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

Call = tuple[str, str]


@dataclass
class FakeS3:
    """An S3 client with the calls that the mesh makes.

    Attributes:
        objects: (bucket, key) → content.
        metadata: (bucket, key) → the metadata of the object.
        calls: (operation, key) of each call in order, also of failed ones.
        fails: whether a call (operation, key) fails with 503.
    """

    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    metadata: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    fails: Callable[[str, str], bool] = lambda operation, key: False

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Write an object, on the condition of `IfNoneMatch` or `IfMatch`."""
        self._record_call("put", Key)
        if more.get("IfNoneMatch") == "*" and (Bucket, Key) in self.objects:
            raise _error("PreconditionFailed", 412)
        self._check_match(Bucket, Key, more.get("IfMatch"))
        self.objects[Bucket, Key] = Body
        self.metadata[Bucket, Key] = more.get("Metadata", {})
        return {"ETag": self._etag(Bucket, Key)}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Read an object."""
        self._record_call("get", Key)
        if (Bucket, Key) not in self.objects:
            raise _error("NoSuchKey", 404)
        return {"Body": io.BytesIO(self.objects[Bucket, Key])} | self._attributes(Bucket, Key)

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Return the ETag and the metadata of an object."""
        self._record_call("head", Key)
        if (Bucket, Key) not in self.objects:
            raise _error("404", 404)
        return self._attributes(Bucket, Key)

    def delete_object(self, *, Bucket: str, Key: str, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Delete an object, on the condition of `IfMatch`; do nothing if it does not exist."""
        self._record_call("delete", Key)
        self._check_match(Bucket, Key, more.get("IfMatch"))
        self.objects.pop((Bucket, Key), None)
        return {}

    def keys(self, prefix: str = "") -> list[str]:
        """Return the sorted keys below a prefix."""
        return sorted(key for _, key in self.objects if key.startswith(prefix))

    def content(self, key: str) -> bytes:
        """Return the content of an object in any bucket."""
        return next(body for (_, name), body in self.objects.items() if name == key)

    def _attributes(self, bucket: str, key: str) -> dict[str, Any]:
        return {"ETag": self._etag(bucket, key), "Metadata": self.metadata.get((bucket, key), {})}

    def _etag(self, bucket: str, key: str) -> str:
        return f'"{hashlib.md5(self.objects[bucket, key], usedforsecurity=False).hexdigest()}"'

    def _check_match(self, bucket: str, key: str, etag: str | None) -> None:
        """Refuse a call whose ETag is not that of the object."""
        if etag is None:
            return
        if (bucket, key) not in self.objects:
            raise _error("NoSuchKey", 404)
        if etag != self._etag(bucket, key):
            raise _error("PreconditionFailed", 412)

    def _record_call(self, operation: str, key: str) -> None:
        self.calls.append((operation, key))
        if self.fails(operation, key):
            raise _error("SlowDown", 503)


def _error(code: str, status: int) -> ClientError:
    answer: Any = {
        "Error": {"Code": code, "Message": "on demand"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, "S3")
