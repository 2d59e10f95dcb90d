"""Finds and reads the kept payloads of a task in S3."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.capabilities.dead_letters.kept_inputs import ReadHops, counting_inputs, mismatch, read_kept_inputs
from asya.capabilities.dead_letters.replay import checkpoints_folder, dead_letters_folder
from asya.capabilities.operations.payloads import (
    READ_LIMIT,
    Copies,
    Copy,
    CopyKind,
    PayloadText,
    choose_copies,
    last_hop,
    payload_text,
)
from asya.function.aws.bounded_reads import is_missing, is_unreadable
from asya.function.aws.claim_check import ClaimCheck
from asya.function.claim_check import read_reference
from asya.protocol import codec, headers, states
from asya.protocol.envelope import Envelope
from asya.protocol.keys import inputs_folder
from asya.tasks.view import TaskView

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_NAME = re.compile(r"(?:(\d{1,9})/)?(\d{1,9})\.json")


class KeptPayloads:
    """The kept payloads of a mesh.

    Args:
        bucket: the mesh's bucket.
        results_uri: the folder of x-sink; ends with `/`.
        claim_check: restores large payloads for any actor.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to S3 fails.
    """

    def __init__(self, s3: "S3Client", bucket: str, results_uri: str, claim_check: ClaimCheck) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._own_uri = f"s3://{bucket}/"
        self._results_uri = results_uri
        self._claim_check = claim_check

    def find(self, envelope_id: str, task: TaskView | None, read_hops: ReadHops) -> Copies:
        """Find the kept envelopes of a task.

        Args:
            task: the record of the task, which names its result; None without a record.
            read_hops: reads the reports about its hops, which say whose inputs count.
        """
        found = [
            *self._inputs(envelope_id, task, read_hops),
            *self._listed(self._own_uri + dead_letters_folder(envelope_id), "dead_letter"),
            *self._listed(self._results_uri + checkpoints_folder(envelope_id), "checkpoint"),
        ]
        result = self._result(task)
        if task is None or task.route is None or result is None:
            return Copies(choose_copies(found))
        if task.has_failed:
            return Copies(choose_copies([*found, (task.route.position, result)]))
        return Copies(choose_copies(found), result, last_hop(task.route))

    def read(self, copy: Copy) -> PayloadText:
        """Read the payload in a kept envelope; a payload that cannot be read has a problem instead."""
        if copy.size > READ_LIMIT:
            return PayloadText(text="", uri=copy.uri, size=copy.size, truncated=True)
        try:
            return self._payload(codec.decode(self._read(copy.uri)), copy)
        except codec.ParseError as error:
            return PayloadText(text="", uri=copy.uri, size=copy.size, problem=str(error))
        except ClientError as error:
            if is_unreadable(error):
                return PayloadText(text="", uri=copy.uri, size=copy.size, problem="the object cannot be read")
            if not is_missing(error):
                raise
            return PayloadText(text="", uri=copy.uri, size=copy.size, problem="the object has expired")

    def envelope(self, copy: Copy) -> Envelope | None:
        """Read a kept envelope without its large payload; None if it cannot be read."""
        if copy.size > READ_LIMIT:
            return None
        try:
            return codec.decode(self._read(copy.uri))
        except codec.ParseError:
            return None

    def _payload(self, envelope: Envelope, copy: Copy) -> PayloadText:
        problem = mismatch(envelope, copy.uri) if copy.kind == "input" else None
        if problem is not None:
            return PayloadText(text="", uri=copy.uri, size=copy.size, problem=problem)
        raw = envelope.headers.get(headers.PAYLOAD_REF)
        if raw is None:
            return payload_text(bytes(envelope.payload), copy.uri)
        reference = read_reference(raw, envelope.id, None)
        own = self._own_uri + reference.key
        if reference.size > READ_LIMIT:
            return PayloadText(text="", uri=own, size=reference.size, truncated=True)
        return payload_text(bytes(self._claim_check.redeem(envelope).payload), own)

    def _result(self, task: TaskView | None) -> Copy | None:
        """The result of an ended task. A record may name any address, but only results may be read."""
        if task is None or task.status not in (states.SUCCEEDED, states.FAILED) or task.result_uri is None:
            return None
        if not task.result_uri.startswith(self._results_uri):
            return None
        bucket, key = _split(task.result_uri)
        try:
            size = self._s3.head_object(Bucket=bucket, Key=key)["ContentLength"]
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        return Copy(task.result_uri, size, "failure", task.generation)

    def _inputs(self, envelope_id: str, task: TaskView | None, read_hops: ReadHops) -> Iterator[tuple[int, Copy]]:
        folder = self._own_uri + inputs_folder(envelope_id)
        found = counting_inputs(read_kept_inputs(folder, self._objects(folder)), task, read_hops)
        for position, kept in found.counting.items():
            yield position, Copy(kept.uri, kept.size, "input", kept.name.generation, kept.name.actor)

    def _listed(self, folder: str, kind: CopyKind) -> Iterator[tuple[int, Copy]]:
        """Yield the copies below a folder with their positions."""
        for uri, size in self._objects(folder):
            match = _NAME.fullmatch(uri.removeprefix(folder))
            if match is not None:
                yield int(match[2]), Copy(uri, size, kind, int(match[1]) if match[1] else None)

    def _objects(self, folder: str) -> Iterator[tuple[str, int]]:
        """Yield the addresses of the objects below a folder, with their bytes."""
        bucket, prefix = _split(folder)
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        entries = (entry for page in pages for entry in page.get("Contents", []))
        return ((f"s3://{bucket}/{entry['Key']}", entry["Size"]) for entry in entries)

    def _read(self, uri: str) -> bytes:
        bucket, key = _split(uri)
        # It may have been replaced by a larger one since its size was read. Half an envelope is no envelope.
        return self._s3.get_object(Bucket=bucket, Key=key)["Body"].read(READ_LIMIT)


def _split(uri: str) -> tuple[str, str]:
    # Not parsed as a URL, because a key may contain `%2F` or `#`.
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key
