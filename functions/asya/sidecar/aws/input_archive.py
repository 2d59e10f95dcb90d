"""Stores the inputs of hops for replays (`protocol §12`, `keep_input`)."""

from typing import TYPE_CHECKING

from asya.protocol.codec import encode
from asya.protocol.envelope import Envelope
from asya.protocol.keys import INPUTS_PREFIX, hop_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class InputArchive:
    """One object per hop in the mesh's own bucket: `hops/{id}/{generation}/{position}.json`."""

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def save(self, envelope: Envelope) -> None:
        """Store an envelope as stamped at the start of its hop; a redelivery writes the same payload again.

        Raises:
            ClientError, BotoCoreError: the object cannot be written.
        """
        self._s3.put_object(
            Bucket=self._bucket,
            Key=hop_key(INPUTS_PREFIX, envelope),
            Body=encode(envelope),
            ContentType="application/json",
        )
