"""The batches of resident runs: which run each one is, or that there will be none (`protocol §10.resident`).

Batch `k` of run `n` is the object `runs/{actor}/{n}/batches/{k}/manifest.json`. Dispatcher and driver write it only if it is
absent, so one of them wins: the dispatcher with a copy of a manifest, or either with the mark that the run is closed.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError

from asya.function.aws.conditional_writes import is_missing, put_if_absent
from asya.heavy.manifest_lines import encode_manifest
from asya.heavy.part_results import UNREADABLE
from asya.protocol.job_runs import Closed, CloseReason, Host, Manifest, Presence, RunFolder, presence_key
from asya.protocol.times import parse_time

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The first line of a batch has no envelope. A job may write anything there, so no more than this is read.
_HEAD_BYTES = 1024 * 1024
# A resident run says every 2 s that it is idle.
FRESH = timedelta(seconds=5)


class _Batch(msgspec.Struct, frozen=True):
    """What the first line of a batch says: the number of its run, or why there is none."""

    number: int = 0
    closed: str = ""


class Batches:
    """The batches in the mesh's bucket."""

    def __init__(self, s3: "S3Client", *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def fill(self, manifest: Manifest, host: Host) -> bool:
        """Gives a resident run its next batch; idempotent.

        Returns:
            False if the resident run takes no batch any more.
        """
        folder = RunFolder(manifest.actor, manifest.number, host)
        return self._create(folder, encode_manifest(manifest)) or self._run_in(folder) == manifest.number

    def close(self, actor: str, host: Host, reason: CloseReason) -> bool:
        """Lets a resident run end in place of this batch; idempotent.

        Returns:
            False if it has the batch.
        """
        folder = RunFolder(actor, 0, host)
        return self._create(folder, msgspec.json.encode(Closed(reason))) or not self._run_in(folder)

    def presence(self, actor: str, number: int, *, now: datetime) -> Presence | None:
        """What a resident run that is idle has said last, unless that is more than `FRESH` ago."""
        try:
            content = self._s3.get_object(Bucket=self._bucket, Key=presence_key(actor, number))["Body"].read(
                _HEAD_BYTES
            )
            presence = msgspec.json.decode(content, type=Presence)
            return presence if now - parse_time(presence.at) <= FRESH else None
        except UNREADABLE:
            return None  # a job may write anything
        except ClientError as error:
            if is_missing(error):
                return None
            raise

    def _create(self, folder: RunFolder, body: bytes) -> bool:
        return put_if_absent(self._s3, bucket=self._bucket, key=_key(folder), body=body)

    def _run_in(self, folder: RunFolder) -> int:
        """The number of the run that is this batch; 0 if the resident run is closed."""
        body = self._s3.get_object(Bucket=self._bucket, Key=_key(folder))["Body"]
        try:
            return msgspec.json.decode(body.read(_HEAD_BYTES).partition(b"\n")[0], type=_Batch).number
        except UNREADABLE:
            return 0  # a job may write anything into the folders of its batches


def _key(folder: RunFolder) -> str:
    return f"{folder.prefix}manifest.json"
