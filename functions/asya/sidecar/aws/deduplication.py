"""Marks of hops that have been completed, for actors that want none done twice (`protocol §4`, `deduplicate`)."""

from typing import TYPE_CHECKING

from asya.messaging.hop import Hop

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


class CompletedHops:
    """The table `asya-{namespace}-hops`: pk = envelope id, sk = generation, position and attempt.

    A retry is the same hop's next attempt and runs; a second delivery of the same attempt does not.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str, retention_seconds: float) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._retention_seconds = retention_seconds

    def is_completed(self, hop: Hop) -> bool:
        """Whether this attempt has been completed before.

        Raises:
            ClientError, BotoCoreError: if it cannot be known now.
        """
        answer = self._dynamodb.get_item(TableName=self._table, Key=_key(hop), ConsistentRead=True)
        return "Item" in answer

    def mark(self, hop: Hop, *, epoch_seconds: float) -> None:
        """Note that all it caused has been accepted; written before the ack.

        Raises:
            ClientError, BotoCoreError: if it cannot be written now.
        """
        expires_at = int(epoch_seconds + self._retention_seconds)
        self._dynamodb.put_item(TableName=self._table, Item={**_key(hop), "expires_at": {"N": str(expires_at)}})


def _key(hop: Hop) -> "dict[str, AttributeValueTypeDef]":
    envelope = hop.envelope
    place = f"{envelope.generation:04d}#{envelope.route.position:06d}#{hop.attempt:06d}"
    return {"pk": {"S": envelope.id}, "sk": {"S": place}}
