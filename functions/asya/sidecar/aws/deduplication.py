"""Marks of completed hops, for actors with `deduplicate: true` (`protocol §4`)."""

from typing import TYPE_CHECKING

from asya.messaging.hop import Hop

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


class CompletedHops:
    """The table `asya-{namespace}-hops`: pk = envelope id, sk = generation, position and attempt.

    The next attempt of a retried hop runs; a redelivery of a completed attempt does not.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str, retention_seconds: float) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._retention_seconds = retention_seconds

    def is_completed(self, hop: Hop) -> bool:
        """Whether this attempt was completed before.

        Raises:
            ClientError, BotoCoreError: the mark cannot be read.
        """
        answer = self._dynamodb.get_item(TableName=self._table, Key=_key(hop), ConsistentRead=True)
        return "Item" in answer

    def mark(self, hop: Hop, *, epoch_seconds: float) -> None:
        """Mark this attempt as completed, after its sends and before its acknowledgement.

        Raises:
            ClientError, BotoCoreError: the mark cannot be written.
        """
        expires_at = int(epoch_seconds + self._retention_seconds)
        self._dynamodb.put_item(TableName=self._table, Item={**_key(hop), "expires_at": {"N": str(expires_at)}})


def _key(hop: Hop) -> "dict[str, AttributeValueTypeDef]":
    envelope_id, generation, position, attempt = hop.attempt_key
    return {"pk": {"S": envelope_id}, "sk": {"S": f"{generation:04d}#{position:06d}#{attempt:06d}"}}
