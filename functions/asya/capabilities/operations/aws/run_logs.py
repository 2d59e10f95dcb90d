"""The logs that EMR Serverless writes for the driver and the executors of a job run, in the mesh's bucket."""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from asya.capabilities.operations.log_lines import RunSource
from asya.heavy.aws.run_items import RunRecord, job_run_number
from asya.protocol.job_runs import logs_prefix

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

DRIVER = "driver"
_FILE = re.compile(
    r"/jobs/(?P<job>[^/]+)/(?P<role>SPARK_DRIVER|SPARK_EXECUTOR/(?P<executor>[^/]+))/(?P<stream>std(?:out|err))[^/]*\.gz$"
)
_CHUNK = 64 * 1024
_GZIP = b"\x1f\x8b"
_LONGEST_LINE = 1024 * 1024


class Readable(Protocol):
    """The body of an object."""

    def read(self, amt: int) -> bytes:
        """Read up to so many bytes; none at the end."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of one worker's output.

    Attributes:
        version: differs after each upload, which replaces the file.
        worker: `driver`, or the number of an executor.
        stream: `stdout` or `stderr`.
    """

    key: str
    version: str
    worker: str
    stream: str

    @property
    def order(self) -> tuple[bool, int, str, str, str]:
        """The place of the file: the driver first, then the executors by number."""
        number = int(self.worker) if self.worker.isdecimal() else 0
        return (self.worker != DRIVER, number, self.worker, self.stream, self.key)


@dataclass(frozen=True, slots=True)
class FileLines:
    """Lines of a file, each with the byte at which it begins, and the byte after the last; None at the end of the file."""

    lines: list[tuple[int, str]]
    next: int | None


class RunLogs:
    """The logs of job runs.

    Raises:
        ClientError, BotoCoreError: from every method, if S3 fails or denies access.
    """

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def files(self, record: RunRecord, source: RunSource | None = None) -> list[LogFile]:
        """List the files of a run: the driver's, then those of the executors.

        Args:
            source: only files of the driver, or of the executors.
        """
        prefix = logs_prefix(record.actor, job_run_number(record))
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        files = []
        for entry in (entry for page in pages for entry in page.get("Contents", [])):
            found = _FILE.search(entry["Key"])
            if found is not None and (source is None or (source == DRIVER) == (found["executor"] is None)):
                files.append(LogFile(entry["Key"], entry["ETag"], found["executor"] or DRIVER, found["stream"]))
        return sorted(files, key=lambda file: file.order)

    def text(self, file: LogFile) -> str:
        """Read a whole file, as far as it is complete."""
        return b"".join(unpacked(self._body(file))).decode(errors="replace")

    def lines(self, file: LogFile, start: int, *, limit: int, size: int) -> FileLines:
        """Read lines of a file.

        Args:
            start: the byte of the unpacked file to begin at.
            limit: the maximum of lines.
            size: bytes after which no further line is read.
        """
        return read_lines(unpacked(self._body(file)), start, limit=limit, size=size)

    def _body(self, file: LogFile) -> Readable:
        return self._s3.get_object(Bucket=self._bucket, Key=file.key)["Body"]


def read_lines(chunks: Iterator[bytes], start: int, *, limit: int, size: int) -> FileLines:
    """Read lines from a byte on; see `RunLogs.lines`."""
    lines: list[tuple[int, str]] = []
    position, rest = 0, b""
    for chunk in chunks:
        position += len(chunk)
        if position <= start:
            continue
        rest += chunk[start - position :] if position - len(chunk) < start else chunk
        begin = position - len(rest)
        while rest:
            end = rest.find(b"\n") + 1
            if not end and len(rest) < _LONGEST_LINE:
                break
            end = min(end or _LONGEST_LINE, _LONGEST_LINE)
            lines.append((begin, rest[:end].rstrip(b"\r\n").decode(errors="replace")))
            begin, rest = begin + end, rest[end:]
            if len(lines) == limit or begin - start >= size:
                return FileLines(lines, begin)
    if rest:
        lines.append((position - len(rest), rest.decode(errors="replace")))
    return FileLines(lines, None)


def unpacked(body: Readable) -> Iterator[bytes]:
    """Yield the content of a gzip file, as far as it is complete; that of any other file as it is."""
    chunk = body.read(_CHUNK)
    if not chunk.startswith(_GZIP):
        while chunk:
            yield chunk
            chunk = body.read(_CHUNK)
        return
    unpacker = zlib.decompressobj(wbits=31)
    while chunk:
        try:
            # Bounded, because a small file may hold much text.
            content = unpacker.decompress(chunk, _LONGEST_LINE)
        except zlib.error:
            return  # damaged
        if content:
            yield content
        chunk = unpacker.unconsumed_tail
        if unpacker.eof:  # a file may have several members
            chunk, unpacker = unpacker.unused_data, zlib.decompressobj(wbits=31)
        chunk = chunk or body.read(_CHUNK)
