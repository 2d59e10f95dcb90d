"""Reads, lists and writes objects in the buckets of a mesh, with errors for people."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from botocore.exceptions import BotoCoreError, ClientError

from asya.client.errors import MeshError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from asya.client.connection import Connection

_NOT_FOUND_CODES = frozenset({"404", "NoSuchKey", "NotFound"})


@dataclass(frozen=True)
class DataFile:
    """A file in the data of a mesh.

    Attributes:
        reference: Its name in payloads.
        size: Its bytes.
        changed_at: When it was written.
    """

    reference: str
    size: int
    changed_at: datetime


def open_object(connection: Connection, bucket: str, key: str) -> BinaryIO | None:
    """Open an object; None if it does not exist. The errors of its stream are those of botocore.

    Raises:
        MeshError: S3 fails or denies access.
    """
    with s3_errors("read", f"s3://{bucket}/{key}"):
        try:
            return cast("BinaryIO", connection.s3().get_object(Bucket=bucket, Key=key)["Body"])
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_FOUND_CODES:
                return None
            raise


def read_object(connection: Connection, bucket: str, key: str) -> bytes | None:
    """Return the bytes of an object; None if it does not exist.

    Raises:
        MeshError: S3 fails or denies access.
    """
    body = open_object(connection, bucket, key)
    with s3_errors("read", f"s3://{bucket}/{key}"):
        return None if body is None else body.read()


def put_data(connection: Connection, reference: str, body: bytes | BinaryIO) -> str:
    """Write a file to the data of the mesh, under the reference that payloads use; return its URI.

    Raises:
        MeshError: S3 fails or denies access.
    """
    data = connection.data
    with s3_errors("write", f"{data.uri}{reference}"):
        connection.s3().put_object(Bucket=data.bucket, Key=data.prefix + reference, Body=body)
    return f"{data.uri}{reference}"


def list_data(connection: Connection, prefix: str) -> Iterator[DataFile]:
    """List the files in the data of the mesh whose references start with a prefix.

    Raises:
        MeshError: S3 fails or denies access.
    """
    data = connection.data
    with s3_errors("list", f"{data.uri}{prefix}"):
        pages = connection.s3().get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=data.bucket, Prefix=data.prefix + prefix):
            for item in page.get("Contents", []):
                reference = item["Key"].removeprefix(data.prefix)
                yield DataFile(reference, item["Size"], item["LastModified"].astimezone(UTC))


@contextmanager
def s3_errors(verb: str, uri: str) -> Iterator[None]:
    """Turn errors of S3 into those of the client.

    Args:
        verb: What the block does, such as `read`.
        uri: What it does it with.

    Raises:
        MeshError: S3 fails or denies access.
    """
    try:
        yield
    except ClientError as error:
        raise MeshError(f"cannot {verb} {uri}: {error}") from error
    except BotoCoreError as error:
        raise UnreachableError(f"cannot reach S3 for {uri}: {error}") from error
