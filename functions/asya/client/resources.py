"""Sends envelopes to the queues of a mesh, and reads, lists and writes objects in its buckets."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC
from typing import TYPE_CHECKING, cast

from botocore.exceptions import BotoCoreError, ClientError

from asya.client.errors import MeshError, NotFoundError, OversizedEnvelopeError, UnreachableError
from asya.function.aws.claim_check import ClaimCheck
from asya.function.aws.missing_queues import is_missing_queue
from asya.function.claim_check import EnvelopeTooLargeError
from asya.function.hop import Delivery
from asya.protocol import names
from asya.protocol.codec import encode
from asya.protocol.data_references import DataFile
from asya.protocol.keys import INBOX_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from asya.client.connection import Connection
    from asya.protocol.envelope import Envelope


def send_envelope(connection: Connection, envelope: Envelope) -> str:
    """Send an envelope to the current actor of its route and return the id of the SQS message.

    A payload that is too large for a message becomes a claim check (`protocol §4`).

    Raises:
        OversizedEnvelopeError: The envelope is too large even without its payload.
        MeshError: The mesh has no such actor, or AWS fails or denies access.
    """
    actor = envelope.route.curr
    sqs = connection.sqs()
    try:
        url = sqs.get_queue_url(QueueName=names.queue_name(connection.namespace, actor))["QueueUrl"]
        body = _message_body(envelope, _claim_check(connection, url))
        return sqs.send_message(QueueUrl=url, MessageBody=body.decode())["MessageId"]
    except ClientError as error:
        if is_missing_queue(error):
            raise NotFoundError(
                f"the mesh {connection.namespace!r} has no actor {actor!r}",
                "Check the name in the mesh file, and the namespace.",
            ) from None
        raise MeshError(f"cannot send the envelope to {actor}: {error}") from error
    except BotoCoreError as error:
        raise UnreachableError(f"cannot send the envelope to {actor}: {error}") from error


def _message_body(envelope: Envelope, claim_check: ClaimCheck) -> bytes:
    """Encode an envelope as a message, with a claim check for a large payload."""
    problem = f"envelope {envelope.id!r} is too large for a message even without its payload; shorten its headers"
    try:
        delivery = claim_check.offload(Delivery(envelope.route.curr, encode(envelope), "next"))
    except EnvelopeTooLargeError:
        raise OversizedEnvelopeError(problem) from None
    if delivery.actor != envelope.route.curr:
        raise OversizedEnvelopeError(problem)
    return delivery.body


def _claim_check(connection: Connection, queue_url: str) -> ClaimCheck:
    """Create the claim check with the mesh's own bucket. Its name contains the account id of the queue's URL."""
    account = queue_url.split("/")[-2]
    bucket = names.bucket_name(connection.namespace, account, connection.region)
    return ClaimCheck(connection.s3(), bucket, prefix=INBOX_PREFIX)


_NOT_FOUND_CODES = frozenset({"404", "NoSuchKey", "NotFound"})


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
