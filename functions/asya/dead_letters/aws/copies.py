"""Copies of dead letters: they outlive their queue, and a replay may start from them (`protocol §12`)."""

from typing import TYPE_CHECKING

from asya.dead_letters.letters import DeadLetter
from asya.protocol.keys import DEAD_LETTERS_PREFIX, hop_key, safe_segment

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def copy_key(letter: DeadLetter) -> str:
    """`dlq/{id}/{generation}/{position}.json`, or `dlq/unreadable/{message id}` for what is no envelope."""
    if letter.envelope is None or not letter.readable:
        return f"{DEAD_LETTERS_PREFIX}unreadable/{safe_segment(letter.arrival.message_id)}"
    return hop_key(DEAD_LETTERS_PREFIX, letter.envelope)


class DeadLetterCopies:
    """Objects in the mesh's own bucket, with the message as it lay on the queue."""

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def keep(self, letter: DeadLetter) -> None:
        """Write the copy; the same message writes the same again.

        Raises:
            ClientError, BotoCoreError: if it cannot be written now.
        """
        self._s3.put_object(
            Bucket=self._bucket, Key=copy_key(letter), Body=letter.arrival.body, ContentType="application/json"
        )
