"""The records of sets that repeat a fan-out, in the table of sets (`protocol §12.set`).

Only the gateway writes them. So nobody who can send to a queue can read the results of another task.
"""

from typing import TYPE_CHECKING

import msgspec

from asya.fan_in.aws import items
from asya.fan_in.repeats import SetRepeat

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_decoder = msgspec.json.Decoder(SetRepeat)


class SetRepeats:
    """Writes and reads the record of a new set; idempotent.

    Raises:
        botocore.exceptions.ClientError: from both methods, if the call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def save(self, record_id: str, repeat: SetRepeat, *, expires_at: float) -> None:
        """Record what a new set repeats.

        Args:
            record_id: see `repeats.record_id`.
            expires_at: seconds since 1970.
        """
        self._dynamodb.put_item(
            TableName=self._table,
            Item={
                **items.repeat_key(record_id),
                "repeat": {"S": msgspec.json.encode(repeat).decode()},
                "expires_at": items.number(int(expires_at)),
            },
        )

    def load(self, record_id: str) -> SetRepeat | None:
        """Read what a new set repeats; None if nothing is recorded."""
        answer = self._dynamodb.get_item(TableName=self._table, Key=items.repeat_key(record_id), ConsistentRead=True)
        return _decoder.decode(answer["Item"]["repeat"]["S"]) if "Item" in answer else None
