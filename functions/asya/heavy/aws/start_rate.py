"""A token bucket for StartJobRun that all dispatchers of a mesh share.

It only saves calls: EMR Serverless enforces the quota of the account.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Item, Key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_TRIES = 5
_KEY = Key("QUOTA#start-job-run", "bucket")


@dataclass(frozen=True, slots=True)
class QuotaBucket:
    """The number of tokens at a time (epoch seconds)."""

    tokens: float
    at: float

    def filled(self, now: float, per_second: float, burst: int) -> "QuotaBucket":
        """The bucket at `now`."""
        return QuotaBucket(min(burst, self.tokens + max(0.0, now - self.at) * per_second), max(now, self.at))

    def wait(self, per_second: float) -> float:
        """Seconds until the next token."""
        return max(0.0, (1 - self.tokens) / per_second)


class StartRate:
    """The token bucket in the pending table, item `QUOTA#start-job-run` / `bucket`."""

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, per_second: float, burst: int) -> None:
        self._table = Table(dynamodb, table)
        self._per_second = per_second
        self._burst = burst

    def take(self, *, now: datetime) -> float:
        """Takes a token; returns 0, or the seconds until the next token if the bucket is empty."""
        wait = 1 / self._per_second
        for _ in range(_TRIES):
            item = self._table.get(_KEY)
            bucket = _bucket(item) if item else QuotaBucket(self._burst, now.timestamp())
            filled = bucket.filled(now.timestamp(), self._per_second, self._burst)
            if filled.tokens < 1:
                return filled.wait(self._per_second)
            if self._put(QuotaBucket(filled.tokens - 1, filled.at), item):
                return 0.0
        return wait  # other dispatchers won each write

    def _put(self, bucket: QuotaBucket, previous: Item) -> bool:
        change = put(_KEY, {"tokens": round(bucket.tokens, 6), "at": round(bucket.at, 6)})
        if not previous:
            return bool(self._table.write(change.if_absent()))
        seen = {"tokens": previous["tokens"], "at": previous["at"]}
        return bool(self._table.write(change.only_if("#tokens = :tokens AND #at = :at", **seen)))


def _bucket(item: Item) -> QuotaBucket:
    return QuotaBucket(item.number("tokens"), item.number("at"))
