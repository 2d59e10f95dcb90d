"""Envelopes that wait for a person, and what is left of those that no longer do (`protocol §11`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_missing, is_precondition_failure
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import Envelope
from asya.protocol.keys import pause_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_TOLD = ".notified"


class Tombstone(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands in the place of an envelope that was resumed, so that nobody resumes it again."""

    resumed_at: str
    resumed: bool = True


@dataclass(frozen=True, slots=True)
class PauseKey:
    """Which pause: of which envelope, in which generation, at which position."""

    envelope_id: str
    generation: int
    epoch: int

    @property
    def key(self) -> str:
        """Of its object in the mesh's own bucket."""
        return pause_key(self.envelope_id, self.generation, self.epoch)


class PausedEnvelopes:
    """One object per pause in the mesh's own bucket: `paused/{id}/{generation}/{position}.json`, payload and all.

    It is written once, by the first who comes; when the envelope has been resumed a tombstone takes its place. All methods raise
    ClientError or BotoCoreError if S3 does not do it now.
    """

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def keep(self, place: PauseKey, envelope: Envelope) -> bool:
        """Keep an envelope; False if one was kept here before, which stays."""
        try:
            self._put(place.key, encode(envelope), if_none_match="*")
        except ClientError as error:
            if not is_precondition_failure(error):
                raise
            return False
        return True

    def load(self, place: PauseKey) -> Envelope | Tombstone | None:
        """What is kept of a pause; None if nothing is (any more)."""
        try:
            body = self._s3.get_object(Bucket=self._bucket, Key=place.key)["Body"].read()
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        try:
            return msgspec.json.decode(body, type=Tombstone)
        except msgspec.ValidationError:
            return decode(body)

    def bury(self, place: PauseKey, *, at: str) -> None:
        """Put the tombstone; done again it is as good."""
        self._put(place.key, msgspec.json.encode(Tombstone(resumed_at=at)))

    def is_notified(self, place: PauseKey) -> bool:
        """Whether people have been notified of a pause."""
        try:
            self._s3.head_object(Bucket=self._bucket, Key=place.key + _TOLD)
        except ClientError as error:
            if is_missing(error):
                return False
            raise
        return True

    def mark_notified(self, place: PauseKey) -> None:
        """Note that people have been notified."""
        self._put(place.key + _TOLD, b"{}")

    def _put(self, key: str, body: bytes, *, if_none_match: str | None = None) -> None:
        condition = {"IfNoneMatch": if_none_match} if if_none_match else {}
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType="application/json", **condition)  # type: ignore[arg-type]
