"""Marks of reported dead letters: each is reported once, although every scan finds it again (`protocol §11`)."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Key
from asya.protocol.table_keys import REPORTED_PREFIX

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Longer than the longest retention of a queue, 14 days.
KEEP_SECONDS = 15 * 86400


class ReportMarks:
    """Items of the table `asya-{namespace}-sink`: pk = `DLQ#{SQS message id}`, sk = `reported`.

    A mark is written after the report is accepted. It only saves repetition, because reports are idempotent.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def find(self, message_ids: Collection[str]) -> frozenset[str]:
        """Those of these messages (ten at most) that have a mark; a throttled table may leave some out."""
        # SQS may deliver a message twice in one batch, but a request must not repeat a key.
        marks = self._table.get_batch(map(_key, sorted(set(message_ids)))).items
        return frozenset(mark.key.pk.removeprefix(REPORTED_PREFIX) for mark in marks)

    def add(self, message_id: str, *, epoch_seconds: float) -> None:
        """Mark a message as reported."""
        self._table.write(put(_key(message_id), {"expires_at": int(epoch_seconds + KEEP_SECONDS)}))


def _key(message_id: str) -> Key:
    return Key(REPORTED_PREFIX + message_id, "reported")
