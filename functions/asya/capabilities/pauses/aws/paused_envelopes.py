"""Paused envelopes in S3, with a note of each notification (`protocol §11`)."""

from dataclasses import dataclass

from botocore.exceptions import ClientError

from asya.capabilities.pauses.aws.held_envelopes import HeldEnvelopes
from asya.function.aws.bounded_reads import is_missing
from asya.protocol.keys import pause_key

_NOTIFIED_SUFFIX = ".notified"


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


class PausedEnvelopes(HeldEnvelopes):
    """One object per pause in the mesh's bucket: `paused/{id}/{generation}/{position}.json`.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to S3 fails.
    """

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
