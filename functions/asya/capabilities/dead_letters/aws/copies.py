"""Copies of dead letters: they outlive the queue's retention, and replays can start from them (`protocol §12`)."""

from typing import TYPE_CHECKING

from asya.capabilities.dead_letters.letters import DeadLetter
from asya.protocol.keys import DEAD_LETTERS_PREFIX, hop_key, safe_segment

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def copy_key(letter: DeadLetter) -> str:
    """`dlq/{id}/{generation}/{position}.json`, or `dlq/unreadable/{message id}` for a message without an envelope."""
    if letter.envelope is None or not letter.readable:
        return f"{DEAD_LETTERS_PREFIX}unreadable/{safe_segment(letter.arrival.message_id)}"
    return hop_key(DEAD_LETTERS_PREFIX, letter.envelope)


class DeadLetterCopies:
    """Objects in the mesh's bucket with the bytes of the message."""

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def save(self, letter: DeadLetter, body: bytes) -> None:
        """Write the copy of a dead letter; idempotent.

        Args:
            body: the message as it was sent.

        Raises:
            ClientError, BotoCoreError: the object cannot be written.
        """
        self._s3.put_object(Bucket=self._bucket, Key=copy_key(letter), Body=body, ContentType="application/json")
