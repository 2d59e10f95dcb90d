# ruff: noqa: N803 - boto3 names its parameters so
"""A bucket in memory and a mirror of it, for the tests of the stand-in of EMR Serverless."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from asya_local.emr.settings import ControlRule
from asya_local.emr.storage.mirror import Mirror

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULE = ControlRule()


def etag(content: bytes) -> str:
    return f'"{content.hex()}"'


class Bucket:
    """The calls of an S3 client that the mirror uses. It refuses keys under `denied/`."""

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        self.objects = dict(objects or {})
        self.writes: list[str] = []
        self.reads: list[str] = []

    def get_paginator(self, _operation: str) -> Bucket:
        return self

    def paginate(self, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:
        if Prefix.startswith("hidden/"):
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListObjectsV2")
        if Prefix.startswith("broken/"):
            raise ClientError({"Error": {"Code": "SlowDown", "Message": "later"}}, "ListObjectsV2")
        keys = [key for key in sorted(self.objects) if key.startswith(Prefix)]
        yield {"Contents": [{"Key": key, "ETag": etag(self.objects[key])} for key in keys]}

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        self.reads.append(Key)
        self._check(Key, "GetObject")
        if Key not in self.objects:
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        return {"Body": io.BytesIO(self.objects[Key])}

    def head_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        if Key.startswith("denied/") or Key in {"no-head", "write-only", "write-only/_"}:
            raise ClientError({"Error": {"Code": "403", "Message": "Forbidden"}}, "HeadObject")
        if Key not in self.objects:
            raise ClientError({"Error": {"Code": "404", "Message": "Not Found"}}, "HeadObject")
        return {"ETag": etag(self.objects[Key])}

    def put_object(self, Bucket: str, Key: str, Body: io.BufferedReader) -> dict[str, Any]:
        self._check(Key, "PutObject")
        self.objects[Key] = Body.read()
        self.writes.append(f"put {Key}")
        return {"ETag": etag(self.objects[Key])}

    def delete_object(self, Bucket: str, Key: str) -> None:
        self._check(Key, "DeleteObject")
        del self.objects[Key]
        self.writes.append(f"delete {Key}")

    def _check(self, key: str, operation: str) -> None:
        if key.startswith("denied/"):
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)


class Folder:
    """A mirror of one bucket; `busy` are its open files."""

    def __init__(self, path: Path, objects: dict[str, bytes] | None = None) -> None:
        self.bucket = Bucket(objects)
        self.busy: set[str] = set()
        self.root = path / "s3"
        (self.root / "b").mkdir(parents=True)
        self.mirror = Mirror(self.root, path / "staging", self.bucket, RULE, lambda: self.busy)

    def write(self, key: str, text: str = "x") -> None:
        path = self.root / "b" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def files(self) -> dict[str, str]:
        """Return the content of the files by their keys."""
        paths = [path for path in (self.root / "b").rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root / "b")): path.read_text() for path in paths}
