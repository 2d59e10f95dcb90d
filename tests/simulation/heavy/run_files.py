"""The files of a run in the simulated bucket, with the interface of `asya_spark.files.Files`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from botocore.exceptions import ClientError

from asya.testing.services.clients import Bucket, S3Client
from asya.testing.services.functions import BUCKET
from asya.testing.services.process import Process

ROOT = f"s3://{BUCKET}/"


@dataclass
class _Buffer:
    content: bytearray = field(default_factory=bytearray)

    def write(self, content: bytes) -> None:
        self.content += content


@dataclass
class RunFiles:
    """See `asya_spark.files.Files`."""

    process: Process
    bucket: Bucket

    def read(self, uri: str) -> bytes:
        """See `Files`."""
        try:
            answer = S3Client(self.process, self.bucket).get_object(Bucket=BUCKET, Key=_key(uri))
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                raise FileNotFoundError(f"there is no file {uri}") from error
            raise
        return bytes(answer["Body"].read())

    def chunks(self, uri: str) -> Iterator[bytes]:
        """See `Files`."""
        yield self.read(uri)

    def create(self, uri: str, content: bytes) -> bool:
        """See `asya_spark.resident.ResidentFiles`."""
        try:
            S3Client(self.process, self.bucket).put_object(Bucket=BUCKET, Key=_key(uri), Body=content, IfNoneMatch="*")
        except ClientError as error:
            if error.response["Error"]["Code"] != "PreconditionFailed":
                raise
            return self.read(uri) == content
        return True

    def write(self, uri: str, content: bytes) -> None:
        """See `Files`."""
        with self.open(uri) as writer:
            writer.write(content)

    @contextmanager
    def open(self, uri: str) -> Iterator[_Buffer]:
        """See `Files`; an error in the block leaves a partial file, as Hadoop's streams do."""
        buffer = _Buffer()
        try:
            yield buffer
        finally:
            if self.process.is_alive:
                S3Client(self.process, self.bucket).put_object(Bucket=BUCKET, Key=_key(uri), Body=bytes(buffer.content))


def _key(uri: str) -> str:
    return uri.removeprefix(ROOT)
