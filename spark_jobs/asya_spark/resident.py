"""Resident runs: drivers that wait for further batches instead of ending (`protocol §10.resident`).

They read and write S3 by themselves: Hadoop cannot write on a condition there.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Protocol
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from asya.protocol import text
from asya_spark.clock import RunClock, now_text
from asya_spark.files import Files, HadoopFiles, Writer
from asya_spark.secrets import connector
from asya_spark.tables.commits import LocalCommits, S3Commits

_CHUNK = 1024 * 1024
_IN_MEMORY = 8 * 1024 * 1024


class ResidentFiles(Files, Protocol):
    """Files, some of which are written once."""

    def create(self, uri: str, content: bytes) -> bool:
        """Writes a whole file unless it exists; returns whether it did."""


def resident_files(spark: SparkSession, uri: str, region: str | None) -> ResidentFiles:
    """The files of a resident run, under the credentials of the run, which boto3 refreshes.

    Args:
        uri: of any of them; on `file://` in a test.
        region: the region of the mesh; None for that of the process.
    """
    return S3Files(connector(region)("s3")) if urlsplit(uri).scheme in ("s3", "s3a") else LocalFiles(spark)


class LocalFiles(HadoopFiles):
    """Files in a folder of this machine."""

    def create(self, uri: str, content: bytes) -> bool:
        """Writes a whole file unless it exists; returns whether it did."""
        return LocalCommits().create(uri, content)


class S3Files:
    """Files on S3, by boto3."""

    def __init__(self, client: Any) -> None:
        self._s3 = client
        self._commits = S3Commits(client)

    def read(self, uri: str) -> bytes:
        """Reads a whole file.

        Raises:
            FileNotFoundError: if the file is missing; names the URI.
        """
        return b"".join(self.chunks(uri))

    def chunks(self, uri: str) -> Iterator[bytes]:
        """Reads a file in pieces.

        Raises:
            FileNotFoundError: if the file is missing; names the URI.
        """
        bucket, key = _address(uri)
        try:
            body = self._s3.get_object(Bucket=bucket, Key=key)["Body"]
        except self._s3.exceptions.NoSuchKey as error:
            raise FileNotFoundError(f"there is no file {uri}") from error
        try:
            yield from body.iter_chunks(_CHUNK)
        finally:
            body.close()

    def write(self, uri: str, content: bytes) -> None:
        """Writes a whole file and replaces an existing one."""
        bucket, key = _address(uri)
        self._s3.put_object(Bucket=bucket, Key=key, Body=content)

    @contextmanager
    def open(self, uri: str) -> Iterator[Writer]:
        """Opens a new file, which exists completely once the block ends without an error."""
        bucket, key = _address(uri)
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as buffer:
            yield _Buffer(buffer)
            buffer.seek(0)
            self._s3.upload_fileobj(buffer, bucket, key)

    def create(self, uri: str, content: bytes) -> bool:
        """Writes a whole file unless it exists; returns whether it did."""
        return self._commits.create(uri, content)


class _Buffer:
    def __init__(self, buffer: IO[bytes]) -> None:
        self._buffer = buffer

    def write(self, content: bytes) -> None:
        self._buffer.write(content)


def _address(uri: str) -> tuple[str, str]:
    parts = urlsplit(uri)
    return parts.netloc, parts.path.lstrip("/")


POLL_SECONDS = 0.25
# The dispatcher gives a batch only to a run that was idle at most 5 s ago.
PRESENCE_SECONDS = 2.0


@dataclass(frozen=True)
class Linger:
    """How long a job run waits.

    Attributes:
        seconds: for the next batch.
        limit: minutes after which EMR Serverless ends the job run.
        region: the region of the mesh; None for that of the process.
    """

    seconds: float
    limit: float
    region: str | None = None


class Batches:
    """The batches of this job run, one after the other.

    Args:
        folder: URI of the folder of the run; ends with `/`.
        clock: the time that the job run has left.
        is_alive: whether the SparkContext can take a batch.
    """

    def __init__(
        self, files: ResidentFiles, folder: str, linger: Linger, clock: RunClock, is_alive: Callable[[], bool]
    ) -> None:
        self._files = files
        self._folder = folder
        self._linger = linger
        self._clock = clock
        self._is_alive = is_alive
        self._next = 1
        self._since = ""

    def announce(self) -> None:
        """Says that the next batch may come; call it just before the commit of the present one, which wakes the dispatcher."""
        self._since = now_text()
        self._write_presence()

    def wait(self, timeout: float) -> str | None:
        """Waits for the next batch.

        Args:
            timeout: seconds that an envelope may take; with less time left there is no next batch.

        Returns:
            The URI of its manifest; None if the run ends.
        """
        uri = f"{self._folder}batches/{self._next:06d}/manifest.json"
        ends_at = time.monotonic() + self._linger.seconds
        said_at = time.monotonic()
        while True:
            content = self._read_head(uri)
            if content is not None:
                self._next += 1
                return None if "closed" in content else uri
            reason = self._reason_to_end(ends_at, timeout)
            if reason is not None:
                mark = json.dumps({"closed": reason}).encode("ascii")
                if self._files.create(uri, mark):
                    return None
                continue  # the dispatcher was faster
            if time.monotonic() - said_at >= PRESENCE_SECONDS:
                said_at = time.monotonic()
                self._write_presence()
            time.sleep(POLL_SECONDS)

    def _reason_to_end(self, ends_at: float, timeout: float) -> str | None:
        if not self._is_alive():
            return "ended"
        if self._clock.left() < timeout:
            return "limit"
        return "linger" if time.monotonic() >= ends_at else None

    def _read_head(self, uri: str) -> dict[str, Any] | None:
        """The first line of a batch; None if there is none yet."""
        try:
            head: dict[str, Any] = json.loads(next(text.lines(self._files.chunks(uri))))
        except FileNotFoundError:
            return None
        return head

    def _write_presence(self) -> None:
        content = {"at": now_text(), "batch": self._next, "since": self._since}
        self._files.write(f"{self._folder}batches/presence.json", json.dumps(content).encode("ascii"))
