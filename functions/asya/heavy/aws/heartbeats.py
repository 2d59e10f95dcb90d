"""Reads the heartbeats and partials that a running job writes to S3 (`protocol §10`)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError

from asya.function.aws.conditional_writes import is_missing
from asya.heavy.part_results import UNREADABLE
from asya.protocol.job_runs import RunFolder
from asya.protocol.run_progress import HeartbeatRecord, JobPartial

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_SLOTS = 2
_heartbeat_decoder = msgspec.json.Decoder(HeartbeatRecord)
_partial_decoder = msgspec.json.Decoder(JobPartial)


class Heartbeats:
    """The heartbeats and partials in the mesh's bucket."""

    def __init__(self, s3: "S3Client", *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def latest(self, run: RunFolder, attempt: str) -> HeartbeatRecord | None:
        """The latest heartbeat of an attempt."""
        heartbeats = []
        for slot in range(_SLOTS):
            content = self._read(f"{run.attempts}{attempt}/heartbeat-{slot}.json")
            try:
                heartbeats += [_heartbeat_decoder.decode(content)] if content else []
            except UNREADABLE:
                continue  # the driver failed during the write; the other slot is complete
        return max(heartbeats, key=lambda heartbeat: heartbeat.beat, default=None)

    def partials(self, run: RunFolder, attempt: str, after: str) -> Iterator[tuple[str, list[JobPartial]]]:
        """The partials of an attempt by file name, in order.

        Args:
            after: the name of the last file read; empty at first.
        """
        folder = f"{run.attempts}{attempt}/"
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=f"{folder}fly-", StartAfter=f"{folder}{after}"
        )
        for page in pages:
            for entry in page.get("Contents", []):
                lines = (self._read(entry["Key"]) or b"").splitlines()
                yield entry["Key"].removeprefix(folder), [partial for line in lines for partial in _partials(line)]

    def _read(self, key: str) -> bytes | None:
        try:
            return self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except ClientError as error:
            if is_missing(error):
                return None
            raise


def _partials(line: bytes) -> list[JobPartial]:
    """The partial in a line; none if the job wrote something else, which must not stop the ones after it."""
    try:
        return [_partial_decoder.decode(line)]
    except UNREADABLE:
        return []
