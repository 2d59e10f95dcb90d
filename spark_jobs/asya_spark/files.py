"""The files of a run, through Hadoop's file systems, with the permissions of the run."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_CHUNK = 1024 * 1024


class Writer(Protocol):
    """An open file; it exists completely once it is closed."""

    def write(self, content: bytes) -> None:
        """Appends content."""


class Files(Protocol):
    """Access to the files of a run, by URI."""

    def read(self, uri: str) -> bytes:
        """Reads a whole file.

        Raises:
            FileNotFoundError: if the file is missing; names the URI.
        """

    def chunks(self, uri: str) -> Iterator[bytes]:
        """Reads a file in pieces.

        Raises:
            FileNotFoundError: if the file is missing; names the URI.
        """

    def write(self, uri: str, content: bytes) -> None:
        """Writes a whole file and replaces an existing one."""

    def open(self, uri: str) -> AbstractContextManager[Writer]:
        """Opens a new file, which exists completely once the block ends."""


class HadoopFiles:
    """Files under `s3://`, `file://` and the other schemes of Hadoop."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._conf: Any = spark.sparkContext._jsc.hadoopConfiguration()

    def read(self, uri: str) -> bytes:
        """Reads a whole file.

        Raises:
            FileNotFoundError: if the file is missing; names the URI.
        """
        return b"".join(self.chunks(uri))

    def chunks(self, uri: str) -> Iterator[bytes]:
        """Reads a file in pieces, because Py4J holds each several times: as text, in both processes.

        Raises:
            FileNotFoundError: if the file is missing; names the URI.
        """
        path, system = self._resolve(uri)
        try:
            stream = system.open(path)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "FileNotFoundException":
                raise FileNotFoundError(f"there is no file {uri}") from error
            raise
        try:
            while chunk := bytes(stream.readNBytes(_CHUNK)):
                yield chunk
        finally:
            stream.close()

    def write(self, uri: str, content: bytes) -> None:
        """Writes a whole file and replaces an existing one."""
        with self.open(uri) as writer:
            writer.write(content)

    @contextmanager
    def open(self, uri: str) -> Iterator[Writer]:
        """Opens a new file, which exists completely once the block ends; on S3 it does not exist before."""
        path, system = self._resolve(uri)
        stream = system.create(path, True)
        try:
            yield _Stream(stream)
        finally:
            stream.close()

    def names(self, folder: str) -> list[str]:
        """The sorted names of the files in a folder, without hidden ones; empty if the folder is missing."""
        names = [str(status.getPath().getName()) for status in self._statuses(folder) if status.isFile()]
        return sorted(name for name in names if not is_hidden(name))

    def folders(self, folder: str) -> list[str]:
        """The sorted names of the folders in a folder, hidden ones too; empty without it."""
        return sorted(str(status.getPath().getName()) for status in self._statuses(folder) if status.isDirectory())

    def tree(self, folder: str) -> list[str]:
        """The sorted names of all files below a folder, relative to it, without those with a hidden part; empty without it."""
        path, system = self._resolve(folder)
        base = f"{system.makeQualified(path)}/"
        names = []
        try:
            found = system.listFiles(path, True)
            while found.hasNext():
                names.append(str(found.next().getPath().toString()).removeprefix(base))
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "FileNotFoundException":
                return []
            raise
        return sorted(name for name in names if not any(map(is_hidden, name.split("/"))))

    def parquet_rows(self, uri: str) -> int:
        """The number of rows that the footer of a Parquet file states."""
        path, _ = self._resolve(uri)
        parquet = self._jvm.org.apache.parquet.hadoop
        reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, self._conf))
        try:
            return int(reader.getRecordCount())
        finally:
            reader.close()

    def exists(self, uri: str) -> bool:
        """Whether there is a file or a folder."""
        path, system = self._resolve(uri)
        return bool(system.exists(path))

    def rename(self, uri: str, target: str) -> bool:
        """Moves a file to a name that is free, and makes its folders; returns whether it did."""
        path, system = self._resolve(uri)
        target_path, _ = self._resolve(target)
        system.mkdirs(target_path.getParent())
        try:
            return bool(system.rename(path, target_path))
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() in (
                "FileNotFoundException",
                "FileAlreadyExistsException",
            ):
                return False
            raise

    def remove(self, uri: str) -> None:
        """Removes a file; idempotent."""
        path, system = self._resolve(uri)
        system.delete(path, False)

    def remove_folder(self, uri: str) -> None:
        """Removes a folder with all that is in it; idempotent."""
        path, system = self._resolve(uri)
        system.delete(path, True)

    def _statuses(self, folder: str) -> Sequence[Any]:
        """What is in a folder; nothing if the folder is missing."""
        path, system = self._resolve(folder)
        try:
            statuses: Sequence[Any] = system.listStatus(path)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "FileNotFoundException":
                return ()
            raise
        return statuses

    def _resolve(self, uri: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(uri)
        return path, path.getFileSystem(self._conf)


def is_hidden(name: str) -> bool:
    """Whether Spark passes over a file or folder of this name: `_name` and `.name`, but not the partition `_name=value`."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


class _Stream:
    """Writes bytes to the JVM in chunks, because Py4J sends each chunk as one line of text."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, content: bytes) -> None:
        for start in range(0, len(content), _CHUNK):
            self._stream.write(content[start : start + _CHUNK])
