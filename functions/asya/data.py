"""Reads and writes the data of a mesh, for handlers. Payloads carry references to the data.

    from asya import data

    with data.open(payload["flights"]) as body: ...
    data.write("reports/42.html", html.encode(), "text/html; charset=utf-8")
    for file in data.list("raw/", suffix=".csv"): ...
    for row in data.rows("raw/flights.csv.gz"): ...

A reference is any key that S3 allows, such as `Screenshot [1] 50%.png`, and names one file: no character of it is a pattern.
References are relative to the *data URI* in the environment variable `ASYA_DATA_URI`: `s3://bucket/data/` in a mesh, and
`file:///folder/` in tests. The `access` of an actor in the mesh file limits the references that it can read and write.
"""

import builtins
import gzip
import hashlib
import heapq
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast
from urllib.parse import urlsplit

from asya.protocol.data_references import (
    KEY_LIMIT,
    DataFile,
    check_new_reference,
    check_path,
    check_prefix,
    check_reference,
    hint,
    is_below_bucket,
    is_folder_marker,
    pattern_of_prefix,
)
from asya.protocol.data_rows import DataRow, Format, Lines, check_columns, format_of, read_rows

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ListObjectsV2RequestPaginateTypeDef

__all__ = ["VARIABLE", "DataFile", "DataRow", "list", "open", "read", "rows", "size", "uri", "write"]

VARIABLE = "ASYA_DATA_URI"
_LONGEST_NAME = 255
"""Bytes of a name in a folder of a machine."""
_ODD_KEYS = ".asya-keys"
"""The folder of files whose references no path can express."""
_ODD_NAME = ".reference"
"""The end of the name of a file with such a reference."""
_DRAFT = ".draft-"
_DRAFT_NAME = re.compile(rf"{re.escape(_DRAFT)}[a-z0-9_]{{8}}")
_READ_AHEAD = 4 * 2**20
"""Bytes of a file with rows in one request."""
_GZIP = b"\x1f\x8b"


class _NoFileError(FileNotFoundError, ValueError):
    """A reference that ends with `/` names no file."""


def uri(reference: str) -> str:
    """The absolute URI of a file or folder, for libraries that open URIs themselves, such as pandas.

    The URI has the key as it is. A library may read `*` and others as patterns; `open` never does.

    Raises:
        ValueError: the reference is malformed, or libraries would open other data, as for `a/../b`; use `open`.
    """
    return _store().uri(check_path(reference))


def list(prefix: str, *, suffix: str = "", after: str = "") -> Iterator[DataFile]:  # noqa: A001  (as `open`)
    """List the files whose references begin with a prefix, in the order of the bytes of their references.

    The list is read in pages of 1,000 while it is used, so its memory does not grow with the number of files. A file that is there
    all the time is listed once. One that is written or deleted meanwhile may be listed or not, so `open` may not find it.
    Empty objects that consoles and Hadoop write for folders (`raw/`, `raw_$folder$`) are left out.

    Args:
        prefix: the beginning of the references, such as `raw/` or `raw/2026-`; no pattern. An empty one lists all data.
        suffix: the end of the references, such as `.csv`. Other files are read from the list and left out.
        after: a reference, which need not exist, to list only what comes after it: goes on where a list was left.

    Raises:
        ValueError: the prefix is a URI, or no reference begins with it.
        PermissionError: the actor's `access` does not cover the prefix. The first step of the iteration raises it.
    """
    found = _store().files(check_prefix(prefix), check_reference(after) if after else "")
    return (
        each for each in found if each.reference.endswith(suffix) and not is_folder_marker(each.reference, each.size)
    )


def rows(
    reference: str,
    *,
    after: str = "",
    format: str | None = None,  # noqa: A002  (as of other readers)
    columns: Sequence[str] = (),
) -> Iterator[DataRow]:
    """The rows of a file of CSV or JSON Lines in their order, plain or compressed with gzip.

    The file is read while the rows are used, in parts of 4 MiB, so the memory does not grow with it. A malformed row has no value
    and a `problem`; the rows after it come all the same.

    Args:
        reference: the file.
        after: the `cursor` of a row, to get only the rows after it: goes on where a handler stopped.
        format: `csv` or `jsonl`, of a file whose name does not end with `.csv`, `.jsonl` or `.ndjson`, and perhaps `.gz`.
        columns: the names of the columns of a CSV file whose first row does not name them.

    Raises:
        ValueError: the reference or the columns are malformed, or the format is unknown.
        ValueError: of the iteration: the columns are malformed, a quote is not closed, compressed data is damaged, the cursor is of
            another file, or the file has changed.
        FileNotFoundError, PermissionError: of the iteration, as in `size`.
    """
    form = format_of(check_reference(reference), format)
    return _rows(reference, form, after, check_columns(columns, form))


def _rows(reference: str, form: Format, after: str, columns: tuple[str, ...]) -> Iterator[DataRow]:
    file = _Parts(_store(), reference)
    stream: BinaryIO = io.BufferedReader(file, _READ_AHEAD)
    is_compressed = stream.read(len(_GZIP)) == _GZIP
    stream.seek(0)
    if is_compressed:
        stream = cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    yield from read_rows(Lines(reference, file.version, stream), form, after, columns)


def size(reference: str) -> int:
    """The size of a file in bytes.

    Raises:
        ValueError: the reference is malformed, or names a folder and no file.
        FileNotFoundError: the file does not exist.
        PermissionError: the actor's `access` does not cover the file.
    """
    return _store().size(check_reference(reference))


def open(reference: str) -> BinaryIO:  # noqa: A001  (users expect `data.open`)
    """Open a file for reading as a stream, which transfers only the bytes that are read. Close it, or use `with`.

    Raises:
        ValueError, FileNotFoundError, PermissionError: as in `size`.
    """
    return _store().open(check_reference(reference))


def read(reference: str) -> bytes:
    """The whole content of a file.

    Raises:
        ValueError, FileNotFoundError, PermissionError: as in `size`.
    """
    with open(reference) as body:
        return body.read()


def write(reference: str, body: bytes, content_type: str = "application/octet-stream") -> str:
    """Write or replace a file, and return its reference.

    The write is atomic and idempotent, so a handler may run twice.

    Raises:
        ValueError: the reference is malformed, is a URI, or names a folder.
        PermissionError: the actor's `access` does not cover the file.
    """
    _store().write(check_new_reference(reference), body, content_type)
    return reference


class _Store(Protocol):
    def uri(self, reference: str) -> str: ...
    def files(self, prefix: str, after: str) -> Iterator[DataFile]: ...
    def size(self, reference: str) -> int: ...
    def version(self, reference: str) -> tuple[int, str]:
        """Bytes, and a text that differs for each content of the file."""

    def part(self, reference: str, version: str, start: int, end: int) -> bytes:
        """Bytes of a version of a file, which has all of them."""

    def open(self, reference: str) -> BinaryIO: ...
    def write(self, reference: str, body: bytes, content_type: str) -> None: ...


@dataclass(frozen=True)
class _Bucket:
    """A prefix of an S3 bucket."""

    name: str
    prefix: str  # empty, or ends with "/"

    def uri(self, reference: str) -> str:
        return f"s3://{self.name}/{self.prefix}{reference}"

    def files(self, prefix: str, after: str) -> Iterator[DataFile]:
        request: ListObjectsV2RequestPaginateTypeDef = {"Bucket": self.name, "Prefix": self.prefix + prefix}
        if after:
            request["StartAfter"] = self.prefix + after
        pages = _s3().get_paginator("list_objects_v2").paginate(**request)
        with self._readable_listing(prefix):
            for page in pages:
                for item in page.get("Contents", ()):
                    reference = item["Key"].removeprefix(self.prefix)
                    if reference:  # empty for a marker of the whole data
                        yield DataFile(reference, item["Size"], item["LastModified"].astimezone(UTC))

    def size(self, reference: str) -> int:
        with self._readable_errors(reference, "read"):
            return _s3().head_object(Bucket=self.name, Key=self._key(reference))["ContentLength"]

    def version(self, reference: str) -> tuple[int, str]:
        with self._readable_errors(reference, "read"):
            found = _s3().head_object(Bucket=self.name, Key=self._key(reference))
            return found["ContentLength"], found["ETag"].strip('"')

    def part(self, reference: str, version: str, start: int, end: int) -> bytes:
        key, span = self._key(reference), f"bytes={start}-{end - 1}"
        with self._readable_errors(reference, "read"):
            return _s3().get_object(Bucket=self.name, Key=key, Range=span, IfMatch=f'"{version}"')["Body"].read()

    def open(self, reference: str) -> BinaryIO:
        with self._readable_errors(reference, "read"):
            body = _s3().get_object(Bucket=self.name, Key=self._key(reference))["Body"]
        return cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", body)))

    def write(self, reference: str, body: bytes, content_type: str) -> None:
        with self._readable_errors(reference, "write"):
            _s3().put_object(Bucket=self.name, Key=self._key(reference), Body=body, ContentType=content_type)

    def _key(self, reference: str) -> str:
        key = self.prefix + reference
        if len(key.encode()) > KEY_LIMIT:
            raise ValueError(f"{reference[:200]!r}: the key has {len(key.encode())} bytes; S3 allows {KEY_LIMIT}")
        if not is_below_bucket(key):
            raise ValueError(f"{reference[:200]!r} is not a reference: its '..' lead above the bucket")
        return key

    @contextmanager
    def _readable_listing(self, prefix: str) -> Iterator[None]:
        from botocore.exceptions import ClientError

        try:
            yield
        except ClientError as error:
            if error.response["Error"]["Code"] in {"403", "AccessDenied"}:
                pattern = json.dumps(pattern_of_prefix(prefix), ensure_ascii=False)
                raise PermissionError(
                    f"may not list {prefix!r} ({self.uri(prefix)}): the actor's `access` in the mesh file does not cover that "
                    f"prefix; list a narrower one, or add access: [{{bucket: data, read: {pattern}}}] to the actor"
                ) from error
            raise

    @contextmanager
    def _readable_errors(self, reference: str, action: str) -> Iterator[None]:
        from botocore.exceptions import ClientError

        try:
            yield
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in {"404", "NoSuchKey", "NotFound"}:
                raise _missing(reference, self.uri(reference)) from error
            if code in {"403", "AccessDenied"}:  # also for a missing key without the permission to list
                raise PermissionError(
                    f"may not {action} {reference!r} ({self.uri(reference)}): it does not exist, "
                    f"or the actor's `access` in the mesh file does not let it {action} that"
                ) from error
            if code in {"412", "PreconditionFailed"}:
                raise _changed(reference) from error
            raise


@dataclass(frozen=True)
class _Folder:
    """A local folder with the same behavior, for tests."""

    root: Path

    def uri(self, reference: str) -> str:
        return f"file://{self.root}/{reference}"  # Hadoop expects it unescaped

    def files(self, prefix: str, after: str) -> Iterator[DataFile]:
        by_path, odd = _files_below(str(self.root), "", prefix), self._odd_files(prefix)
        last = after
        for found in heapq.merge(by_path, odd, key=attrgetter("reference")):
            if found.reference > last:  # texts compare as their bytes in UTF-8
                last = found.reference
                yield found

    def size(self, reference: str) -> int:
        return self._existing(reference).stat().st_size

    def version(self, reference: str) -> tuple[int, str]:
        return _version(self._existing(reference).stat())

    def part(self, reference: str, version: str, start: int, end: int) -> bytes:
        with self.open(reference) as file:
            if _version(os.fstat(file.fileno()))[1] != version:
                raise _changed(reference)
            file.seek(start)
            return file.read(end - start)

    def open(self, reference: str) -> BinaryIO:
        return builtins.open(self._existing(reference), "rb")

    def write(self, reference: str, body: bytes, content_type: str) -> None:  # noqa: ARG002  (a folder stores no types)
        path = self._path(reference)
        if path == self._odd_path(reference):
            self._write_odd(reference, body)
            return
        try:
            _write(path, body)
        except (FileExistsError, IsADirectoryError, NotADirectoryError):  # S3 may have both `a` and `a/b`
            self._write_odd(reference, body)

    def _write_odd(self, reference: str, body: bytes) -> None:
        path = self._odd_path(reference)
        _write(path.with_suffix(_ODD_NAME), reference.encode())
        _write(path, body)

    def _odd_files(self, prefix: str) -> Iterator[DataFile]:
        """Those whose references no path can express, in order."""
        found = []
        for path in (self.root / _ODD_KEYS).glob(f"*{_ODD_NAME}"):
            with suppress(FileNotFoundError):
                reference = path.read_bytes().decode()
                if reference.startswith(prefix):
                    found.append(_file(reference, path.with_suffix("").stat()))
        return iter(sorted(found, key=attrgetter("reference")))

    def _existing(self, reference: str) -> Path:
        for path in (self._path(reference), self._odd_path(reference)):
            if path.is_file():
                return path
        raise _missing(reference, self.uri(reference))

    def _path(self, reference: str) -> Path:
        """The file of a reference; one that a path can express has the same path."""
        parts = reference.split("/")
        is_path = "\0" not in reference and all(
            part not in ("", ".", "..") and len(part.encode()) <= _LONGEST_NAME for part in parts
        )
        # A list would take the file for one of this module.
        is_own = parts[0] == _ODD_KEYS or _DRAFT_NAME.fullmatch(parts[-1]) is not None
        return self.root / reference if is_path and not is_own else self._odd_path(reference)

    def _odd_path(self, reference: str) -> Path:
        return self.root / _ODD_KEYS / hashlib.sha256(reference.encode()).hexdigest()


class _Parts(io.RawIOBase):
    """One version of a file, read in parts. No connection stays open between them, however long the work on a row takes."""

    def __init__(self, store: _Store, reference: str) -> None:
        self._store, self._reference = store, reference
        self._size, self.version = store.version(reference)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence] + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer)
        end = min(self._position + len(view), self._size)
        if end <= self._position:
            return 0
        part = self._store.part(self._reference, self.version, self._position, end)
        view[: len(part)] = part
        self._position += len(part)
        return len(part)


def _version(found: os.stat_result) -> tuple[int, str]:
    return found.st_size, f"{found.st_size:x}-{found.st_mtime_ns:x}-{found.st_ino:x}"


def _files_below(folder: str, start: str, prefix: str) -> Iterator[DataFile]:
    """The files below a folder whose references begin with a prefix, in the order of S3; `start` is its own reference."""
    try:
        entries = [*os.scandir(folder)]
    except FileNotFoundError:
        return  # removed meanwhile
    named = {f"{entry.name}/" if entry.is_dir() else entry.name: entry for entry in entries}
    for name in sorted(named):
        reference, entry = start + name, named[name]
        if name.endswith("/"):
            if reference != f"{_ODD_KEYS}/" and (reference.startswith(prefix) or prefix.startswith(reference)):
                yield from _files_below(entry.path, reference, prefix)
        elif reference.startswith(prefix) and not _DRAFT_NAME.fullmatch(name) and _is_utf8(reference):
            with suppress(FileNotFoundError):
                yield _file(reference, os.stat(entry.path))


def _file(reference: str, found: os.stat_result) -> DataFile:
    return DataFile(reference, found.st_size, datetime.fromtimestamp(int(found.st_mtime), UTC))


def _is_utf8(reference: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in reference)


def _write(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=_DRAFT)
    try:
        with builtins.open(descriptor, "wb") as file:
            file.write(body)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _missing(reference: str, uri: str) -> FileNotFoundError:
    kind = _NoFileError if reference.endswith("/") else FileNotFoundError
    return kind(f"file {reference!r} does not exist ({uri}){hint(reference)}")


def _changed(reference: str) -> ValueError:
    return ValueError(f"{reference} has changed while it was read; read it from its beginning")


def _store() -> _Store:
    base = os.environ.get(VARIABLE)
    if not base:
        raise RuntimeError(f"{VARIABLE} is not set: a mesh sets it; in a test set it to file:///your/folder/")
    return _store_at(base)


@cache
def _store_at(base: str) -> _Store:
    parts = urlsplit(base)
    if parts.scheme == "s3" and parts.netloc:
        prefix = parts.path.strip("/")
        return _Bucket(parts.netloc, f"{prefix}/" if prefix else "")
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return _Folder(Path(parts.path))
    raise ValueError(f"{VARIABLE}={base!r} is neither s3://bucket/prefix/ nor file:///folder/")


@cache
def _s3() -> "S3Client":
    import boto3  # imported late for short cold starts of handlers that read no data

    return boto3.client("s3")
