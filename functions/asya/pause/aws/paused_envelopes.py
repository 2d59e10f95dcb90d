"""Paused envelopes and their tombstones in S3 (`protocol §11`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_missing, put_if_absent
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import Envelope
from asya.protocol.keys import pause_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_NOTIFIED_SUFFIX = ".notified"


class Tombstone(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replaces a resumed envelope, so that it cannot resume again."""

    resumed_at: str
    resumed: bool = True


@dataclass(frozen=True, slots=True)
class PauseKey:
    """Identifies a pause by envelope id, generation and epoch (the position of the pause)."""

    envelope_id: str
    generation: int
    epoch: int

    @property
    def object_key(self) -> str:
        """The key of its object in the mesh's bucket."""
        return pause_key(self.envelope_id, self.generation, self.epoch)


class PausedEnvelopes:
    """One object per pause in the mesh's bucket: `paused/{id}/{generation}/{position}.json`, with the payload.

    The first save wins. After the resume a tombstone replaces the envelope.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to S3 fails.
    """

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def save(self, key: PauseKey, envelope: Envelope) -> bool:
        """Save an envelope unless the pause has one; returns whether it was saved."""
        return put_if_absent(self._s3, bucket=self._bucket, key=key.object_key, body=encode(envelope))

    def load(self, key: PauseKey) -> Envelope | Tombstone | None:
        """Read the envelope or the tombstone of a pause; None if there is none or it has expired."""
        try:
            body = self._s3.get_object(Bucket=self._bucket, Key=key.object_key)["Body"].read()
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        try:
            return msgspec.json.decode(body, type=Tombstone)
        except msgspec.ValidationError:
            return decode(body)

    def mark_resumed(self, key: PauseKey, *, at: str) -> None:
        """Replace the envelope with a tombstone; idempotent."""
        self._put(key.object_key, msgspec.json.encode(Tombstone(resumed_at=at)))

    def is_notified(self, key: PauseKey) -> bool:
        """Whether the event of a pause was published."""
        try:
            self._s3.head_object(Bucket=self._bucket, Key=key.object_key + _NOTIFIED_SUFFIX)
        except ClientError as error:
            if is_missing(error):
                return False
            raise
        return True

    def mark_notified(self, key: PauseKey) -> None:
        """Record that the event of a pause was published."""
        self._put(key.object_key + _NOTIFIED_SUFFIX, b"{}")

    def _put(self, key: str, body: bytes) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType="application/json")
