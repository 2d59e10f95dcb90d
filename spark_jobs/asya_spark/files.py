"""Files of a run, through Hadoop's file systems: what Spark itself reads and writes with, under the run's own rights."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_CHUNK = 1024 * 1024


class Writer(Protocol):
    """A file being written; it is there as a whole once it is closed."""

    def write(self, content: bytes) -> None:
        """Append."""


class Files(Protocol):
    """Where a run's files are."""

    def read(self, uri: str) -> bytes:
        """A whole file.

        Raises:
            FileNotFoundError: naming it.
        """

    def write(self, uri: str, content: bytes) -> None:
        """Write a whole file, replacing what was there."""

    def open(self, uri: str) -> AbstractContextManager[Writer]:
        """A new file, there as a whole once the block ends."""


class HadoopFiles:
    """`s3://`, `file://` and whatever else Spark knows."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._conf: Any = spark.sparkContext._jsc.hadoopConfiguration()

    def read(self, uri: str) -> bytes:
        """A whole file.

        Raises:
            FileNotFoundError: naming it.
        """
        path, system = self._located(uri)
        try:
            stream = system.open(path)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "FileNotFoundException":
                raise FileNotFoundError(f"there is no file {uri}") from error
            raise
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, uri: str, content: bytes) -> None:
        """Write a whole file, replacing what was there."""
        with self.open(uri) as writer:
            writer.write(content)

    @contextmanager
    def open(self, uri: str) -> Iterator[Writer]:
        """A new file, there as a whole once the block ends; on S3 nothing is there before."""
        path, system = self._located(uri)
        stream = system.create(path, True)
        try:
            yield _Stream(stream)
        finally:
            stream.close()

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, hidden ones (`_`, `.`) left out; none if there is no such folder."""
        path, system = self._located(folder)
        try:
            found = system.listStatus(path)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "FileNotFoundException":
                return []
            raise
        names = [str(status.getPath().getName()) for status in found if status.isFile()]
        return sorted(name for name in names if name[0] not in "_.")

    def remove(self, uri: str) -> None:
        """Remove a file; no file is fine too."""
        path, system = self._located(uri)
        system.delete(path, False)

    def _located(self, uri: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(uri)
        return path, path.getFileSystem(self._conf)


class _Stream:
    """Bytes go to the JVM in pieces: each travels as one line of text."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, content: bytes) -> None:
        for start in range(0, len(content), _CHUNK):
            self._stream.write(content[start : start + _CHUNK])
