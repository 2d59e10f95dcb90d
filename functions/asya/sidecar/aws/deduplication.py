"""Marks of completed hops, for actors with `deduplicate: true` (`protocol §4`)."""

from typing import TYPE_CHECKING

from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Key
from asya.function.hop import Hop

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class CompletedHops:
    """The table `asya-{namespace}-hops`: pk = envelope id, sk = generation, position and attempt.

    The next attempt of a retried hop runs; a redelivery of a completed attempt does not.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str, retention_seconds: float) -> None:
        self._table = Table(dynamodb, table)
        self._retention_seconds = retention_seconds

    def is_completed(self, hop: Hop) -> bool:
        """Whether this attempt was completed before.

        Raises:
            ClientError, BotoCoreError: the mark cannot be read.
        """
        return bool(self._table.get(_key(hop)))

    def mark(self, hop: Hop, *, epoch_seconds: float) -> None:
        """Mark this attempt as completed, after its sends and before its acknowledgement.

        Raises:
            ClientError, BotoCoreError: the mark cannot be written.
        """
        self._table.write(put(_key(hop), {"expires_at": int(epoch_seconds + self._retention_seconds)}))


def _key(hop: Hop) -> Key:
    envelope_id, generation, position, attempt = hop.attempt_key
    return Key(envelope_id, f"{generation:04d}#{position:06d}#{attempt:06d}")
