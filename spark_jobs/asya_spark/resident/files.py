"""The files of a resident run, which reads and writes S3 by itself: Hadoop cannot write on a condition there."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

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
