"""Writes small files on the condition that they are absent, which Hadoop cannot do on S3."""

import contextlib
import os
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit
from uuid import uuid4

_ATTEMPTS = 5


class Commits(Protocol):
    """Files that are written once."""

    def read(self, uri: str) -> bytes | None:
        """The content; None if there is no such file."""

    def create(self, uri: str, content: bytes) -> bool:
        """Writes a whole file unless it exists; returns whether it did."""

    def names(self, folder: str, beginning: str = "") -> list[str]:
        """The names of the files in a folder that begin so, in order; empty if there is no such folder."""


def commits_for(uri: str) -> Commits:
    """The commits below a folder on `s3://`, or on `file://` in a test.

    Raises:
        ValueError: another scheme.
        ModuleNotFoundError: on S3, without boto3.
    """
    match urlsplit(uri).scheme:
        case "s3" | "s3a":
            return S3Commits()
        case "file":
            return LocalCommits()
        case scheme:
            raise ValueError(f"a table needs s3://, or file:// in a test; got {uri!r} ({scheme or 'no scheme'})")


def tell_earlier(table: str) -> None:
    """Tells the log that the rows of an earlier attempt at a call count, and not those of this one."""
    print(
        f"asya_spark: {table}: an earlier attempt at this call has committed its rows; those of this attempt are not written",
        flush=True,
    )


class S3Commits:
    """Commits on S3, under the credentials of the run, which boto3 refreshes."""

    def __init__(self, client: Any = None) -> None:
        if client is None:
            # Only jobs that append once need boto3, which is no dependency of jobs otherwise.
            import boto3

            client = boto3.client("s3")
        self._s3 = client

    def read(self, uri: str) -> bytes | None:
        """The content; None if there is no such file."""
        bucket, key = _address(uri)
        try:
            return bytes(self._s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        except self._s3.exceptions.NoSuchKey:
            return None

    def create(self, uri: str, content: bytes) -> bool:
        """Writes a whole file unless it exists; returns whether it did."""
        bucket, key = _address(uri)
        for attempt in range(_ATTEMPTS):
            try:
                self._s3.put_object(Bucket=bucket, Key=key, Body=content, IfNoneMatch="*")
            except self._s3.exceptions.ClientError as error:
                code = error.response["Error"]["Code"]
                if code in ("PreconditionFailed", "412"):
                    # boto3 repeats a request without an answer, and the first one may have written the file.
                    return self.read(uri) == content
                if code not in ("ConditionalRequestConflict", "409") or attempt == _ATTEMPTS - 1:
                    raise
            else:
                return True
        return False

    def names(self, folder: str, beginning: str = "") -> list[str]:
        """The names of the files in a folder that begin so, in order; empty if there is no such folder."""
        bucket, prefix = _address(f"{folder}/")
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=f"{prefix}{beginning}", Delimiter="/"
        )
        keys = (item["Key"] for page in pages for item in page.get("Contents", ()))
        return sorted(
            key.removeprefix(prefix) for key in keys if key != prefix
        )  # a console marks a folder by its own key


class LocalCommits:
    """Commits in a folder of this machine."""

    def read(self, uri: str) -> bytes | None:
        """The content; None if there is no such file."""
        try:
            return _path(uri).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, uri: str, content: bytes) -> bool:
        """Writes a whole file unless it exists; returns whether it did."""
        path = _path(uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{uuid4().hex}")
        draft.write_bytes(content)
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        finally:
            with contextlib.suppress(FileNotFoundError):
                draft.unlink()
        return True

    def names(self, folder: str, beginning: str = "") -> list[str]:
        """The names of the files in a folder that begin so, in order; empty if there is no such folder."""
        try:
            names = os.listdir(_path(folder))
        except FileNotFoundError:
            return []
        return sorted(name for name in names if name.startswith(beginning) and not name.startswith("."))


def _address(uri: str) -> tuple[str, str]:
    parts = urlsplit(uri)
    return parts.netloc, parts.path.lstrip("/")


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))
