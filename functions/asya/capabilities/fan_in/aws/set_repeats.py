"""The records of sets that repeat a fan-out, in the table of sets (`protocol §12.set`).

Only the gateway writes them. So nobody who can send to a queue can read the results of another task.
"""

from typing import TYPE_CHECKING

import msgspec

from asya.capabilities.fan_in.aws import items
from asya.capabilities.fan_in.repeats import SetRepeat
from asya.function.aws.table import Table, put

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_decoder = msgspec.json.Decoder(SetRepeat)


class SetRepeats:
    """Writes and reads the record of a new set; idempotent.

    Raises:
        botocore.exceptions.ClientError: from both methods, if the call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str) -> None:
        self._table = Table(dynamodb, table)

    def save(self, record_id: str, repeat: SetRepeat, *, expires_at: float) -> None:
        """Record what a new set repeats.

        Args:
            record_id: see `repeats.record_id`.
            expires_at: seconds since 1970.
        """
        key = items.repeat_key(record_id)
        self._table.write(put(key, {"repeat": items.json_text(repeat), "expires_at": int(expires_at)}))

    def load(self, record_id: str) -> SetRepeat | None:
        """Read what a new set repeats; None if nothing is recorded."""
        item = self._table.get(items.repeat_key(record_id))
        return _decoder.decode(item.text("repeat")) if item else None
