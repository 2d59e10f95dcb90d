"""Buckets in memory, failing on demand."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

Call = tuple[str, str]


@dataclass
class FakeS3:
    """The calls of an S3 client that the mesh makes.

    Attributes:
        objects: (bucket, key) → content.
        metadata: (bucket, key) → what was put there with the content.
        calls: (operation, key), in order, those that failed included.
        fails: whether a call (operation, key) is answered with 503.
    """

    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    metadata: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    fails: Callable[[str, str], bool] = lambda operation, key: False

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Write, unless `IfNoneMatch` says otherwise."""
        self._note("put", Key)
        if more.get("IfNoneMatch") == "*" and (Bucket, Key) in self.objects:
            raise _error("PreconditionFailed", 412)
        self.objects[Bucket, Key] = Body
        self.metadata[Bucket, Key] = more.get("Metadata", {})
        return {}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Read."""
        self._note("get", Key)
        if (Bucket, Key) not in self.objects:
            raise _error("NoSuchKey", 404)
        return {"Body": io.BytesIO(self.objects[Bucket, Key])}

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Whether it is there."""
        self._note("head", Key)
        if (Bucket, Key) not in self.objects:
            raise _error("404", 404)
        return {}

    def delete_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Remove; no object is fine too."""
        self._note("delete", Key)
        self.objects.pop((Bucket, Key), None)
        return {}

    def keys(self, prefix: str = "") -> list[str]:
        """The keys below a prefix, in order."""
        return sorted(key for _, key in self.objects if key.startswith(prefix))

    def content(self, key: str) -> bytes:
        """What an object holds, whatever its bucket."""
        return next(body for (_, name), body in self.objects.items() if name == key)

    def _note(self, operation: str, key: str) -> None:
        self.calls.append((operation, key))
        if self.fails(operation, key):
            raise _error("SlowDown", 503)


def _error(code: str, status: int) -> ClientError:
    answer: Any = {
        "Error": {"Code": code, "Message": "on demand"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, "S3")
