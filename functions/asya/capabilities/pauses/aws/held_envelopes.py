"""Held envelopes and their tombstones in S3 (`protocol §11`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec
from botocore.exceptions import ClientError

from asya.function.aws.bounded_reads import is_missing
from asya.function.aws.conditional_writes import put_if_absent
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import Envelope
from asya.protocol.keys import wait_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Tombstone(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replaces an envelope that was sent on, so that it is not held and sent again."""

    resumed_at: str
    resumed: bool = True


class HeldKey(Protocol):
    """Identifies what holds an envelope: a pause or a wait."""

    @property
    def object_key(self) -> str:
        """The key of its object in the mesh's bucket."""


@dataclass(frozen=True, slots=True)
class WaitKey:
    """Identifies a wait by envelope id, generation, position and attempt."""

    envelope_id: str
    generation: int
    position: int
    attempt: int

    @property
    def object_key(self) -> str:
        """See `HeldKey`."""
        return wait_key(self.envelope_id, self.generation, self.position, self.attempt)


class HeldEnvelopes:
    """One object per pause or wait in the mesh's bucket, with the payload.

    The first save wins. After the envelope was sent on, a tombstone replaces it.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to S3 fails.
    """

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def save(self, key: HeldKey, envelope: Envelope) -> bool:
        """Save an envelope unless there is one already; returns whether it was saved."""
        return put_if_absent(self._s3, bucket=self._bucket, key=key.object_key, body=encode(envelope))

    def load(self, key: HeldKey) -> Envelope | Tombstone | None:
        """Read the envelope or its tombstone; None if there is none or it has expired."""
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

    def mark_resumed(self, key: HeldKey, *, at: str) -> None:
        """Replace the envelope with a tombstone; idempotent."""
        self._put(key.object_key, msgspec.json.encode(Tombstone(resumed_at=at)))

    def _put(self, key: str, body: bytes) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType="application/json")
